"""Ways into a question and out of an answer: scope, search, starters, health, a person, export, undo."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import Page, Route, expect

from chapterverse.settings import Settings
from chapterverse.site import starters
from widget import pages
from widget.chat import ask, open_chat, stored
from widget.pages import answer, of_segments, segment, source
from widget.pages import page as page_of
from widget.standin import Site, checked, refused, stream

Browse = Callable[..., Page]
StandIn = Callable[[str], None]
FIELD = "Ask a question"


def test_only_this_page_restricts_the_search_to_it(browse: Browse, site: Site) -> None:
    page = browse("/second.html?x=1#s2")
    open_chat(page)
    only = page.get_by_role("button", name="Only this page")
    only.click()
    expect(only).to_have_attribute("aria-pressed", "true")
    expect(only).to_have_text("Only this page: Docs")
    ask(page).locator(".answered").wait_for()
    url = f"{site.url}/second.html"
    assert {"url": url} in site.asked[0]["filters"]["$or"]
    assert {"url": {"$prefix": f"{url}#"}} in site.asked[0]["filters"]["$or"]
    only.click()
    ask(page).locator(".answered").wait_for()
    assert "filters" not in site.asked[1]


def test_what_does_not_narrow_is_not_named(browse: Browse) -> None:
    page = browse()
    open_chat(page)
    expect(page.locator(".chips .chip >> visible=true")).to_have_text(["Only this page"])


def test_the_named_page_is_the_one_that_is_shown(browse: Browse, site: Site) -> None:
    page = browse("/instant.html")
    open_chat(page)
    page.get_by_role("button", name="Only this page").click()
    page.locator("#next").click()
    page.evaluate("document.title = 'Keys – Docs'")
    expect(page.get_by_role("button", name="Only this page")).to_have_text("Only this page: Keys")
    ask(page).locator(".answered").wait_for()
    assert {"url": f"{site.url}/second.html"} in site.asked[0]["filters"]["$or"]


def test_a_follow_up_is_named_where_the_api_took_it_for_one_and_asked_anew_alone(browse: Browse, site: Site) -> None:
    led = {"query": "What is a lock?", "reason": "follow_up", "original": "And then?"}
    site.replies += [stream(answer("One.")), stream(answer("Two.", searched_as=led)), stream(answer("Three."))]
    page = browse()
    ask(page, "What is a lock?").locator(".copy_answer").wait_for()
    following = page.get_by_role("button", name="Following up on")
    expect(following).to_have_count(0)
    ask(page, "And then?")
    expect(following).to_have_text("Following up on What is a lock?")
    assert len(site.asked[1]["conversation_history"]) == 2
    following.click()
    expect(page.locator(".turn").nth(2)).to_contain_text("Three.")
    expect(page.locator(".turn").nth(2).locator(".copy_answer")).to_be_visible()
    # What was said stays.
    expect(page.locator(".turn").nth(1)).to_contain_text("Two.")
    assert site.asked[2]["query"] == "And then?"
    assert site.asked[2]["conversation_history"] == []
    assert "thread_id" not in site.asked[2]
    # It holds for one question.
    ask(page, "Where?").locator(".copy_answer").wait_for()
    assert len(site.asked[3]["conversation_history"]) == 6


def test_a_page_without_an_answer_leads_to_all_the_docs(browse: Browse, site: Site) -> None:
    nothing = answer("No answer in this part.", status="not_in_docs", source_chunks=[])
    site.replies += [stream(nothing), refused(429)]
    page = browse()
    open_chat(page)
    page.get_by_role("button", name="Only this page").click()
    ask(page)
    turn = page.locator(".turn").first
    expect(turn.locator(".not_in_docs")).to_contain_text("Not on this page")
    expect(page.locator("[aria-live]")).to_contain_text("Not on this page")
    everywhere = turn.get_by_role("button", name="Search all the docs")
    expect(everywhere).to_be_visible()
    everywhere.click()
    expect(page.locator(".turn").nth(1)).to_contain_text("Too many questions at once.")
    # A failure takes nothing away.
    expect(turn.locator(".not_in_docs")).to_be_visible()
    assert [message["content"] for message in stored(page)["messages"]][:2] == ["How do I lock?", nothing["response"]]
    assert "filters" in site.asked[0]
    assert "filters" not in site.asked[1]
    assert site.asked[1]["query"] == "How do I lock?"
    expect(page.get_by_role("button", name="Only this page")).to_have_text("Only this page")
    # What was the page may be another one after a load.
    page.reload()
    expect(turn.locator(".not_in_docs")).to_contain_text("Not in these docs")
    expect(everywhere).to_have_count(0)


def test_all_the_docs_are_not_asked_while_an_answer_comes(browse: Browse, site: Site) -> None:
    wait = Event()
    nothing = answer("No.", status="not_in_docs", source_chunks=[])
    site.replies += [stream(nothing), checked(answer("Run it."), wait)]
    page = browse()
    open_chat(page)
    only = page.get_by_role("button", name="Only this page")
    only.click()
    everywhere = ask(page).get_by_role("button", name="Search all the docs")
    everywhere.wait_for()
    ask(page, "And now?").locator(".busy").wait_for()
    page.locator(".turn").first.get_by_role("button", name="Search all the docs").click()
    expect(only).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".turn")).to_have_count(2)
    wait.set()


def test_all_the_docs_without_an_answer_say_so(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("No.", status="not_in_docs", source_chunks=[])))
    turn = ask(browse())
    turn.locator(".copy_answer").wait_for()
    expect(turn.locator(".not_in_docs")).to_contain_text("Not in these docs")
    expect(turn.get_by_role("button", name="Search all the docs")).to_have_count(0)


#: The results of search as the generators have them, made a moment after the first letter.
RESULTS = {
    "material": '<div class="md-search__output"><div class="md-search-result">{}</div></div>',
    "docsearch": '<div class="DocSearch-Modal"><div class="DocSearch-Dropdown">{}</div></div>',
    "vitepress": '<div class="VPLocalSearchBox"><ul class="results" role="listbox">{}</ul></div>',
    "pagefind": '<div class="pagefind-ui"><div class="pagefind-ui__drawer">{}</div></div>',
    "mkdocs": '<div id="mkdocs-search-results">{}</div>',
    "zensical": '<div><ol id="list" role="listbox">{}</ol></div>',
}
LATE = """<input type="search" id="field" aria-controls="list"><div id="slot"></div><script>
document.querySelector('#field').addEventListener('input', () => setTimeout(() => {
  document.querySelector('#slot').innerHTML = `%s`;
}, 100));
</script>"""


@pytest.mark.parametrize("theme", RESULTS)
def test_the_first_row_of_the_site_s_search_asks(browse: Browse, site: Site, standin_page: StandIn, theme: str) -> None:
    standin_page(page_of(body=LATE % RESULTS[theme].format("<p>A result</p>")).html)
    page = browse("/tagged.html")
    page.locator("#field").focus()
    page.wait_for_function("performance.getEntriesByType('resource').some(({ name }) => name.endsWith('more/en.js'))")
    page.keyboard.type("how to lock", delay=20)
    row = page.get_by_role("button", name="Ask: how to lock")
    expect(row).to_be_visible()
    assert row.evaluate("row => row.nextElementSibling.textContent") == "A result"
    row.click()
    expect(page.locator(".answered")).to_be_visible()
    assert [query["query"] for query in site.asked] == ["how to lock"]
    expect(page.locator("#field")).to_have_value("")
    expect(page.locator(".chapterverse-row")).to_have_count(0)


def test_the_page_s_headings_are_starters_where_the_site_gives_none(browse: Browse, site: Site) -> None:
    page = browse()
    dialog = open_chat(page)
    expect(dialog.locator(".thread .chip")).to_have_text(["Section 1", "Section 2", "Section 3"])
    site.config["starters"] = ["How do I lock?"]
    page.reload()
    expect(page.locator(".thread .chip")).to_have_text(["How do I lock?"])


BARE = """<!doctype html><html lang="en"><title>Docs</title><script type="module" src="/widget/launcher.js"></script>
<main><h1>Locking</h1>{}</main></html>"""


def test_a_page_without_headings_offers_what_the_index_answers(
    browse: Browse, site: Site, standin_page: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty, offered = (
        starters.module(Settings(publish=False), "").decode(),
        {"": ["How do I lock?"], "de": ["Wie sperre ich?"]},
    )
    monkeypatch.setitem(pages.PAGES, "/starters.js", pages.Page(empty.replace("{}", json.dumps(offered))))
    standin_page(BARE.format(""))
    site.config |= starters.OPTION
    page = browse("/tagged.html")
    dialog = open_chat(page)
    expect(dialog.locator(".thread .chip")).to_have_text(["How do I lock?"])
    standin_page(BARE.format("").replace('"en"', '"de-AT"'))
    page.reload()
    expect(page.locator(".thread .chip")).to_have_text(["Wie sperre ich?"])
    page.get_by_role("button", name="Wie sperre ich?").click()
    page.locator(".answered").wait_for()
    assert [query["query"] for query in site.asked] == ["Wie sperre ich?"]


def test_a_heading_in_several_lines_is_asked_in_one(
    browse: Browse, site: Site, standin_page: Callable[[str], None]
) -> None:
    standin_page(BARE.format('<section id="a"><h2>How to\n  lock\u200b it\u200b<a href="#a">¶</a></h2></section>'))
    page = browse("/tagged.html")
    open_chat(page).locator(".thread .chip").click()
    page.locator(".answered").wait_for()
    assert [query["query"] for query in site.asked] == ["How to lock it"]


def test_the_shortcut_and_the_disclaimer_are_named(browse: Browse) -> None:
    page = browse()
    expect(page.locator(".launcher")).to_have_attribute("title", "Ctrl+I")
    open_chat(page)
    note = page.get_by_text("Answers can be wrong").bounding_box()
    field = page.get_by_role("textbox", name=FIELD).bounding_box()
    assert note
    assert field
    assert field["y"] + field["height"] <= note["y"]


def test_on_touch_no_keyboard_jumps_up(browse: Browse) -> None:
    page = browse(has_touch=True, is_mobile=True, viewport={"width": 820, "height": 1180})
    open_chat(page)
    expect(page.get_by_role("textbox", name=FIELD)).not_to_be_focused()


def health(page: Page, text: str | None) -> list[str]:
    """Let the page's origin answer for an API, or not; return the questions for its health as they come."""
    asked: list[str] = []

    def reply(route: Route) -> None:
        asked.append(route.request.url)
        if text is None:
            route.fulfill(status=404, body="<h1>Not found</h1>")
        else:
            route.fulfill(status=200, content_type="application/json", body=text)

    page.route("**/v1/health", reply)
    return asked


