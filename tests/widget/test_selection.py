"""Questions about selected text of the page."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from widget.chat import ask, open_chat, stored
from widget.pages import answer, page, source
from widget.standin import Site, stream

Browse = Callable[..., Page]
SELECT = """selector => {
  const element = document.querySelector(selector);
  element.scrollIntoView({ block: 'center' });
  getSelection().selectAllChildren(element);
}"""
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 700}, "has_touch": True, "is_mobile": True}


def select(tab: Page, selector: str = "#p1") -> Locator:
    """Select an element's text, and return the offer."""
    tab.evaluate(SELECT, selector)
    return tab.get_by_role("button", name="Ask about this", exact=True)


def offer(tab: Page, selector: str = "#p1") -> None:
    select(tab, selector).click()
    expect(tab.get_by_role("textbox", name="Ask a question")).to_be_focused()
    expect(tab.locator(".quote")).to_be_visible()


def box(locator: Locator) -> dict[str, float]:
    found = locator.bounding_box()
    assert found
    x, y, width, height = found["x"], found["y"], found["width"], found["height"]
    return {"x": x, "y": y, "height": height, "right": x + width, "bottom": y + height}


def inside(found: dict[str, float], width: float, height: float) -> bool:
    return found["x"] >= 0 and found["y"] >= 0 and found["right"] <= width and found["bottom"] <= height


def test_a_selection_loads_its_module_and_nothing_of_the_chat(browse: Browse) -> None:
    tab = browse()
    expect(select(tab)).to_be_visible()
    urls = tab.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    assert {url.rpartition("/widget/")[2] for url in urls if "/widget/" in url} == {
        "launcher.js",
        "config.js",
        "page.js",
        "lang/more/en.js",
    }


def test_the_offer_stands_below_the_selection_moves_and_goes_with_it(browse: Browse) -> None:
    tab = browse()
    tab.locator("#p1").dblclick(position={"x": 30, "y": 8})
    button = tab.get_by_role("button", name="Ask about this")
    expect(button).to_be_visible()
    text, before = box(tab.locator("#p1")), box(button)
    assert 0 <= before["y"] - text["bottom"] < 30
    assert before["height"] >= 24
    tab.mouse.wheel(0, 60)
    tab.wait_for_function("scrollY > 50")
    tab.wait_for_timeout(50)
    assert abs(before["y"] - box(button)["y"] - tab.evaluate("scrollY")) < 2
    tab.locator("#s1").click()
    expect(button).to_be_hidden()


def test_nothing_is_offered_before_the_mouse_button_is_up(browse: Browse) -> None:
    tab = browse()
    expect(select(tab, "#p2")).to_be_visible()
    text = box(tab.locator("#p1"))
    tab.mouse.move(text["x"] + 2, text["y"] + 9)
    tab.mouse.down()
    tab.mouse.move(text["x"] + 90, text["y"] + 9, steps=4)
    tab.wait_for_timeout(600)
    button = tab.get_by_role("button", name="Ask about this")
    held = tab.evaluate("getSelection().toString()")
    assert held
    before = box(button) if button.is_visible() else None
    tab.mouse.up()
    tab.wait_for_timeout(400)
    expect(button).to_be_visible()
    assert before != box(button)


@pytest.mark.parametrize("where", ["start", "end"])
def test_the_offer_never_covers_the_selection_and_never_leaves_the_window(browse: Browse, where: str) -> None:
    tab = browse()
    button = select(tab, "#p2")
    tab.evaluate("where => document.querySelector('#p2').scrollIntoView({ block: where })", where)
    expect(button).to_be_visible()
    text, found = box(tab.locator("#p2")), box(button)
    assert inside(found, 1280, 800)
    assert found["bottom"] <= text["y"] or found["y"] >= text["bottom"]


def test_a_selection_that_fills_the_window_has_no_offer_on_it(browse: Browse) -> None:
    tab = browse()
    tab.evaluate("scrollTo(0, 900)")
    button = select(tab, "main")
    expect(button).to_be_visible()
    assert box(button)["bottom"] <= 0


def test_right_to_left_the_offer_stands_at_the_left_end(browse: Browse, standin_page: Callable[[str], None]) -> None:
    standin_page(page().html.replace("<html ", '<html dir="rtl" '))
    tab = browse("/tagged.html")
    button = select(tab)
    expect(button).to_be_visible()
    left = tab.evaluate("getSelection().getRangeAt(0).getBoundingClientRect().left")
    assert left > 900
    assert abs(box(button)["x"] - left) < 20
    assert inside(box(button), 1280, 800)


def test_a_selection_by_keyboard_is_offered_and_taken_by_keyboard(browse: Browse) -> None:
    tab = browse()
    tab.evaluate("getSelection().collapse(document.querySelector('#p1').firstChild, 0)")
    for _ in range(2):
        tab.evaluate("getSelection().modify('extend', 'forward', 'word')")
    button = tab.get_by_role("button", name="Ask about this")
    expect(button).to_be_visible()
    tab.get_by_role("button", name="Ask the docs").focus()
    tab.keyboard.press("Shift+Tab")
    expect(button).to_be_focused()
    tab.keyboard.press("Enter")
    expect(tab.locator(".quote")).to_contain_text("Paragraph 1")


