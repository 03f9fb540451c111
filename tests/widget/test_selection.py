"""Asking about text that is selected on the page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, open_chat, stored
from widget.pages import answer, source
from widget.standin import Site, stream

Browse = Callable[..., Page]
SELECT = """selector => getSelection().selectAllChildren(document.querySelector(selector))"""


def select(page: Page, selector: str = "#p1") -> None:
    page.evaluate(SELECT, selector)


def offer(page: Page) -> None:
    page.get_by_role("button", name="Ask about this").click()
    expect(page.get_by_role("textbox", name="Ask a question")).to_be_focused()


def test_a_selection_loads_its_module_and_nothing_else(browse: Browse) -> None:
    page = browse()
    select(page)
    expect(page.get_by_role("button", name="Ask about this")).to_be_visible()
    urls = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert {url.rpartition("/")[2] for url in urls if "/widget/" in url} == {"launcher.js", "config.js", "selection.js"}


def test_the_offer_stands_beside_the_selection_and_goes_with_it(browse: Browse) -> None:
    page = browse()
    page.locator("#p1").dblclick(position={"x": 30, "y": 8})
    button = page.get_by_role("button", name="Ask about this")
    expect(button).to_be_visible()
    text, box = page.locator("#p1").bounding_box(), button.bounding_box()
    assert text
    assert box
    assert 0 <= box["y"] - (text["y"] + text["height"]) < 30
    page.mouse.wheel(0, 60)
    page.wait_for_function("scrollY > 50")
    page.wait_for_timeout(50)
    moved = button.bounding_box()
    assert moved
    assert abs(box["y"] - moved["y"] - page.evaluate("scrollY")) < 2
    page.locator("#s1").click()
    expect(button).to_be_hidden()


def test_a_selection_by_keyboard_is_offered_too(browse: Browse) -> None:
    page = browse()
    page.evaluate("getSelection().collapse(document.querySelector('#p1').firstChild, 0)")
    for _ in range(2):
        page.evaluate("getSelection().modify('extend', 'forward', 'word')")
    expect(page.get_by_role("button", name="Ask about this")).to_be_visible()
    offer(page)
    expect(page.locator(".quote")).to_contain_text("Paragraph 1")


def test_a_selection_by_touch_is_offered_too(browse: Browse) -> None:
    page = browse(viewport={"width": 375, "height": 700}, has_touch=True, is_mobile=True)
    select(page)
    page.get_by_role("button", name="Ask about this").tap()
    expect(page.locator(".quote")).to_contain_text("Paragraph 1 says")


def test_the_selection_is_quoted_and_sent(browse: Browse, site: Site) -> None:
    site.replies.append(
        stream(answer("It locks.", citations=["1"], mode="selected_text", source_chunks=[source(1, url=None)]))
    )
    page = browse()
    select(page)
    offer(page)
    expect(page.locator(".quote")).to_contain_text("Paragraph 1 says how to lock")
    turn = ask(page, "What does it say?")
    expect(turn.get_by_text("From the selected text")).to_be_visible()
    expect(turn.locator(".asked")).to_contain_text("Paragraph 1 says how to lock")
    expect(page.locator(".quote")).to_be_hidden()
    assert site.asked[0]["query"] == "What does it say?"
    assert site.asked[0]["selected_text"] == "Paragraph 1 says how to lock and sync a project."


def test_a_selection_alone_is_a_question(browse: Browse, site: Site) -> None:
    page = browse()
    select(page)
    offer(page)
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".answered")).to_be_visible()
    assert "query" not in site.asked[0]
    assert stored(page)["messages"][0]["content"] == "Paragraph 1 says how to lock and sync a project."


def test_the_quoted_selection_can_be_removed(browse: Browse, site: Site) -> None:
    page = browse()
    select(page)
    offer(page)
    page.get_by_role("button", name="Remove the selected text").click()
    expect(page.locator(".quote")).to_be_hidden()
    ask(page).locator(".answered").wait_for()
    assert "selected_text" not in site.asked[0]


def test_a_long_selection_is_cut_to_what_the_api_takes(browse: Browse, site: Site) -> None:
    page = browse()
    page.evaluate("document.querySelector('#p1').textContent = 'a'.repeat(4999) + '🔒'.repeat(9)")
    select(page)
    offer(page)
    ask(page).locator(".answered").wait_for()
    assert site.asked[0]["selected_text"] == "a" * 4999 + "\ufffd"


@pytest.mark.parametrize("selector", ["#search", "#empty"])
def test_a_field_and_a_selection_without_words_are_not_offered(browse: Browse, selector: str) -> None:
    page = browse()
    select(page)
    button = page.get_by_role("button", name="Ask about this")
    expect(button).to_be_visible()
    page.evaluate("document.querySelector('#p2').insertAdjacentHTML('afterend', '<p id=empty>— … —</p>')")
    if selector == "#search":
        page.locator(selector).select_text()
    else:
        select(page, selector)
    expect(button).to_be_hidden()


def test_text_in_the_chat_is_not_offered(browse: Browse) -> None:
    page = browse()
    select(page)
    button = page.get_by_role("button", name="Ask about this")
    expect(button).to_be_visible()
    open_chat(page)
    page.get_by_text("Answers cite these docs").dblclick()
    expect(button).to_be_hidden()
