"""Every failure of a question: one sentence, the question kept, and one press to ask again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, open_chat, stored
from widget.pages import answer, source
from widget.standin import Reply, Site, refused, sse, stream

Browse = Callable[..., Page]
FINAL = answer("Run `uv lock`.", citations=["1"])
SORRY = "Is the assistant set up for this site?"

FAILURES = {
    "forbidden": (refused(403), "takes no questions from this site"),
    "a firewall": (Reply((b"<h1>Sorry, you have been blocked</h1>",), 403, "text/html"), "ask it in other words"),
    "a firewall without a page": (Reply((), 403, "text/plain"), "ask it in other words"),
    "an ended login": (Reply((b"<form>Log in</form>",), 401, "text/html"), "Load this page again"),
    "a login page": (Reply((b"<!doctype html><form>",), 200, "text/html"), "Load this page again"),
    "too large": (refused(413), "too long"),
    "too large for a proxy": (Reply((b"<h1>Too large</h1>",), 413, "text/html"), "too long"),
    "too many for a proxy": (Reply((b"<h1>Slow down</h1>",), 429, "text/html"), "Too many questions at once."),
    "out of contract": (
        refused(422, "query is over 1000 tokens"),
        "cannot be used as it is. query is over 1000 tokens",
    ),
    "busy": (refused(429), "Too many questions at once."),
    "broken": (refused(500), "has a problem"),
    "away": (refused(503, "The index cannot be read."), "has a problem. The index cannot be read."),
    "gateway": (Reply((b"<h1>Bad gateway</h1>",), 502, "text/html"), "has a problem"),
    "gateway of ours": (Reply((b"null",), 504, "application/json"), "has a problem"),
    "no such route": (Reply((b"<h1>404</h1>",), 404, "text/html"), SORRY),
    "teapot": (refused(418), SORRY),
    "a page instead": (Reply((b"<!doctype html>",), 200, "text/html"), SORRY),
    "nothing at all": (Reply((), 204, "text/html"), SORRY),
    "no answer in it": (Reply((b'{"response": ""}',), content_type="application/json"), "No proper answer came"),
    "no text in it": (Reply((b'{"response": {"a": 1}}',), content_type="application/json"), "No proper answer came"),
    "a list": (Reply((b"[1]",), content_type="application/json"), "No proper answer came"),
    "an error in it": (
        Reply((b'{"error": {"message": "Sorry."}}',), content_type="application/json"),
        "problem. Sorry.",
    ),
    "not an object": (Reply((b"null",), content_type="application/json"), "broke off"),
    "broken json": (Reply((b'{"resp',), content_type="application/json"), "broke off"),
    "error event": (
        Reply((sse("meta", {}), sse("error", {"code": "x", "message": "The model is away.", "retryable": True}))),
        "has a problem. The model is away.",
    ),
    "error without a word": (Reply((sse("error", {}),)), "has a problem."),
    "error of nothing": (Reply((sse("error", None),)), "No proper answer came"),
    "no final": (Reply((sse("delta", {"text": "Half an ans"}),)), "broke off"),
    "cut": (Reply((sse("delta", {"text": "Half an ans"}),), cut=True), "broke off"),
    "cut in the final": (Reply((sse("final", FINAL)[:-20],), cut=True), "broke off"),
    "final without its blank line": (Reply((sse("final", FINAL)[:-1],)), "broke off"),
    "not json": (Reply((b"event: delta\ndata: {oops\n\n",)), "broke off"),
    "a delta of nothing": (Reply((sse("delta", None),)), "broke off"),
    "empty": (Reply(()), "broke off"),
}


def expect_retry(page: Page, site: Site) -> None:
    """Press "Try again" once: the answer takes the place of the failure."""
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".answered")).to_be_visible()
    expect(page.locator(".turn")).to_have_count(1)
    assert [query["query"] for query in site.asked[-2:]] == ["How do I lock?"] * len(site.asked[-2:])
    assert [message["role"] for message in stored(page)["messages"]] == ["user", "assistant"]


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
    expect(turn).not_to_contain_text("undefined")
    ours = reply.content_type == "application/json"
    if reply.status in (413, 422) or (reply.status == 403 and ours):
        kept = "" if reply.status == 403 else "How do I lock?"
        expect(page.get_by_role("textbox", name="Ask a question")).to_have_value(kept)
        expect(turn.get_by_role("button", name="Try again")).to_have_count(0)
    else:
        expect_retry(page, site)


def test_an_api_that_is_down_is_told(browse: Browse, site: Site) -> None:
    page = browse()
    page.route("**/v1/chat", lambda route: route.abort("connectionrefused"))
    expect(ask(page).locator(".error")).to_have_text("The assistant cannot be reached.")
    page.unroute("**/v1/chat")
    expect_retry(page, site)


def test_a_reader_who_is_offline_is_told_so(browse: Browse, site: Site) -> None:
    page = browse()
    site.replies.append(refused(500))
    ask(page).locator(".error").wait_for()
    page.context.set_offline(True)
    try:
        page.get_by_role("button", name="Try again").click()
        expect(page.locator(".error")).to_contain_text("You are offline.")
    finally:
        page.context.set_offline(False)
    expect_retry(page, site)


def test_offline_from_the_first_question_on_it_is_told_and_can_be_asked_again(browse: Browse, site: Site) -> None:
    page = browse()
    open_chat(page)
    page.context.set_offline(True)
    try:
        error = ask(page).locator(".error")
        expect(error).to_contain_text("You are offline.")
        # No more can be loaded, its look included.
        assert error.evaluate("node => getComputedStyle(node).borderLeftWidth") == "4px"
    finally:
        page.context.set_offline(False)
    expect_retry(page, site)


def test_a_silent_api_is_told_after_a_while(browse: Browse, site: Site) -> None:
    never = Event()
    site.config["timeout"] = 0.3
    site.replies.append(stream(FINAL, never))
    page = browse()
    expect(ask(page).locator(".error")).to_have_text("The assistant took too long.")
    never.set()
    expect_retry(page, site)


def test_a_stream_without_an_end_is_told_after_a_while(browse: Browse, site: Site) -> None:
    site.config["timeout"] = 1
    site.replies.append(Reply((sse("delta", {"text": "and on "}), *(b": on\n\n" for _ in range(400)), Event())))
    page = browse()
    expect(ask(page).locator(".error")).to_have_text("The assistant took too long.")
    expect_retry(page, site)


def test_stop_keeps_what_came_and_says_that_it_is_not_all(browse: Browse, site: Site) -> None:
    never = Event()
    site.replies.append(stream(FINAL, "Half an ans", never))
    page = browse()
    turn = ask(page)
    expect(turn.get_by_text("Half an ans")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(turn.locator(".status")).to_have_text("Stopped: the answer is not complete")
    expect(turn.locator(".error")).to_have_count(0)
    expect(turn.get_by_text("Half an ans")).to_be_visible()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert [message["role"] for message in stored(page)["messages"]] == ["user"]
    never.set()
    expect_retry(page, site)


#: A clock is set for a whole profile of the browser, so these tests have one of their own.
CLOCKED = {"timezone_id": "UTC"}


def soon(**delta: int) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(**delta), usegmt=True)


@pytest.mark.parametrize("status", [429, 503])
def test_a_busy_api_is_asked_again_after_a_countdown(browse: Browse, site: Site, status: int) -> None:
    page = browse(**CLOCKED)
    page.clock.install()
    site.replies.append(refused(status, retry_after="12"))
    turn = ask(page)
    retry = turn.get_by_role("button", name="Try again")
    live = page.locator("[aria-live]")
    expect(retry).to_have_text("Try again in 12 s")
    expect(retry).to_have_attribute("aria-disabled", "true")
    expect(live).to_contain_text("Try again in 12 s")
    page.clock.run_for(5000)
    expect(retry).to_have_text("Try again in 7 s")
    expect(live).to_contain_text("Try again in 12 s")
    retry.click(force=True)
    assert len(site.asked) == 1
    page.clock.run_for(7000)
    expect(retry).to_have_text("Try again")
    expect(retry).not_to_have_attribute("aria-disabled", "true")
    expect_retry(page, site)


WAITS = {
    "": 0, "0": 0, "-5": 0, "soon": 0, "NaN": 0, "5 minutes": 5, "12.5": 12, "600": 600, "601": 600, "9" * 400: 600,
    "Wed, 21 Oct 2015 07:28:00 GMT": 0, "Wed, 21 Oct 9015 07:28:00 GMT": 0, "Wed, 99 Foo 2099": 0,
}  # fmt: skip


def test_no_header_locks_a_reader_out(browse: Browse, site: Site) -> None:
    page = browse()
    for after, seconds in WAITS.items():
        site.replies.append(refused(429, retry_after=after))
        retry = ask(page).get_by_role("button", name="Try again")
        expect(retry).to_have_text(f"Try again in {seconds} s" if seconds else "Try again")
    assert len(site.asked) == len(WAITS)


@pytest.mark.parametrize("clock", [datetime(1999, 1, 1, tzinfo=UTC), datetime(2099, 1, 1, tzinfo=UTC)])
def test_a_date_to_wait_for_locks_nobody_out_whatever_the_time_is(browse: Browse, site: Site, clock: datetime) -> None:
    page = browse(**CLOCKED)
    page.clock.install(time=clock)
    site.replies.append(refused(429, retry_after=soon(seconds=45)))
    expect(ask(page).get_by_role("button", name="Try again")).to_have_text("Try again")
    expect_retry(page, site)


def test_a_countdown_ends_with_its_turn(browse: Browse, site: Site) -> None:
    page = browse(**CLOCKED)
    page.clock.install()
    site.replies.append(refused(429, retry_after="30"))
    retry = ask(page).get_by_role("button", name="Try again")
    expect(retry).to_have_text("Try again in 30 s")
    node = retry.element_handle()
    page.get_by_role("button", name="New chat").click()
    page.clock.run_for(10_000)
    assert node.text_content() == "Try again in 30 s"


def test_each_failure_is_retried_on_its_own(browse: Browse, site: Site) -> None:
    page = browse()
    site.replies += [refused(500), refused(502)]
    ask(page, "one").locator(".error").wait_for()
    ask(page, "two").locator(".error").wait_for()
    ask(page, "three").locator(".answered").wait_for()
    page.locator(".turn").first.get_by_role("button", name="Try again").click()
    expect(page.locator(".answered")).to_have_count(2)
    expect(page.locator(".asked")).to_contain_text(["two", "three", "one"])
    users = [message["content"] for message in stored(page)["messages"] if message["role"] == "user"]
    assert users == ["two", "three", "one"]
    assert [m["content"] for m in site.asked[-1]["conversation_history"]] == ["three", "You asked: three"]


def test_a_retry_waits_for_the_answer_that_is_on_its_way(browse: Browse, site: Site) -> None:
    wait = Event()
    page = browse()
    site.replies += [refused(500), stream(FINAL, wait)]
    ask(page, "one").locator(".error").wait_for()
    ask(page, "two")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".turn")).to_have_count(2)
    assert [message["content"] for message in stored(page)["messages"]] == ["one", "two"]
    wait.set()
    expect(page.locator(".answered")).to_be_visible()


def test_a_page_that_changed_before_the_answer_offers_to_ask_again(browse: Browse, site: Site) -> None:
    wait = Event()
    site.replies.append(stream(FINAL, wait))
    page = browse()
    ask(page)
    # What stands there until the answer comes; "Searching" goes with the first event of the stream.
    expect(page.get_by_text("Reading Locking › Section 1…")).to_be_visible()
    page.reload()
    wait.set()
    expect(page.locator(".error")).to_have_text("The page changed before the answer came.")
    expect_retry(page, site)


def test_a_page_that_comes_back_as_it_was_left_still_has_the_question(browse: Browse, site: Site) -> None:
    site.replies.append(refused(500))
    page = browse()
    ask(page).locator(".error").wait_for()
    page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(page.locator(".error")).to_have_text("The page changed before the answer came.")
    expect_retry(page, site)


#: Asks, and resolves once there is an answer or a failure, and every part that comes later has had its turn.
ASKED = """async () => {
  const heard = new Promise(resolve => ['answer', 'error'].forEach(type => chapterverse.on(type, () => resolve(type))));
  await chapterverse.ask('How do I lock?');
  const type = await heard;
  await new Promise(resolve => setTimeout(resolve, 30));
  return type;
}"""
VALUES: tuple[Any, ...] = (None, 5, -1, True, "", "x", [], {}, [None], ["x"], [{}], {"length": 3}, [[]], [{"text": 5}])


def mutations() -> list[dict[str, Any]]:
    """Return the answer with every field, and every field within its lists, absent or of another type."""
    made = []
    whole = answer("Run it.", citations=["1"], nearest=[source(2)], follow_ups=["More?"])
    for key in whole:
        made.append({k: v for k, v in whole.items() if k != key})
        made += [{**whole, key: value} for value in VALUES]
    for key in ("source_chunks", "segments", "nearest"):
        for inner in whole[key][0]:
            made += [{**whole, key: [{**whole[key][0], inner: value}]} for value in VALUES[::3]]
    return made


def test_an_answer_of_any_types_does_no_harm(browse: Browse, site: Site) -> None:
    made = mutations()
    page = browse()
    open_chat(page)
    ends = {"answer": 0, "error": 0}
    for number, final in enumerate(made):
        site.replies.append(Reply((sse("final", final),)))
        ends[page.evaluate(ASKED)] += 1
        turn = page.locator(".turn").last
        assert "How do I lock?" in (turn.text_content() or ""), final
        asked = [message["content"] for message in stored(page)["messages"] if message["role"] == "user"]
        assert asked == ["How do I lock?"], final
        assert turn.locator(".status").count() > 0, final
        page.get_by_role("button", name="New chat").click()
        assert len(site.asked) == number + 1
    assert ends["answer"] > 100
    assert ends["error"] > 20


def test_a_huge_answer_is_shown_and_kept(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("word " * 400_000, citations=["1"])))
    page = browse()
    turn = ask(page)
    expect(turn.locator(".answered")).to_be_visible()
    expect(turn.get_by_role("button", name="Copy the answer")).to_be_visible()
    ask(page, "And then?").locator(".answered").wait_for()


def test_a_final_that_contradicts_its_draft_replaces_it_visibly(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("No, it is not.", status="not_in_docs", source_chunks=[]), "Yes, it is."))
    turn = ask(browse())
    expect(turn.locator(".not_in_docs")).to_be_visible()
    expect(turn).to_contain_text("No, it is not.")
    expect(turn).not_to_contain_text("Yes, it is.")