def test_escape_declines_until_something_else_is_selected(browse: Browse) -> None:
    tab = browse()
    button = select(tab)
    expect(button).to_be_visible()
    tab.keyboard.press("Escape")
    expect(button).to_be_hidden()
    tab.mouse.move(300, 300)
    tab.mouse.move(300, 10)
    tab.wait_for_timeout(500)
    expect(button).to_be_hidden()
    expect(select(tab, "#p2")).to_be_visible()


def test_a_selection_by_touch_is_offered_too(browse: Browse) -> None:
    tab = browse(**PHONE)
    button = select(tab)
    expect(button).to_be_visible()
    assert inside(box(button), 375, 700)
    button.tap()
    expect(tab.locator(".quote")).to_contain_text("Paragraph 1 says")


def test_the_selection_is_quoted_and_sent(browse: Browse, site: Site) -> None:
    site.replies.append(
        stream(answer("It locks.", citations=["1"], mode="selected_text", source_chunks=[source(1, url=None)]))
    )
    tab = browse("/strict.html")
    offer(tab)
    expect(tab.locator(".quote")).to_contain_text("Paragraph 1 says how to lock")
    turn = ask(tab, "What does it say?")
    expect(turn.get_by_text("From the selected text")).to_be_visible()
    expect(turn.locator(".asked")).to_contain_text("Paragraph 1 says how to lock")
    expect(tab.locator(".quote")).to_be_hidden()
    assert site.asked[0]["query"] == "What does it say?"
    assert site.asked[0]["selected_text"] == "Paragraph 1 says how to lock and sync a project."


def test_a_selection_alone_is_a_question(browse: Browse, site: Site) -> None:
    tab = browse()
    offer(tab)
    tab.get_by_role("button", name="Send").click()
    expect(tab.locator(".answered")).to_be_visible()
    assert "query" not in site.asked[0]
    assert stored(tab)["messages"][0]["content"] == "Paragraph 1 says how to lock and sync a project."


def test_the_quoted_selection_can_be_removed(browse: Browse, site: Site) -> None:
    tab = browse()
    offer(tab)
    tab.get_by_role("button", name="Remove the selected text").click()
    expect(tab.locator(".quote")).to_be_hidden()
    expect(tab.get_by_role("textbox", name="Ask a question")).to_be_focused()
    ask(tab).locator(".answered").wait_for()
    assert "selected_text" not in site.asked[0]


def test_another_selection_takes_the_place_of_the_first(browse: Browse, site: Site) -> None:
    tab = browse()
    offer(tab)
    offer(tab, "#p2")
    expect(tab.locator(".quote")).to_have_count(1)
    ask(tab).locator(".answered").wait_for()
    assert site.asked[0]["selected_text"] == "Paragraph 2 says how to lock and sync a project."


def test_who_listens_hears_what_the_question_is_about(browse: Browse) -> None:
    tab = browse()
    offer(tab)
    tree = tab.context.new_cdp_session(tab).send("Accessibility.getFullAXTree")["nodes"]
    [field] = [node for node in tree if node.get("name", {}).get("value") == "Ask a question"]
    assert field["description"]["value"] == "Paragraph 1 says how to lock and sync a project."


def test_a_long_selection_is_cut_to_what_the_api_takes(browse: Browse, site: Site) -> None:
    tab = browse()
    tab.evaluate("document.querySelector('#p1').textContent = 'a'.repeat(4999) + '🔒'.repeat(9)")
    offer(tab)
    ask(tab).locator(".answered").wait_for()
    assert site.asked[0]["selected_text"] == "a" * 4999 + "\ufffd"


@pytest.mark.parametrize("selector", ["#search", "#empty"])
def test_a_field_and_a_selection_without_words_are_not_offered(browse: Browse, selector: str) -> None:
    tab = browse()
    button = select(tab)
    expect(button).to_be_visible()
    tab.evaluate("document.querySelector('#p2').insertAdjacentHTML('afterend', '<p id=empty>— … —</p>')")
    if selector == "#search":
        tab.locator(selector).select_text()
    else:
        select(tab, selector)
    expect(button).to_be_hidden()


def test_text_in_the_chat_is_not_offered(browse: Browse) -> None:
    tab = browse()
    button = select(tab)
    expect(button).to_be_visible()
    open_chat(tab)
    tab.get_by_text("Ask anything").dblclick()
    expect(button).to_be_hidden()


def test_the_offer_is_not_printed(browse: Browse) -> None:
    tab = browse()
    button = select(tab)
    expect(button).to_be_visible()
    tab.emulate_media(media="print")
    expect(button).to_be_hidden()


def test_the_way_to_remove_the_quotation_does_not_look_like_the_way_to_send(browse: Browse) -> None:
    page = browse()
    page.evaluate("chapterverse.open({ selection: 'Some text of the page' })")
    expect(page.locator(".quote .icon")).to_be_visible()
    color = "node => getComputedStyle(node).backgroundColor"
    assert page.locator(".quote .icon").evaluate(color) != page.locator(".send").evaluate(color)