@pytest.mark.parametrize("text", ['{"status":"ok"}', None, "<h1>Home</h1>", '{"status":"no"}', "null"])
def test_a_build_without_an_endpoint_shows_no_dead_chat(browse: Browse, site: Site, text: str | None) -> None:
    site.config["endpoint"] = None
    page = browse("/page.css")
    asked = health(page, text)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(site.url)
    page.wait_for_timeout(300)
    page.goto(site.url + "/second.html")
    page.wait_for_timeout(300)
    # Once a tab.
    assert len(asked) == 1
    there = text == '{"status":"ok"}'
    expect(page.locator(".launcher")).to_have_count(int(there))
    assert any("no `endpoint`" in line for line in said) != there
    if there:
        expect(ask(page).locator(".answered")).to_be_visible()


def test_an_endpoint_is_never_looked_for_before_consent_or_where_it_is_named(browse: Browse, site: Site) -> None:
    page = browse()
    asked = health(page, None)
    page.reload()
    page.locator(".launcher").wait_for()
    assert asked == []
    site.config.update(endpoint=None, consent="Questions go to a service.")
    page.reload()
    page.locator(".launcher").wait_for()
    assert asked == []
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator(".launcher").click()
    expect(page.locator(".launcher")).to_have_count(0)
    assert len(asked) == 1


