"""Questions and answers on the wire: what is sent, streams in any shape, and everything that can go wrong."""

import json
from collections.abc import Callable
from threading import Event

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, stored
from widget.pages import answer
from widget.standin import Reply, Site, refused, sse, stream, whole

Browse = Callable[..., Page]
FINAL = answer("Run `uv lock`.", citations=["1"])


def test_a_question_is_sent_as_the_contract_says(browse: Browse, site: Site) -> None:
    page = browse("/second.html?utm=1#s2")
    ask(page, "  How do I lock?  ").locator(".answered").wait_for()
    session = stored(page)
    assert site.asked == [
        {
            "query": "How do I lock?",
            "conversation_history": [],
            "thread_id": session["session_id"],
            "page_url": f"{site.url}/second.html",
        }
    ]
    assert site.headers[0]["Accept"] == "text/event-stream"
    assert site.headers[0]["Content-Type"] == "application/json"
    assert "Cookie" not in site.headers[0]


@pytest.mark.parametrize("endpoint", ["{url}", "{url}/"])
def test_the_endpoint_is_the_site_s_choice(browse: Browse, site: Site, endpoint: str) -> None:
    site.config["endpoint"] = endpoint.format(url=site.url)
    expect(ask(browse()).locator(".answered")).to_be_visible()


def test_an_answer_as_json_is_shown_too(browse: Browse, site: Site) -> None:
    site.replies.append(whole(FINAL))
    turn = ask(browse())
    expect(turn.locator(".answered")).to_be_visible()
    expect(turn.locator("code")).to_have_text("uv lock")


def test_a_draft_appears_as_it_comes_and_the_final_replaces_it(browse: Browse, site: Site) -> None:
    more, end = Event(), Event()
    site.replies.append(stream(FINAL, "Run **uv", more, " sync** at once", end))
    turn = ask(browse())
    expect(turn.get_by_text("Run **uv")).to_be_visible()
    more.set()
    expect(turn.locator("strong")).to_have_text("uv sync")
    expect(turn.locator(".cite")).to_have_count(0)
    end.set()
    expect(turn.locator(".answered")).to_be_visible()
    expect(turn).not_to_contain_text("at once")
    expect(turn.locator("sup .cite")).to_have_text("1")


def test_a_stream_may_be_cut_into_chunks_anywhere(browse: Browse, site: Site) -> None:
    page = browse()
    final = answer("Straße 🔒 ✓ done.", citations=["1"])
    body = b": hello\n\nid: 7\nretry: 10\n\n" + b"".join(stream(final, "Stra", "ße").parts)  # type: ignore[arg-type]
    for newline in (b"\n", b"\r\n"):
        text = body.replace(b"\n", newline)
        for size in (1, 7, len(text)):
            site.replies.append(Reply(tuple(text[at : at + size] for at in range(0, len(text), size))))
            expect(ask(page).locator("p").first).to_contain_text("Straße 🔒 ✓ done.")


def test_data_may_be_spread_over_lines(browse: Browse, site: Site) -> None:
    spread = "".join(f"data:{line}\n" for line in json.dumps(FINAL, indent=1).splitlines())
    site.replies.append(Reply((f"event:final\n{spread}\n".encode(),)))
    expect(ask(browse()).locator(".answered")).to_be_visible()


FAILURES = {
    "forbidden": (refused(403), "takes no questions from this site"),
    "too large": (refused(413), "too long"),
    "out of contract": (
        refused(422, "query is over 1000 tokens"),
        "cannot be used as it is. query is over 1000 tokens",
    ),
    "busy": (refused(429), "Too many questions at once."),
    "busy for a while": (refused(429, retry_after="30"), "Try again in 30 seconds."),
    "no date of ours": (refused(429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"), "Too many questions at once."),
    "broken": (refused(500), "has a problem"),
    "gateway": (Reply((b"<h1>Bad gateway</h1>",), 502, "text/html"), "has a problem"),
    "no such route": (Reply((b"<h1>404</h1>",), 404, "text/html"), "Is the assistant set up for this site?"),
    "a page instead": (Reply((b"<!doctype html>",), 200, "text/html"), "Is the assistant set up for this site?"),
    "no answer in it": (Reply((b'{"response": ""}',), content_type="application/json"), "No proper answer came"),
    "not an object": (Reply((b"null",), content_type="application/json"), "No proper answer came"),
    "broken json": (Reply((b'{"resp',), content_type="application/json"), "broke off"),
    "error event": (
        Reply((sse("meta", {}), sse("error", {"code": "x", "message": "The model is away.", "retryable": True}))),
        "has a problem. The model is away.",
    ),
    "no final": (Reply((sse("delta", {"text": "Half an ans"}),)), "broke off"),
    "cut": (Reply((sse("delta", {"text": "Half an ans"}),), cut=True), "broke off"),
    "cut in the final": (Reply((sse("final", FINAL)[:-20],), cut=True), "broke off"),
    "final without its blank line": (Reply((sse("final", FINAL)[:-1],)), "broke off"),
    "not json": (Reply((b"event: delta\ndata: {oops\n\n",)), "broke off"),
    "empty": (Reply(()), "broke off"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_told_in_words_and_keeps_the_question(browse: Browse, site: Site, name: str) -> None:
    reply, words = FAILURES[name]
    site.replies.append(reply)
    page = browse()
    turn = ask(page, "How do I lock?")
    expect(turn.locator(".error")).to_contain_text(words)
    expect(turn.locator(".error svg")).to_be_visible()
    expect(page.locator("[aria-live]")).to_contain_text(words)
    expect(turn).to_contain_text("How do I lock?")
    expect(turn).not_to_contain_text("Half an ans")
    if reply.status in (413, 422):
        expect(page.get_by_role("textbox", name="Ask a question")).to_have_value("How do I lock?")
        expect(turn.get_by_role("button", name="Try again")).to_have_count(0)
    else:
        turn.get_by_role("button", name="Try again").click()
        expect(page.locator(".answered")).to_be_visible()
        expect(page.locator(".turn")).to_have_count(1)
        assert [query["query"] for query in site.asked] == ["How do I lock?"] * 2
        assert [message["role"] for message in stored(page)["messages"]] == ["user", "assistant"]


def test_an_api_that_is_down_is_told(browse: Browse, site: Site) -> None:
    page = browse()
    page.route("**/v1/chat", lambda route: route.abort("connectionrefused"))
    expect(ask(page).locator(".error")).to_have_text("The assistant cannot be reached.")


def test_a_silent_api_is_told_after_a_while(browse: Browse, site: Site) -> None:
    never = Event()
    site.config["timeout"] = 0.3
    site.replies.append(stream(FINAL, never))
    expect(ask(browse()).locator(".error")).to_have_text("The assistant took too long.")
    never.set()


def test_stop_keeps_the_draft_and_says_that_it_is_one(browse: Browse, site: Site) -> None:
    never = Event()
    site.replies.append(stream(FINAL, "Half an ans", never))
    page = browse()
    turn = ask(page)
    expect(turn.get_by_text("Half an ans")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(turn.locator(".error")).to_have_text("Stopped: this draft was not checked")
    expect(turn.get_by_text("Half an ans")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert [message["role"] for message in stored(page)["messages"]] == ["user"]
    never.set()
    turn.get_by_role("button", name="Try again").click()
    expect(page.locator(".answered")).to_be_visible()
