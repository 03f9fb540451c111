"""The chat on real themes: their colors, no overlap, and their instant navigation."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from widget.pages import answer, source
from widget.sites import THEMES
from widget.standin import Reply, Site, refused, stream
from widget.test_looks import faults

Visit = Callable[..., Page]
PICTURES = Path(__file__).parents[1] / "artifacts" / "widget"
SEARCHED = [name for name, theme in THEMES.items() if theme.keys]
TOPPED = [name for name, theme in THEMES.items() if theme.top]
PANEL = "chapter-verse dialog"
#: The button that comes to the code of a finished answer.
COPY = ".code button"
#: Milliseconds that themes take to fade from light to dark, and to show "back to top".
SWITCH = 400

KEYS = "/keys.html#rotating-a-signing-key"
LIMITS = {"chapter": "Keys and docks", "section": "Limits of a dock", "url": "/keys.html#limits-of-a-dock"}
SOURCES = [
    source(
        1,
        chapter="Keys and docks",
        section="Rotating a signing key",
        snippet="The old key stays valid for 24 hours, so that crates in transit still open.",
        url=KEYS,
    ),
    source(2, snippet="A dock holds 512 crates in transit, and a crate holds 16 MB.", **LIMITS),
]
QUESTION = "How do I rotate a signing key?"


def said(*segments: tuple[str, list[str]], **changes: object) -> Reply:
    """Stream an answer of these segments, each with the ids that it cites."""
    parts = [{"text": text, "citations": ids} for text, ids in segments]
    fields: dict[str, Any] = {"segments": parts, "source_chunks": SOURCES, **changes}
    return stream(answer("".join(text for text, _ in segments), **fields))


ANSWERED = said(
    ("Run `harbor keys rotate` on the dock host:\n\n```sh\nharbor keys rotate --grace 24h\n```\n\n", []),
    ("The old key stays valid for **24 hours**, so that crates in transit still open.", ["1"]),
    ("\n\n| limit | default |\n| --- | --- |\n| crates in transit | 512 |\n| size of a crate | 16 MB |\n\n", []),
    ("No dock holds more than 512 of them.", ["2"]),
    follow_ups=["What if a key has leaked?"],
)
NOT_IN_DOCS = said(
    ("These docs do not say how to insure a crate.", []),
    status="not_in_docs",
    source_chunks=[],
    nearest=[LIMITS],
)
FAILED = refused(503, "The answering service did not answer in time.")

#: The question, the reply to it, and what shows that it is all there.
STATES: dict[str, tuple[str, Reply, str]] = {
    "answered": (QUESTION, ANSWERED, COPY),
    "not-in-docs": ("How do I insure a crate?", NOT_IN_DOCS, ".not_in_docs"),
    "error": ("And what else?", FAILED, ".error"),
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the folder of a theme's site, built when it is first asked for."""
    made: dict[str, Path] = {}

    def get(theme: str) -> Path:
        if theme not in made:
            made[theme] = THEMES[theme].build(tmp_path_factory.mktemp(theme))
        return made[theme]

    return get


@pytest.fixture
def visit(browse: Callable[..., Page], site: Site, built: Callable[[str], Path]) -> Visit:
    """Open the first page of a theme's site."""

    def open_site(theme: str, **options: object) -> Page:
        site.folder = built(theme)
        sitemap = site.folder / "sitemap.xml"
        if sitemap.exists():
            # Material follows only links that its sitemap names, host included.
            sitemap.write_text(re.sub(r"https?://[^/<]+(?=/[^/]*</loc>)", site.url, sitemap.read_text()))
        return browse("/index.html", **{"reduced_motion": "reduce", **options})

    return open_site