@pytest.mark.parametrize("contact", ["mailto:help@example.com", "https://forum.example.com/ask"])
def test_a_refusal_and_a_failure_lead_to_a_person(browse: Browse, site: Site, contact: str) -> None:
    site.config["contact"] = contact
    site.replies += [
        stream(answer("No.", status="not_in_docs", source_chunks=[])),
        refused(500),
        stream(answer("Yes.")),
    ]
    page = browse()
    for _ in range(2):
        link = ask(page).get_by_role("link", name="Ask a person")
        expect(link).to_have_attribute("href", contact)
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    expect(turn.get_by_role("link", name="Ask a person")).to_have_count(0)


def test_the_conversation_can_be_saved_as_markdown(browse: Browse, site: Site, tmp_path: Path) -> None:
    chunk = source(1, url="javascript:alert(1)")
    site.replies += [
        checked(of_segments(segment("Run it. ", "2"), segment("Then sync.", "1"))),
        stream(answer("Hm.", citations=["1"], source_chunks=[chunk])),
    ]
    page = browse("/strict.html")
    ask(page, "How do\nI lock?").locator(".copy_answer").wait_for()
    ask(page, "And?").locator(".copy_answer").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save the conversation").click()
    saved.value.save_as(tmp_path / "saved.md")
    assert saved.value.suggested_filename == "conversation.md"
    assert (tmp_path / "saved.md").read_text("utf-8") == (
        "# Ask the docs\n\n## How do I lock?\n\nRun it. [1] Then sync. [2]\n\n"
        f"1. [Locking › Section 2]({site.url}/second.html#s2)\n2. [Locking › Section 1]({site.url}/second.html#s1)\n\n"
        "## And?\n\nHm. [1]\n\n1. Locking › Section 1\n"
    )


