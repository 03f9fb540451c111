"""Ways to ask: the shortcut, links, the site's scripts, starters, questions from a page, earlier questions."""

from collections.abc import Callable
from threading import Event
from typing import Any

import pytest
from playwright.sync_api import Dialog, Page, expect

from widget.chat import ask, open_chat
from widget.pages import answer
from widget.pages import page as page_of
from widget.standin import Reply, Site, sse, stream

Browse = Callable[..., Page]
FIELD = "Ask a question"


@pytest.mark.parametrize("key", ["Control+i", "Meta+i"])
def test_a_shortcut_opens_the_chat_with_what_is_selected(browse: Browse, site: Site, key: str) -> None:
    page = browse()
    page.locator("#p1").select_text()
    page.keyboard.press(key)
    expect(page.get_by_role("textbox", name=FIELD)).to_be_focused()
    expect(page.locator("form q")).to_have_text("Paragraph 1 says how to lock and sync a project.")
    page.keyboard.press("Enter")
    page.locator(".answered").wait_for()
    assert site.asked[0]["selected_text"] == "Paragraph 1 says how to lock and sync a project."


def test_the_shortcut_works_from_the_button_and_gives_the_focus_back(browse: Browse) -> None:
    page = browse()
    page.locator("#next").focus()
    page.keyboard.press("Control+i")
    expect(page.get_by_role("textbox", name=FIELD)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#next")).to_be_focused()
    page.get_by_role("button", name="Ask the docs").focus()
    page.keyboard.press("Control+i")
    expect(page.get_by_role("textbox", name=FIELD)).to_be_focused()


def test_the_shortcut_leaves_typing_and_other_keys_alone(browse: Browse) -> None:
    page = browse()
    page.locator("#search").focus()
    page.keyboard.press("Control+i")
    page.evaluate("document.body.tabIndex = 0, document.body.focus()")
    page.keyboard.press("i")
    page.keyboard.press("Control+Shift+I")
    page.wait_for_timeout(300)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_site_can_do_without_the_shortcut(browse: Browse, site: Site) -> None:
    site.config["shortcut"] = False
    page = browse()
    page.keyboard.press("Control+i")
    page.wait_for_timeout(300)
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_link_asks_once(browse: Browse, site: Site) -> None:
    page = browse("/?a=1&ask=How+do+I+%22lock%22%3F#s1")
    expect(page.get_by_text('You asked: How do I "lock"?').first).to_be_visible()
    page.locator(".answered").wait_for()
    assert page.url == f"{site.url}/?a=1#s1"
    page.reload()
    page.locator(".answered").wait_for()
    assert [query["query"] for query in site.asked] == ['How do I "lock"?']


def test_the_site_s_scripts_open_ask_close_and_hear(browse: Browse, site: Site) -> None:
    page = browse()
    page.evaluate("""() => {
      window.heard = [];
      for (const type of ['open', 'close', 'ask', 'answer', 'error']) {
        chapterverse.on(type, detail => heard.push([type, detail?.text ?? detail?.status]));
      }
    }""")
    page.evaluate("chapterverse.ask('How?')")
    page.locator(".answered").wait_for()
    page.evaluate("chapterverse.close()")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.evaluate("chapterverse.open({ text: 'Why?' })")
    expect(page.get_by_role("textbox", name=FIELD)).to_have_value("Why?")
    assert page.evaluate("heard") == [
        ["open", None],
        ["ask", "How?"],
        ["answer", "answered"],
        ["close", None],
        ["open", None],
    ]
    assert [query["query"] for query in site.asked] == ["How?"]


STARTERS = '<div hidden data-chapterverse-starters="What is a lock?|When to sync?"></div>'


def test_a_page_has_starters_of_its_own_before_the_site_s(browse: Browse, site: Site) -> None:
    site.config["starters"] = ["How do I begin?"]
    page = browse()
    page.evaluate(
        "html => document.body.append(new DOMParser().parseFromString(html, 'text/html').body.firstChild)", STARTERS
    )
    dialog = open_chat(page)
    expect(dialog.locator(".thread .chip")).to_have_text(["What is a lock?", "When to sync?", "How do I begin?"])
    dialog.get_by_role("button", name="When to sync?").click()
    page.locator(".answered").wait_for()
    assert site.asked[0]["query"] == "When to sync?"


def test_a_question_says_what_narrows_it_until_the_reader_objects(browse: Browse, site: Site) -> None:
    site.config["version"] = "1.2"
    page = browse("/second.html?x=1#s2")
    open_chat(page)
    chip = page.get_by_role("button", name="Within 1.2")
    expect(chip).to_be_visible()
    ask(page, "One?").locator(".answered").wait_for()
    chip.click()
    expect(chip).to_be_hidden()
    expect(page.get_by_role("textbox", name=FIELD)).to_be_focused()
    ask(page, "Two?").locator(".answered").wait_for()
    page.get_by_role("button", name="New chat").click()
    expect(chip).to_be_visible()
    place = {"page_url": f"{site.url}/second.html", "language": "en", "version": "1.2"}
    assert {key: site.asked[0].get(key) for key in place} == place
    assert not place.keys() & site.asked[1].keys()


def test_a_site_can_leave_the_page_out(browse: Browse, site: Site) -> None:
    site.config["scope"] = False
    page = browse()
    ask(page).locator(".answered").wait_for()
    expect(page.get_by_text("From this page")).to_be_hidden()
    assert "page_url" not in site.asked[0]


def test_arrow_keys_go_through_the_questions_asked(browse: Browse) -> None:
    page = browse()
    for question in ("One?", "Two?"):
        ask(page, question).locator(".copy_answer").wait_for()
    field = page.get_by_role("textbox", name=FIELD)
    for key, text in (("Up", "Two?"), ("Up", "One?"), ("Up", "One?"), ("Down", "Two?"), ("Down", "")):
        page.keyboard.press(f"Arrow{key}")
        expect(field).to_have_value(text)
    page.keyboard.type("new")
    page.keyboard.press("ArrowUp")
    expect(field).to_have_value("new")


def test_the_script_tag_can_say_what_the_site_decides(browse: Browse, site: Site, standin_page: Any) -> None:
    tag = 'src="/widget/launcher.js" data-title="Fragen" data-starters="A?|B?" data-layout="side"'
    standin_page(page_of().html.replace('src="/widget/launcher.js"', tag))
    page = browse("/tagged.html")
    page.get_by_role("button", name="Fragen").click()
    dialog = page.get_by_role("dialog", name="Fragen")
    expect(dialog.locator(".thread .chip")).to_have_text(["A?", "B?"])
    expect(dialog).to_have_class("side")
    box = dialog.bounding_box()
    assert box
    assert (box["y"], box["height"], box["x"] + box["width"]) == (0, 800, 1280)


CONSENT = "Questions are sent to Example Inc."


def test_nothing_is_loaded_before_the_reader_agrees(browse: Browse, site: Site) -> None:
    site.config["consent"] = CONSENT
    asked: list[str] = []
    answers = [False, True]

    def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.accept() if answers.pop(0) else dialog.dismiss()

    page = browse()
    page.on("dialog", answer)
    page.locator("#p1").select_text()
    button = page.get_by_role("button", name="Ask the docs")
    button.hover()
    button.click()
    page.wait_for_timeout(400)
    loaded = "performance.getEntriesByType('resource').map(e => e.name.split('/widget/')[1]).filter(Boolean).sort()"
    assert page.evaluate(loaded) == ["config.js", "launcher.js"]
    expect(page.get_by_role("dialog")).to_have_count(0)
    button.click()
    page.get_by_role("dialog").wait_for()
    ask(page).locator(".answered").wait_for()
    page.reload()
    expect(page.locator(".answered")).to_be_visible()
    assert asked == [CONSENT, CONSENT]


def test_a_page_of_its_own_holds_the_chat(browse: Browse, site: Site, standin_page: Any) -> None:
    standin_page(page_of(body="<chapter-verse-ask></chapter-verse-ask>").html)
    page = browse("/tagged.html")
    chat = page.locator("chapter-verse-ask")
    field = chat.get_by_role("textbox", name=FIELD)
    expect(field).to_be_visible()
    expect(field).not_to_be_focused()
    expect(page.get_by_role("button", name="Ask the docs")).to_be_hidden()
    field.fill("How?")
    page.keyboard.press("Enter")
    expect(chat.locator(".answered")).to_be_visible()
    page.keyboard.press("Escape")
    expect(chat.locator(".answered")).to_be_visible()
    page.evaluate("document.querySelector('chapter-verse-ask').remove()")
    page.get_by_role("button", name="Ask the docs").click()
    expect(page.locator("chapter-verse .answered")).to_be_visible()
    page.evaluate("document.querySelector('main').append(document.createElement('chapter-verse-ask'))")
    expect(chat.locator(".answered")).to_be_visible()
    expect(page.get_by_role("dialog")).to_have_count(1)


def test_a_reader_takes_back_what_the_question_was_taken_for(browse: Browse, site: Site) -> None:
    corrected = {"query": "How do I lock?", "reason": "corrected", "original": "How do I lcok?"}
    site.replies.append(stream(answer("Run `uv lock`.", searched_as=corrected)))
    page = browse()
    turn = ask(page, "How do I lcok?")
    expect(turn.locator(".searched")).to_contain_text("Showing results for How do I lock?")
    led = {"query": "How do I lock?", "reason": "follow_up", "original": 'How do I "lcok?"'}
    site.replies.append(stream(answer("So.", searched_as=led)))
    turn.get_by_role("button", name="Search for How do I lcok?").click()
    last = page.locator(".turn").nth(1)
    following = last.get_by_role("button", name="Following up on How do I lock?")
    expect(following).to_have_attribute("title", "Ask without it")
    assert site.asked[-1]["query"] == 'How do I "lcok?"'
    assert site.asked[-1]["conversation_history"]
    following.click()
    page.locator(".turn").nth(2).locator(".answered").wait_for()
    assert site.asked[-1]["query"] == 'How do I "lcok?"'
    assert site.asked[-1]["conversation_history"] == []


@pytest.mark.parametrize(("others", "shown"), [(["en", "x-default"], False), (["en", "de", "x-default"], True)])
def test_the_language_is_named_where_there_is_another(
    browse: Browse, standin_page: Callable[[str], None], others: list[str], shown: bool
) -> None:
    links = "".join(f'<link rel="alternate" hreflang="{language}" href="/{language}/">' for language in others)
    standin_page(page_of(links).html)
    page = browse("/tagged.html")
    open_chat(page)
    expect(page.get_by_role("button", name="Within en")).to_be_visible(visible=shown)


def test_the_shortcut_closes_too_and_is_left_to_a_page_that_uses_it(browse: Browse) -> None:
    page = browse()
    for focus in ("field", "page"):
        page.keyboard.press("Control+i")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        if focus == "page":
            page.locator("h1").click()
        else:
            expect(page.get_by_role("textbox", name=FIELD)).to_be_focused()
        page.keyboard.press("Control+i")
        expect(dialog).to_be_hidden()
    page.evaluate("document.addEventListener('keydown', event => event.preventDefault())")
    page.locator("h1").click()
    page.keyboard.press("Control+i")
    page.wait_for_timeout(300)
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_what_is_read_and_searched_is_named_while_a_reader_waits(browse: Browse, site: Site) -> None:
    read, searched, still = Event(), Event(), Event()
    final = answer("Run it.", citations=["1"])
    meta = sse("meta", {"sources": final["source_chunks"]})
    tool = sse("tool", {"id": "1", "name": "search_docs", "query": "rotate a key"})
    done = sse("tool", {"id": "1", "name": "search_docs", "query": "never named", "ok": True})
    site.replies.append(Reply((meta, read, tool, searched, done, still, sse("final", final))))
    page = browse(timezone_id="UTC")
    page.clock.install()
    turn = ask(page)
    expect(turn.locator(".busy")).to_have_text("Reading Locking › Section 1…")
    read.set()
    expect(turn.locator(".busy")).to_have_text("Searching… rotate a key")
    searched.set()
    page.clock.run_for(9000)
    expect(turn.locator(".busy")).to_have_text("Still working…")
    still.set()
    expect(turn.locator(".answered")).to_be_visible()
    page.clock.run_for(9000)
    expect(turn.locator(".busy")).to_have_count(0)


def test_a_lost_connection_is_said_at_once(browse: Browse, site: Site) -> None:
    never = Event()
    site.replies.append(stream(answer("Late."), "Half", never))
    page = browse()
    turn = ask(page)
    expect(turn.get_by_text("Half")).to_be_visible()
    page.evaluate("dispatchEvent(new Event('offline'))")
    expect(turn.locator(".error")).to_contain_text("You are offline.")
    expect(turn.get_by_text("Half")).to_be_visible()
    never.set()
    turn.get_by_role("button", name="Try again").click()
    expect(page.locator(".answered")).to_be_visible()