#: What the eye gets: a color on the ground that it is painted on, as themes like to write text in translucent black.
PAINTED = """([node, property, ground]) => {
  const canvas = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const colors = [getComputedStyle(ground).backgroundColor, getComputedStyle(node).getPropertyValue(property)];
  for (const color of ['#fff', ...colors]) {
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
  }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""


def painted(page: Page, selector: str, name: str, ground: str) -> list[int]:
    node, below = (page.locator(each).first.element_handle() for each in (selector, ground))
    channels: list[int] = page.evaluate(PAINTED, [node, name, below])
    return channels


def assert_same_colors(page: Page, theme: str) -> None:
    """Check the colors, as soon as the theme has faded and the chat has followed."""
    for _ in range(300):
        ours, theirs = colors(page, theme)
        if ours == theirs:
            return
        page.wait_for_timeout(100)
    assert ours == theirs


def colors(page: Page, theme: str) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return the colors of the chat and those of the theme."""
    look = THEMES[theme]
    # A field that has the focus has the border of a link's color.
    page.get_by_role("textbox", name="Ask a question").focus()
    ours = {
        "background": painted(page, PANEL, "background-color", PANEL),
        "text": painted(page, PANEL, "color", PANEL),
        "link": painted(page, ".field", "border-top-color", PANEL),
        "accent": painted(page, ".launcher", "background-color", PANEL),
    }
    theirs = {
        "background": painted(page, look.background, "background-color", look.background),
        "text": painted(page, look.text, "color", look.background),
        "link": painted(page, look.link, "color", look.background),
        "accent": painted(page, *look.accent, look.background),
    }
    return ours, theirs


@pytest.mark.parametrize("theme", THEMES)
def test_the_chat_wears_the_theme_s_colors_and_follows_its_switch(visit: Visit, theme: str) -> None:
    page = visit(theme)
    open_chat(page)
    assert_same_colors(page, theme)
    light = painted(page, PANEL, "background-color", PANEL)
    page.evaluate(THEMES[theme].dark)
    page.wait_for_timeout(SWITCH)
    assert_same_colors(page, theme)
    assert sum(painted(page, PANEL, "background-color", PANEL)) < sum(light)


def open_chat(page: Page) -> Locator:
    """Open the chat; the search of Material is a dialog too."""
    page.get_by_role("button", name="Ask the docs").click()
    page.locator(PANEL).wait_for()
    return page.get_by_role("textbox", name="Ask a question")


def ask(page: Page, question: str, shown: str) -> Locator:
    """Ask, and return the turn once it shows what has this selector."""
    field = page.get_by_role("textbox", name="Ask a question") if page.locator(PANEL).is_visible() else open_chat(page)
    field.fill(question)
    field.press("Enter")
    turn = page.locator(".turn").last
    turn.locator(shown).first.wait_for()
    return turn


def test_a_theme_that_follows_the_system_takes_the_chat_along(visit: Visit) -> None:
    # Furo is then dark without a word of it in the page: no attribute, no `color-scheme`.
    page = visit("furo", color_scheme="dark")
    open_chat(page)
    assert_same_colors(page, "furo")
    assert sum(painted(page, PANEL, "background-color", PANEL)) < 200