def test_a_new_chat_can_be_undone(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page, "One?").locator(".copy_answer").wait_for()
    before = stored(page)
    page.get_by_role("button", name="New chat").click()
    back = page.get_by_role("button", name="Back to the last chat")
    # It is no question that could be asked.
    expect(back.locator("svg")).to_have_count(1)
    assert back.evaluate("node => getComputedStyle(node).borderTopColor") == "rgba(0, 0, 0, 0)"
    back.click()
    expect(page.locator(".answered")).to_be_visible()
    assert stored(page) == before
    ask(page, "Two?").locator(".copy_answer").wait_for()
    assert site.asked[1]["thread_id"] == site.asked[0]["thread_id"]


def test_a_suggestion_that_is_a_page_is_there_to_be_read(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("Yes.", citations=["1"], follow_ups=["Locking", "How do I sync?"])))
    turn = ask(browse())
    expect(turn.get_by_text("Read next")).to_be_visible()
    expect(turn.locator(".next").get_by_role("link", name="Locking")).to_have_attribute(
        "href", f"{site.url}/second.html"
    )
    expect(turn.get_by_role("button", name="How do I sync?")).to_be_visible()
    expect(turn.get_by_role("button", name="Locking", exact=True)).to_have_count(0)


def test_a_heading_is_the_subject_of_a_question(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("Yes.", citations=["1"], follow_ups=["Timeout", "How do I sync?"])))
    turn = ask(browse())
    expect(turn.locator(".next")).to_have_text("Ask nextHow do I sync?Ask aboutTimeout")
    turn.get_by_role("button", name="Timeout").click()
    expect(turn.page.locator(".turn").last).to_contain_text("You asked: Timeout")


def test_nothing_follows_from_a_greeting(browse: Browse, site: Site) -> None:
    site.config["contact"] = "mailto:help@example.com"
    site.replies += [
        stream(answer("Yes.", citations=["1"])),
        stream(answer("Hi.", status="not_in_docs", retrieval_used=False, source_chunks=[])),
    ]
    page = browse()
    ask(page, "What is a lock?").locator(".copy_answer").wait_for()
    turn = ask(page, "thanks")
    turn.locator(".copy_answer").wait_for()
    page.wait_for_timeout(300)
    expect(turn.locator("a")).to_have_count(0)


def continue_after(milliseconds: float, route: Route) -> None:
    route.request.frame.page.wait_for_timeout(milliseconds)
    route.continue_()


def drop_network(route: Route) -> None:
    page = route.request.frame.page
    page.wait_for_timeout(500)
    page.context.set_offline(True)
    route.abort()


def test_the_button_shows_that_it_is_loading(browse: Browse) -> None:
    page = browse()
    page.route("**/panel.js", lambda route: continue_after(400, route))
    page.locator(".launcher").dispatch_event("click")
    expect(page.locator(".launcher")).to_have_attribute("aria-busy", "true")
    assert page.locator(".launcher").evaluate("node => getComputedStyle(node).animationName") == "pulse"
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator(".launcher")).not_to_have_attribute("aria-busy", "true")


def test_the_words_are_loaded_together_with_the_panel(browse: Browse) -> None:
    page = browse()
    started: list[str] = []
    page.on("request", lambda request: started.append(request.url.partition("/widget/")[2]))
    page.route("**/panel.js", lambda route: continue_after(300, route))
    open_chat(page)
    # The menu of the page follows behind the opened chat.
    assert sorted([name for name in started if name][:2]) == ["lang/en.js", "panel.js"]


def test_a_network_that_drops_after_the_question_leaves_a_way_on(browse: Browse, site: Site) -> None:
    page = browse()
    open_chat(page)
    for name in ("more/en.js", "turns.js"):
        page.route(f"**/{name}", lambda route: route.continue_())
    page.route("**/v1/chat", drop_network)
    turn = ask(page, "How?")
    expect(turn.get_by_role("button", name="Try again")).to_be_visible()
    page.context.set_offline(False)
    page.unroute("**/v1/chat")
    turn.get_by_role("button", name="Try again").click()
    expect(page.locator(".answered")).to_be_visible()


def test_pages_of_the_stand_in_name_their_api() -> None:
    # The tests above would show nothing if every page were built without an endpoint.
    assert Site().config["endpoint"] == ""
    assert pages.PAGES
