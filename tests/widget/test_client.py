"""Requests and streams on the wire: the request body, and streams cut at any place."""

import json
from collections.abc import Callable
from threading import Event

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, stored
from widget.pages import answer
from widget.standin import Reply, Site, stream, whole

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
            "language": "en",
        }
    ]
    assert site.headers[0]["accept"] == "text/event-stream"
    assert site.headers[0]["content-type"] == "application/json"
    assert "Cookie" not in site.headers[0]


def test_what_the_site_knows_of_its_reader_is_sent(browse: Browse, site: Site) -> None:
    site.config["context"] = "Enterprise edition"
    page = browse()
    ask(page).locator(".answered").wait_for()
    # What the site's script says replaces it, in the next question already; no more is sent than an API takes.
    for said in ("'On Linux'", "'x'.repeat(10001)", "42", "''"):
        page.evaluate(f"chapterverse.context({said})")
        ask(page).locator(".answered").wait_for()
    sent = [query.get("user_context") for query in site.asked]
    assert sent == ["Enterprise edition", "On Linux", "x" * 10_000, "42", ""]


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
    expect(turn.locator("sup .cite")).to_have_accessible_name("1: Locking › Section 1")


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


#: Lets the client read each stream of a list and says how each ended. `whole` tells a connection that closed from one
#: that broke.
READ = """async ([streams, whole]) => {
  const { chat } = await import('/widget/panel.js');
  const own = window.fetch;
  const ends = [];
  for (const bytes of streams) {
    window.fetch = async () => new Response(new ReadableStream({ pull(controller) {
      if (this.sent) whole ? controller.close() : controller.error(new TypeError('network error'));
      else controller.enqueue(new TextEncoder().encode(bytes));
      this.sent = true;
    } }), { headers: { 'Content-Type': 'text/event-stream' } });
    let draft = '';
    try {
      const on = (name, data) => (draft += data.text ?? '');
      const { response } = await chat({ endpoint: '' }, {}, new AbortController().signal, on);
      ends.push({ draft, response });
    } catch (failure) {
      ends.push({ draft, kind: failure.kind, error: failure instanceof Error });
    }
  }
  window.fetch = own;
  return ends;
}"""


@pytest.mark.parametrize("whole", [True, False], ids=["closed", "broken"])
def test_a_stream_that_ends_anywhere_is_never_taken_for_an_answer(browse: Browse, whole: bool) -> None:
    body = b"".join(stream(FINAL, "Run `uv", " lock`.").parts).decode()  # type: ignore[arg-type]
    ends = browse().evaluate(READ, [[body[:size] for size in range(1, len(body) + 1)], whole])
    assert len(ends) == len(body)
    assert ends.pop() == {"draft": "Run `uv lock`.", "response": "Run `uv lock`."}
    assert {end["draft"] for end in ends} == {"", "Run `uv", "Run `uv lock`."}
    assert {(end["kind"], end["error"]) for end in ends} == {("cut_off", False)}


def test_a_line_separator_in_a_text_ends_no_line(browse: Browse) -> None:
    final = json.dumps(answer("One\u2028two\u2029three\x85four."), ensure_ascii=False)
    (end,) = browse().evaluate(READ, [[f"event: final\ndata: {final}\n\n"], True])
    assert end["response"] == "One\u2028two\u2029three\x85four."