def keep(page: Page, theme: str, state: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{theme}-{state}.png")


@pytest.mark.parametrize("theme", THEMES)
def test_every_state_can_be_read_in_light_and_dark(visit: Visit, site: Site, theme: str) -> None:
    site.config["starters"] = [QUESTION, "What are the limits of a dock?"]
    page = visit(theme)
    keep(page, theme, "closed")
    open_chat(page)
    keep(page, theme, "open")
    for state, (question, reply, shown) in STATES.items():
        site.replies.append(reply)
        ask(page, question, shown)
        keep(page, theme, state)
    found = faults(page)
    page.evaluate(THEMES[theme].dark)
    page.wait_for_timeout(SWITCH)
    keep(page, theme, "dark-error")
    site.replies.append(ANSWERED)
    ask(page, QUESTION, COPY)
    keep(page, theme, "dark")
    assert found + faults(page) == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_chat_fits_a_phone(visit: Visit, site: Site, theme: str) -> None:
    page = visit(theme, viewport={"width": 375, "height": 667})
    keep(page, theme, "phone-closed")
    # A table of the page itself may be wider.
    width = page.evaluate("document.documentElement.scrollWidth")
    site.replies.append(ANSWERED)
    ask(page, QUESTION, COPY)
    keep(page, theme, "phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert faults(page) == []


def meet(one: Locator, other: Locator) -> bool:
    a, b = one.bounding_box(), other.bounding_box()
    assert a
    assert b
    level = a["x"] < b["x"] + b["width"] and b["x"] < a["x"] + a["width"]
    return level and a["y"] < b["y"] + b["height"] and b["y"] < a["y"] + a["height"]


@pytest.mark.parametrize("theme", TOPPED)
@pytest.mark.parametrize("width", [1280, 375])
def test_back_to_top_stays_free(visit: Visit, theme: str, width: int) -> None:
    page = visit(theme, viewport={"width": width, "height": 700})
    page.evaluate("scrollTo(0, 1200)")
    page.wait_for_timeout(100)
    page.evaluate("scrollTo(0, 900)")
    top = page.locator(THEMES[theme].top)
    expect(top).to_be_visible()
    page.wait_for_timeout(SWITCH)
    keep(page, theme, f"top-{width}")
    assert not meet(top, page.locator(".launcher"))


@pytest.mark.parametrize("theme", THEMES)
def test_a_citation_moves_through_the_site_as_its_own_links_do(visit: Visit, site: Site, theme: str) -> None:
    page = visit(theme)
    page.evaluate("window.same = true")
    site.replies.append(ANSWERED)
    ask(page, QUESTION, ".answered").locator("sup a").first.click()
    page.wait_for_url(f"**{KEYS}")
    expect(page.locator("h1").first).to_contain_text("Keys and docks")
    assert bool(page.evaluate("window.same")) == THEMES[theme].instant
    expect(page.locator(".turn").last.locator("sup a").first).to_be_visible()
    page.wait_for_function(
        "() => { const { top } = document.querySelector(location.hash).getBoundingClientRect();"
        " return top > -1 && top < innerHeight; }"
    )
    assert_same_colors(page, theme)


@pytest.mark.parametrize("theme", SEARCHED)
def test_the_theme_s_shortcuts_are_only_letters_in_the_chat(visit: Visit, theme: str) -> None:
    page = visit(theme)
    look = THEMES[theme]
    field = open_chat(page)
    for key in look.keys:
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    expect(field).to_be_focused()
    expect(field).to_have_value("".join(key for key in look.keys if len(key) == 1))
    assert page.url.endswith("/index.html")
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    # The same keys do work where they belong.
    page.keyboard.press("s" if "s" in look.keys else "/")
    expect(page.locator(look.search[1])).to_be_focused()


@pytest.mark.parametrize("theme", SEARCHED)
def test_the_chat_s_shortcut_is_not_heard_in_the_theme_s_search(visit: Visit, theme: str) -> None:
    page = visit(theme)
    opener, field = THEMES[theme].search
    page.locator(opener).first.click()
    expect(page.locator(field)).to_be_focused()
    page.keyboard.press("Control+i")
    page.wait_for_timeout(300)
    expect(page.locator(PANEL)).to_be_hidden()
    expect(page.locator(field)).to_be_focused()
    page.keyboard.press("Escape")
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("Control+i")
    expect(page.locator(PANEL)).to_be_visible()


@pytest.mark.parametrize("theme", [theme for theme in SEARCHED if theme != "furo"])
def test_the_first_row_of_the_theme_s_results_asks(visit: Visit, site: Site, theme: str) -> None:
    page = visit(theme)
    opener, field = THEMES[theme].search
    page.locator(opener).first.click()
    expect(page.locator(field)).to_be_focused()
    page.wait_for_function("performance.getEntriesByType('resource').some(({ name }) => name.endsWith('more/en.js'))")
    page.keyboard.type("signing key", delay=30)
    row = page.get_by_role("button", name="Ask: signing key")
    expect(row).to_be_visible()
    page.wait_for_timeout(SWITCH)
    keep(page, theme, "search")
    # It can be read and pressed where it is: not under the field, nor in its color.
    row.click()
    page.locator(".answered").wait_for()
    assert [query["query"] for query in site.asked] == ["signing key"]


@pytest.mark.parametrize("theme", SEARCHED)
def test_a_question_can_be_asked_from_the_theme_s_search(visit: Visit, site: Site, theme: str) -> None:
    page = visit(theme)
    opener, field = THEMES[theme].search
    page.locator(opener).first.click()
    expect(page.locator(field)).to_be_focused()
    page.wait_for_function("performance.getEntriesByType('resource').some(({ name }) => name.endsWith('more/en.js'))")
    page.keyboard.type(f"/ask {QUESTION}", delay=10)
    page.keyboard.press("Enter")
    expect(page.locator(PANEL)).to_be_visible()
    page.locator(".answered").wait_for()
    assert [query["query"] for query in site.asked] == [QUESTION]
    expect(page.get_by_role("textbox", name="Ask a question")).to_be_focused()
    assert page.url.endswith("/index.html")
