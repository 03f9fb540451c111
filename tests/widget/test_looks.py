"""The chat's appearance: the site's colors, light and dark, any width, and accessibility."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, open_chat
from widget.pages import QUOTED, answer, of_segments, segment
from widget.pages import page as page_of
from widget.standin import Site, checked, refused, stream

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
    channels: list[int] = page.locator(selector).evaluate(COLOR, name)
    return channels


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
        assert [round(side) for side in (box["x"], box["y"], box["width"], box["height"])] == [0, 0, width, height]
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


def test_the_panel_opens_in_140_milliseconds_and_waiting_pulses(browse: Browse, site: Site) -> None:
    wait = Event()
    site.replies.append(checked(QUOTED, wait))
    page = browse()
    motion = "node => [getComputedStyle(node).animationName, getComputedStyle(node).animationDuration]"
    assert open_chat(page).evaluate(motion) == ["open", "0.14s"]
    assert ask(page).locator(".busy").evaluate(motion) == ["pulse", "1s"]
    wait.set()


def test_send_looks_so_where_there_is_nothing_to_send(browse: Browse, site: Site) -> None:
    wait = Event()
    site.replies.append(checked(QUOTED, wait))
    page = browse()
    page.locator("#p1").select_text()
    opacity = "node => getComputedStyle(node).opacity"
    page.keyboard.press("Control+i")
    send = page.get_by_role("button", name="Send")
    # A selection alone is a question.
    page.locator("form q").wait_for()
    assert send.evaluate(opacity) == "1"
    page.locator(".quote button").click()
    assert send.evaluate(opacity) == "0.5"
    page.get_by_role("textbox", name="Ask a question").fill("How?")
    assert send.evaluate(opacity) == "1"
    page.keyboard.press("Enter")
    stop = page.get_by_role("button", name="Stop")
    assert stop.evaluate(opacity) == "1"
    wait.set()
    page.locator(".copy_answer").wait_for()
    assert send.evaluate(opacity) == "0.5"
    page.get_by_role("textbox", name="Ask a question").fill("How?")
    send.hover()
    assert send.evaluate("node => getComputedStyle(node).filter") == "brightness(1.1)"


def test_controls_keep_an_outline_in_forced_colors(browse: Browse, site: Site) -> None:
    page = browse(forced_colors="active")
    assert page.locator(".launcher").evaluate("node => getComputedStyle(node).borderTopStyle") == "solid"
    dialog = open_chat(page)
    assert dialog.evaluate("node => getComputedStyle(node).borderTopStyle") == "solid"


def test_arabic_pages_have_it_on_the_left(browse: Browse) -> None:
    page = browse()
    page.evaluate("document.documentElement.dir = 'rtl'")
    for shown in (page.locator(".launcher"), open_chat(page)):
        box = shown.bounding_box()
        assert box
        assert box["x"] < 40


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
        reached.add(page.evaluate("document.querySelector('chapter-verse').shadowRoot.activeElement?.classList[0]"))
    assert {"icon", "thread", "cite", "source", "chip"} <= reached


HEADED = of_segments(
    segment("## Options\n\nSome.\n\n#### Deeper\n\nMore.\n\n## Others\n\nEnd.\n\n# Top\n\n### Below\n\nThat.", "1"),
    segment("Unsure. ", check="unconfirmed"),
)


def test_headings_of_an_answer_skip_no_level(browse: Browse, site: Site) -> None:
    site.replies.append(checked(HEADED))
    page = browse()
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    levels = turn.locator("h3, h4, h5, h6").evaluate_all("all => all.map(node => node.localName + node.textContent)")
    assert levels == ["h3Options", "h4Deeper", "h3Others", "h3Top", "h4Below"]
    assert faults(page) == []


def test_each_turn_has_a_heading_above_those_of_its_answer(browse: Browse, site: Site) -> None:
    site.replies += [stream(answer("# Options")), refused(500)]
    page = browse()
    ask(page, "How do I lock?").locator(".copy_answer").wait_for()
    ask(page, "Why?").get_by_role("button", name="Try again").wait_for()
    page.get_by_role("heading", name="You asked: Why?").wait_for()
    headings = page.locator(".thread").get_by_role("heading")
    assert headings.all_text_contents() == [
        "You asked: How do I lock?",
        "Options",
        "You asked: Why?",
    ]
    page.reload()
    expect(page.get_by_role("heading", name="You asked: Why?")).to_have_attribute("aria-level", "2")


def test_axe_finds_nothing_with_quotes_a_tip_and_the_feedback_form(browse: Browse, site: Site) -> None:
    site.replies += [checked(QUOTED), checked(HEADED)]
    page = browse("/light.html")
    ask(page).locator(".copy_answer").wait_for()
    assert faults(page) == []
    turn = ask(page)
    turn.locator(".tip").first.wait_for(state="attached")
    turn.locator("sup a").first.hover()
    expect(turn.locator(".tip").first).to_be_visible()
    assert faults(page) == []
    turn.get_by_role("button", name="Not helpful").click()
    form = turn.locator(".feedback")
    expect(form).to_be_visible()
    assert form.evaluate("node => getComputedStyle(node).borderTopWidth") == "0px"
    assert faults(page) == []


SEARCHED = {"query": "locking: and on Windows?", "original": "and on Windows?"}
CHOICE = ["Locking a file", "Locking the screen"]
#: Answers that follow up on something, or that the service was not sure of.
DOUBTED = {
    "follow_up": answer("Yes.", follow_ups=["Why?"], searched_as={**SEARCHED, "reason": "follow_up"}),
    "corrected": answer("Yes.", searched_as={**SEARCHED, "reason": "corrected"}),
    "may_help": {**QUOTED, "status": "partial", "partial_reason": "may_help"},
    "cut": answer("Yes.", status="partial", partial_reason="cut"),
    "choice": answer("Which one?", status="partial", partial_reason="choice", follow_ups=CHOICE, source_chunks=[]),
    "degraded": answer("Yes.", status="degraded", degraded_reason="the model", follow_ups=["Why?"]),
}


@pytest.mark.parametrize("path", ["/light.html", "/dark.html"])
def test_axe_finds_nothing_in_an_answer_that_follows_up_or_is_unsure(browse: Browse, site: Site, path: str) -> None:
    page = browse(path, viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    found = {}
    for name, reply in DOUBTED.items():
        site.replies.append(stream(reply))
        ask(page, "And on Windows?").locator(".copy_answer").wait_for()
        found[name] = faults(page)
        if name == "follow_up":
            page.get_by_role("button", name="Following up on").click()
            page.locator(".turn").nth(1).locator(".copy_answer").wait_for()
            found["asked again"] = faults(page)
    assert {name: faulty for name, faulty in found.items() if faulty} == {}


READING = """
- dialog "Ask the docs":
  - heading "Ask the docs" [level=2]
  - button "This page elsewhere"
  - button "Save the conversation as Markdown"
  - button "Expand"
  - button "Beside the page"
  - button "New chat"
  - button "Close"
  - region "Ask the docs":
    - 'heading "You asked: How do I lock?" [level=2]'
    - button "Edit the question"
    - paragraph: "Quoted from the documentation:"
    - link "1 Locking › Locks › Section 2"
    - paragraph:
      - text: The lock file names every version.
    - code: uv lock --upgrade-package requests uv sync
    - button "Copy"
    - link "2 Locking › Section 1"
    - table
    - paragraph:
      - text: Quoted word for word from these docs
      - button "Copy the answer with its sources"
      - button "Copy a link to this question"
      - button "Helpful"
      - button "Not helpful"
    - paragraph: Ask next
    - button "How do I sync?"
  - button "Only this page"
  - textbox "Ask a question"
  - button "Send"
  - paragraph: /Answers can be wrong/
