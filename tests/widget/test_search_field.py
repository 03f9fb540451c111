"""`/ask` in the site's own search field."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget.pages import page
from widget.standin import Site

Browse = Callable[..., Page]
StandIn = Callable[[str], None]

#: As the themes have them: Material, stock MkDocs, Sphinx, VitePress, DocSearch, and a form of a site's own.
FIELDS = {
    "material": '<input class="md-search__input" placeholder="Suche">',
    "stock": '<form action="/second.html"><input type="search" id="f"></form>',
    "furo": '<form action="/second.html" role="search"><input class="sidebar-search" name="q"></form>',
    "vitepress": '<input id="localsearch-input" class="search-input" maxlength="64">',
    "docsearch": '<input type="search" class="DocSearch-Input" role="combobox">',
    "plain": '<form action="/second.html"><input name="q"></form>',
    "role": '<div role="search"><input></div>',
}

#: The page's module and its words are there.
LOADED = "performance.getEntriesByType('resource').some(({ name }) => name.endsWith('more/en.js'))"

#: The site's search: it notes what it hears, and closes with Escape.
SEARCH = """<script>
window.heard = [];
document.addEventListener('keydown', event => {
  window.heard.push(event.key);
  if (event.key === 'Escape') document.querySelector('#overlay').hidden = true;
});
document.addEventListener('input', event => window.heard.push(`input ${event.composedPath()[0].value}`));
</script>"""


def search_page(field: str) -> str:
    return page(body=f'<div id="overlay">{field}</div>{SEARCH}').html


@pytest.mark.parametrize("theme", FIELDS)
def test_a_question_behind_ask_goes_to_the_chat(browse: Browse, site: Site, standin_page: StandIn, theme: str) -> None:
    standin_page(search_page(FIELDS[theme]))
    tab = browse("/tagged.html")
    field = tab.locator("#overlay input")
    field.focus()
    tab.wait_for_function(LOADED)
    tab.keyboard.type("/ask how do I lock? ")
    tab.evaluate("window.heard = []")
    tab.keyboard.press("Enter")
    expect(tab.locator(".answered")).to_be_visible()
    assert site.asked[0]["query"] == "how do I lock?"
    assert tab.evaluate("window.heard") == ["input ", "Escape"]
    assert field.input_value() == ""
    expect(tab.locator("#overlay")).to_be_hidden()
    expect(tab.get_by_role("textbox", name="Ask a question")).to_be_focused()
    assert tab.url.endswith("/tagged.html")


def test_a_field_in_a_shadow_root_counts_too(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(search_page('<div id="island"></div>'))
    tab = browse("/tagged.html")
    tab.evaluate("""() => {
      const field = Object.assign(document.createElement('input'), { role: 'combobox' });
      document.querySelector('#island').attachShadow({ mode: 'open' }).append(field);
    }""")
    field = tab.locator("#island input")
    tab.locator("#search").focus()
    field.focus()
    tab.wait_for_function(LOADED)
    tab.keyboard.type("/ask how?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".answered")).to_be_visible()
    assert site.asked[0]["query"] == "how?"
    assert field.input_value() == ""


@pytest.mark.parametrize("text", ["how do I lock?", "/ask", "/ask  ", "/asking for a friend", "see /ask how"])
def test_every_other_search_is_the_site_s(browse: Browse, site: Site, standin_page: StandIn, text: str) -> None:
    standin_page(search_page(FIELDS["material"]))
    tab = browse("/tagged.html")
    field = tab.locator("#overlay input")
    field.focus()
    tab.wait_for_function(LOADED)
    tab.keyboard.type(text)
    tab.keyboard.press("Enter")
    tab.wait_for_timeout(300)
    assert "Enter" in tab.evaluate("window.heard")
    assert field.input_value() == text
    assert site.asked == []


def test_no_other_field_is_read(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(search_page('<input type="text" name="nickname">'))
    tab = browse("/tagged.html")
    tab.locator("#overlay input").focus()
    tab.wait_for_function(LOADED)
    tab.keyboard.type("/ask me")
    tab.keyboard.press("Enter")
    tab.wait_for_timeout(300)
    assert "Enter" in tab.evaluate("window.heard")
    assert site.asked == []


def test_enter_that_ends_a_composition_asks_nothing(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(search_page(FIELDS["material"]))
    tab = browse("/tagged.html")
    field = tab.locator("#overlay input")
    field.fill("/ask 鍵")
    tab.wait_for_function(LOADED)
    press = """(field, isComposing) => {
      field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', isComposing, bubbles: true }));
    }"""
    field.evaluate(press, True)
    assert field.input_value() == "/ask 鍵"
    field.evaluate(press, False)
    expect(tab.locator(".answered")).to_be_visible()
    assert site.asked[0]["query"] == "鍵"


def test_a_framework_hears_that_the_field_is_empty(browse: Browse, standin_page: StandIn) -> None:
    standin_page(search_page(FIELDS["docsearch"]))
    tab = browse("/tagged.html")
    # As React does: what is assigned is taken as known, so only a change behind its back is news.
    tab.evaluate("""() => {
      const field = document.querySelector('#overlay input');
      const { get, set } = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value');
      let known = '';
      Object.defineProperty(field, 'value', { get, set(value) { set.call(field, known = value); } });
      field.addEventListener('input', () => {
        if (field.value !== known) window.state = known = field.value;
      });
    }""")
    tab.locator("#overlay input").focus()
    tab.wait_for_function(LOADED)
    tab.keyboard.type("/ask how?")
    assert tab.evaluate("window.state") == "/ask how?"
    tab.keyboard.press("Enter")
    expect(tab.locator(".answered")).to_be_visible()
    assert tab.evaluate("window.state") == ""


def test_a_modal_search_closes_too(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(search_page("<dialog><input type=search></dialog>"))
    tab = browse("/tagged.html")
    tab.evaluate("document.querySelector('#overlay dialog').showModal()")
    tab.locator("#search").evaluate("field => field.dispatchEvent(new FocusEvent('focusin', { bubbles: true }))")
    tab.wait_for_function(LOADED)
    tab.keyboard.type("/ask how?")
    tab.keyboard.press("Enter")
    expect(tab.locator(".answered")).to_be_visible()
    assert not tab.evaluate("document.querySelector('#overlay dialog').open")
