"""The chat's appearance: the site's colors, light and dark, any width, and accessibility."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, open_chat
from widget.pages import answer
from widget.standin import Site, refused, stream

Browse = Callable[..., Page]
AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"

RICH = answer(
    "### Options\n\nSee [the site](https://a.org/), *or* `code`:\n\n```sh\nuv lock --upgrade-package "
    + "x" * 80
    + "\n```\n\n"
    "| " + " | ".join(["a long heading"] * 8) + " |\n" + "|---" * 8 + "|\n| b | c |\n\n> quoted\n\n1. one\n   - two",
    citations=["1", "2"],
    status="partial",
    nearest=[{"chapter": "Locking", "section": "Section 2", "url": "/second.html#s2"}],
)

COLOR = """(node, name) => {
  const probe = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  probe.fillStyle = getComputedStyle(node)[name];
  probe.fillRect(0, 0, 1, 1);
  return [...probe.getImageData(0, 0, 1, 1).data].slice(0, 3);
}"""

THEMES = {
    "--md-primary-fg-color": ("--md-default-bg-color", "--md-default-fg-color"),
    "--bs-primary": ("--bs-body-bg", "--bs-body-color"),
    "--ifm-color-primary": ("--ifm-background-surface-color", "--ifm-font-color-base"),
    "--vp-c-brand-3": ("--vp-c-bg", "--vp-c-text-1"),
    "--color-brand-primary": ("--color-background-primary", "--color-foreground-primary"),
    "--chapterverse-accent": ("--chapterverse-bg", "--chapterverse-fg"),
}


def color(page: Page, selector: str, name: str) -> list[int]:
    return page.locator(selector).evaluate(COLOR, name)


@pytest.mark.parametrize("accent", THEMES)
def test_colors_are_the_site_s(browse: Browse, accent: str) -> None:
    page = browse()
    background, text = THEMES[accent]
    for name, value in ((accent, "#336600"), (background, "#102030"), (text, "#f0e0d0")):
        page.evaluate("([name, value]) => document.documentElement.style.setProperty(name, value)", [name, value])
    assert color(page, ".launcher", "backgroundColor") == [0x33, 0x66, 0x00]
    open_chat(page)
    assert color(page, "dialog", "backgroundColor") == [0x10, 0x20, 0x30]
    assert color(page, "dialog", "color") == [0xF0, 0xE0, 0xD0]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_site_without_named_colors_gets_its_scheme(browse: Browse, scheme: str) -> None:
    page = browse()
    page.evaluate("scheme => document.documentElement.style.colorScheme = scheme", scheme)
    open_chat(page)
    assert (color(page, "dialog", "backgroundColor")[0] > 128) == (scheme == "light")
    assert (color(page, "dialog", "color")[0] < 128) == (scheme == "light")


ACCENTS = {
    "#4051b5": 255,
    "#ffffff": 0,
    "#000000": 255,
    "#25c2a0": 0,
    "#0d6efd": 255,
    "#ffec3d": 0,
    "#546e7a": 255,
}


def test_text_on_any_accent_can_be_read(browse: Browse) -> None:
    page = browse()
    for accent, text in ACCENTS.items():
        page.evaluate("accent => document.documentElement.style.setProperty('--md-primary-fg-color', accent)", accent)
        assert abs(color(page, ".launcher", "color")[0] - text) <= 2


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (375, 667), (320, 256)])
def test_nothing_sticks_out(browse: Browse, site: Site, width: int, height: int) -> None:
    site.replies.append(stream(RICH))
    page = browse(viewport={"width": width, "height": height}, reduced_motion="reduce")
    turn = ask(page, "Why " + "x" * 300)
    turn.locator(".partial").wait_for()
    box = page.get_by_role("dialog").bounding_box()
    assert box
    if width <= 480:
        assert {side: round(length) for side, length in box.items()} == {
            "x": 0,
            "y": 0,
            "width": width,
            "height": height,
        }
    assert box["x"] >= 0
    assert box["y"] >= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".thread").evaluate("node => node.scrollWidth - node.clientWidth") == 0


def test_the_question_just_asked_stands_at_the_top(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page, "First?").locator(".copy_answer").wait_for()
    site.replies.append(stream(RICH))
    turn = ask(page, "Second?")
    turn.locator(".partial").wait_for()
    gap = turn.evaluate("node => node.getBoundingClientRect().top - node.parentElement.getBoundingClientRect().top")
    assert 0 <= gap <= 20


def test_motion_is_reduced_where_the_reader_asks(browse: Browse) -> None:
    page = browse(reduced_motion="reduce")
    open_chat(page)
    assert page.get_by_role("dialog").evaluate("node => getComputedStyle(node).animationName") == "none"


def test_controls_keep_an_outline_in_forced_colors(browse: Browse, site: Site) -> None:
    page = browse(forced_colors="active")
    assert page.locator(".launcher").evaluate("node => getComputedStyle(node).borderTopStyle") == "solid"
    dialog = open_chat(page)
    assert dialog.evaluate("node => getComputedStyle(node).borderTopStyle") == "solid"


def test_arabic_pages_have_it_on_the_left(browse: Browse) -> None:
    page = browse()
    page.evaluate("document.documentElement.dir = 'rtl'")
    assert page.locator(".launcher").bounding_box()["x"] < 40  # type: ignore[index]
    assert open_chat(page).bounding_box()["x"] < 40  # type: ignore[index]


def faults(page: Page) -> list[str]:
    """Return what axe finds wrong with the chat."""
    page.evaluate(AXE.read_text())
    found = page.evaluate(
        "axe.run('chapter-verse', { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice'] })"
    )
    return [f"{v['id']}: {v['nodes'][0]['target']} {v['nodes'][0]['failureSummary']}" for v in found["violations"]]


def test_axe_would_find_a_fault(browse: Browse) -> None:
    page = browse()
    open_chat(page).evaluate("node => node.append(document.createElement('input'))")
    assert [fault.partition(":")[0] for fault in faults(page)] == ["label"]


@pytest.mark.parametrize("path", ["/light.html", "/dark.html", "/"])
@pytest.mark.parametrize("width", [1280, 320])
def test_axe_finds_nothing_in_any_state(browse: Browse, site: Site, path: str, width: int) -> None:
    site.config["starters"] = ["How do I lock?"]
    page = browse(path, viewport={"width": width, "height": 700})
    assert faults(page) == []
    open_chat(page)
    page.wait_for_timeout(250)
    assert faults(page) == []
    site.replies += [stream(RICH), refused(500), stream(answer("No.", status="not_in_docs", source_chunks=[]))]
    for question in ("Why?", "How?", "What?"):
        ask(page, question).locator(".status").first.wait_for()
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        assert faults(page) == []


def test_the_whole_chat_can_be_used_by_keyboard(browse: Browse, site: Site) -> None:
    page = browse()
    page.get_by_role("button", name="Ask the docs").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="Ask a question")).to_be_focused()
    page.keyboard.type("How do I lock?")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Send")).to_be_focused()
    page.keyboard.press("Space")
    # The tools come last, and move what is reached behind them.
    page.locator(".turn .edit").wait_for()
    reached = set()
    for _ in range(20):
        page.keyboard.press("Shift+Tab")
        reached.add(page.evaluate("document.querySelector('chapter-verse').shadowRoot.activeElement?.className"))
    assert {"icon", "thread", "cite", "source"} <= reached
