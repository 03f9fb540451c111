"""The launcher on the page: what it loads when, opening and closing the panel, no effect on the page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, open_chat
from widget.standin import Site

Browse = Callable[..., Page]


def loaded(page: Page) -> set[str]:
    """Return the widget's modules that the page has asked for."""
    urls = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")
    return {url.rpartition("/")[2] for url in urls if "/widget/" in url}


def test_a_page_loads_two_small_modules_and_no_more(browse: Browse) -> None:
    page = browse()
    expect(page.get_by_role("button", name="Ask the docs")).to_be_visible()
    assert loaded(page) == {"launcher.js", "config.js"}


@pytest.mark.parametrize("touch", ["hover", "focus"])
def test_the_panel_is_loaded_when_it_is_likely_to_be_opened(browse: Browse, touch: str) -> None:
    page = browse()
    getattr(page.get_by_role("button", name="Ask the docs"), touch)()
    page.wait_for_function("performance.getEntriesByType('resource').some(e => e.name.endsWith('/panel.js'))")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_button_opens_the_panel_and_focuses_the_field(browse: Browse) -> None:
    page = browse()
    expect(open_chat(page)).to_be_visible()
    expect(page.get_by_role("textbox", name="Ask a question")).to_be_focused()
    expect(page.get_by_text("Ask anything")).to_be_visible()


@pytest.mark.parametrize("how", ["Escape", "button"])
@pytest.mark.parametrize("width", [1280, 375])
def test_closing_returns_the_focus_to_the_button(browse: Browse, how: str, width: int) -> None:
    page = browse(viewport={"width": width, "height": 700})
    dialog = open_chat(page)
    if how == "Escape":
        page.keyboard.press("Escape")
    else:
        dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_role("button", name="Ask the docs")).to_be_focused()
    expect(page.get_by_role("button", name="Ask the docs")).to_have_attribute("aria-expanded", "false")
    open_chat(page)
    expect(dialog).to_be_visible()


def test_a_second_launcher_adds_no_second_chat(browse: Browse, site: Site) -> None:
    page = browse()
    page.evaluate("import('/widget/launcher.js?again')")
    page.wait_for_function("performance.getEntriesByType('resource').some(e => e.name.endsWith('?again'))")
    expect(page.locator("chapter-verse")).to_have_count(1)


def test_the_page_gets_no_global_and_no_cookie(browse: Browse) -> None:
    page = browse()
    before = set(page.evaluate("Object.getOwnPropertyNames(window)"))
    page.goto(page.url + "?x")
    ask(page).locator(".answered").wait_for()
    assert set(page.evaluate("Object.getOwnPropertyNames(window)")) == before
    assert page.evaluate("document.cookie") == ""


def test_the_site_s_shortcuts_do_not_hear_what_is_typed(browse: Browse) -> None:
    page = browse("/stock.html")
    open_chat(page)
    page.keyboard.type("is n?")
    assert page.evaluate("window.shortcuts") == []
    expect(page.get_by_role("textbox", name="Ask a question")).to_have_value("is n?")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("s")
    assert page.evaluate("window.shortcuts") == ["s", "s", "s"]


def test_a_chat_that_does_not_load_says_so(browse: Browse) -> None:
    page = browse()
    page.route("**/panel.js", lambda route: route.abort())
    page.get_by_role("button", name="Ask the docs").click()
    expect(page.get_by_role("button", name="Chat did not load: reload the page")).to_be_visible()


def test_an_empty_chat_names_the_site(browse: Browse, site: Site) -> None:
    first = "Ask anything about {}. Every answer links to its section."
    page = browse()
    open_chat(page)
    expect(page.get_by_text(first.format("these docs"))).to_be_visible()
    site.config["site"] = "Harbor $& Dock"
    page.reload()
    expect(page.get_by_text(first.format("Harbor $& Dock"))).to_be_visible()


def test_the_title_and_the_starters_are_the_site_s(browse: Browse, site: Site) -> None:
    site.config.update(
        title="Frag die Doku", starters=["Wie sperre ich?"], placeholder="Deine Frage", greeting="Hallo."
    )
    page = browse()
    page.get_by_role("button", name="Frag die Doku").click()
    dialog = page.get_by_role("dialog", name="Frag die Doku")
    expect(dialog.get_by_text("Hallo.")).to_be_visible()
    expect(dialog.get_by_role("textbox", name="Deine Frage")).to_be_visible()
    dialog.get_by_role("button", name="Wie sperre ich?").click()
    expect(dialog.get_by_text("You asked: Wie sperre ich?").last).to_be_visible()
    expect(dialog.locator(".answered")).to_be_visible()
    assert site.asked[0]["query"] == "Wie sperre ich?"


def test_every_word_can_be_replaced(browse: Browse, site: Site) -> None:
    site.config["strings"] = {"answered": "Aus der Doku", "close": "Zu"}
    page = browse()
    expect(ask(page).get_by_text("Aus der Doku")).to_be_visible()
    expect(page.get_by_role("button", name="Zu")).to_be_visible()


def test_print_leaves_the_chat_out(browse: Browse) -> None:
    page = browse()
    page.emulate_media(media="print")
    expect(page.locator("chapter-verse")).to_be_hidden()