"""


def test_the_tree_for_screen_readers_is_in_reading_order(browse: Browse, site: Site) -> None:
    site.replies.append(checked(QUOTED))
    page = browse()
    ask(page).locator(".copy_answer").wait_for()
    expect(page.get_by_role("dialog")).to_match_aria_snapshot(READING)


def test_the_focus_is_seen_in_forced_colors(browse: Browse) -> None:
    page = browse(forced_colors="active")
    open_chat(page)
    outline = "node => getComputedStyle(node).outlineStyle"
    assert page.locator(".ask .field").evaluate(outline) == "solid"
    page.keyboard.press("Tab")
    assert page.get_by_role("button", name="Send").evaluate(outline) == "solid"


def test_an_error_is_as_large_as_the_answer_and_has_a_border(browse: Browse, site: Site) -> None:
    site.replies.append(refused(500))
    turn = ask(browse("/light.html"))
    style = turn.locator(".error").evaluate(
        "node => { const { fontSize, borderInlineStartWidth, color } = getComputedStyle(node);"
        " return [fontSize, borderInlineStartWidth, color === getComputedStyle(node.closest('dialog')).color]; }"
    )
    assert style == ["15px", "4px", True]


def test_a_page_from_right_to_left_has_the_chat_so(browse: Browse, site: Site) -> None:
    site.config["starters"] = ["كيف أقفل؟ uv lock"]
    page = browse("/light.html")
    page.evaluate("document.documentElement.dir = 'rtl'")
    page.evaluate("document.documentElement.lang = 'ar'")
    dialog = open_chat(page)
    title = dialog.locator("h2").bounding_box()
    close = dialog.locator(".head .icon").bounding_box()
    assert title
    assert close
    assert close["x"] < title["x"]
    assert dialog.locator(".thread .chip").evaluate("node => getComputedStyle(node).unicodeBidi") == "plaintext"
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    mirrored = "node => getComputedStyle(node).scale === '-1 1'"
    assert page.locator(".dock svg").evaluate(mirrored)
    assert not page.locator(".reset svg").evaluate(mirrored)
    tail = "node => getComputedStyle(node, '::before').borderBottomRightRadius"
    assert page.locator(".launcher").evaluate(tail) == "0px"
    # An answer in a language from left to right stands so.
    site.replies.append(stream(answer("Run it:\n\n- first\n- second")))
    last = ask(page)
    last.locator(".copy_answer").wait_for()
    paddings = "node => [getComputedStyle(node).paddingLeft, getComputedStyle(node).paddingRight]"
    assert last.locator("ul").evaluate(paddings) == ["24px", "0px"]
    site.replies.append(stream(answer("شغله:\n\n- أولا\n- ثانيا")))
    last = ask(page)
    last.locator(".copy_answer").wait_for()
    assert page.locator(".turn").last.locator("ul").evaluate(paddings) == ["0px", "24px"]
    corners = turn.locator(".asked").evaluate(
        "node => { const s = getComputedStyle(node); return [s.borderBottomLeftRadius, s.borderBottomRightRadius]; }"
    )
    assert corners == ["4px", "16px"]


def test_the_colors_of_pydata_go_before_those_of_bootstrap(browse: Browse) -> None:
    page = browse()
    values = {"--bs-body-bg": "#fff", "--bs-body-color": "#222", "--bs-primary": "#00f"}
    values |= {
        "--pst-color-background": "#121212",
        "--pst-color-text-base": "#ced6dd",
        "--pst-color-primary": "#3fb1c5",
    }
    for name, value in values.items():
        page.evaluate("([name, value]) => document.documentElement.style.setProperty(name, value)", [name, value])
    assert color(page, ".launcher", "backgroundColor") == [0x3F, 0xB1, 0xC5]
    open_chat(page)
    assert color(page, "dialog", "backgroundColor") == [0x12, 0x12, 0x12]
    assert color(page, "dialog", "color") == [0xCE, 0xD6, 0xDD]


def test_an_empty_name_is_no_color(browse: Browse) -> None:
    page = browse()
    page.evaluate("""() => {
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(`:root{--md-default-bg-color: ;--bs-body-bg:#102030;
        --md-default-fg-color:;--bs-body-color:#f0e0d0}`);
      document.adoptedStyleSheets.push(sheet);
    }""")
    open_chat(page)
    assert color(page, "dialog", "backgroundColor") == [0x10, 0x20, 0x30]
    assert color(page, "dialog", "color") == [0xF0, 0xE0, 0xD0]


def test_a_site_without_names_gives_the_colors_that_it_shows(
    browse: Browse, standin_page: Callable[[str], None]
) -> None:
    style = "<style>body{background:#2b1b17;color:#f5e6d3}main a{color:#ff5722}</style>"
    standin_page(page_of(style).html)
    page = browse("/tagged.html")
    assert color(page, ".launcher", "backgroundColor") == [0x45, 0x53, 0xC4]
    open_chat(page)
    assert color(page, "dialog", "backgroundColor") == [0x2B, 0x1B, 0x17]
    assert color(page, "dialog", "color") == [0xF5, 0xE6, 0xD3]
    assert color(page, ".send", "backgroundColor") == [0xFF, 0x57, 0x22]
    assert faults(page) == []
