"""The panel's size and place, what it remembers of both, and long conversations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, open_chat, stored
from widget.pages import answer, of_segments, segment, source
from widget.pages import page as page_of
from widget.standin import Site, checked, stream
from widget.test_session import conversation, keep, said

Browse = Callable[..., Page]
StandIn = Callable[[str], None]

FIELD = "Ask a question"
TOP = "thread => Math.round(thread.scrollTop)"
LONG = of_segments(*(segment(f"Paragraph {n} of a long answer, which fills the panel.\n\n", "1") for n in range(40)))


#: The number of a citation in the middle of the panel, which need not be scrolled to.
VISIBLE = """() => [...document.querySelector('chapter-verse').shadowRoot.querySelectorAll('sup a')].findIndex(link => (
  link.getBoundingClientRect().top > 350))"""


def width(page: Page, selector: str) -> float:
    box = page.locator(selector).bounding_box()
    assert box
    return box["width"]


def wait_for_text(page: Page, width: float) -> None:
    """Wait until the page's text is at most this wide: the module that makes room for a panel is loaded late."""
    page.wait_for_function("width => document.querySelector('main').getBoundingClientRect().width <= width", arg=width)


def test_the_panel_can_be_widened_and_docked_and_the_tab_remembers(browse: Browse) -> None:
    page = browse()
    ask(page).locator(".copy_answer").wait_for()
    page.get_by_role("button", name="Expand").click()
    page.wait_for_function(
        "document.querySelector('chapter-verse').shadowRoot.querySelector('dialog').offsetWidth === 860"
    )
    expect(page.get_by_role("button", name="Expand")).to_have_attribute("aria-pressed", "true")
    before = width(page, "main")
    page.get_by_role("button", name="Beside the page").click()
    wait_for_text(page, before - 430)
    panel = page.get_by_role("dialog").bounding_box()
    text = page.locator("main").bounding_box()
    assert panel
    assert text
    assert text["x"] + text["width"] <= panel["x"]
    assert (panel["y"], panel["height"]) == (0, 800)
    page.reload()
    page.get_by_role("dialog").wait_for()
    wait_for_text(page, before - 430)
    assert width(page, "main") == text["width"]
    page.get_by_role("button", name="Close").click()
    assert width(page, "main") == before
    open_chat(page)
    wait_for_text(page, before - 430)
    assert width(page, "main") == text["width"]
    page.get_by_role("button", name="Beside the page").click()
    expect(page.get_by_role("button", name="Beside the page")).to_have_attribute("aria-pressed", "false")
    assert (width(page, "dialog"), width(page, "main")) == (430, before)


@pytest.mark.parametrize(("window", "panel"), [(1280, 430), (1600, 480), (1920, 480)])
def test_a_large_window_has_a_larger_panel(browse: Browse, window: int, panel: int) -> None:
    page = browse(viewport={"width": window, "height": 900})
    open_chat(page)
    assert width(page, "dialog") == panel
    before = width(page, "main")
    ask(page).locator(".copy_answer").wait_for()
    page.get_by_role("button", name="Beside the page").click()
    wait_for_text(page, before - panel)
    assert width(page, "dialog") == panel


def test_a_small_window_offers_neither(browse: Browse) -> None:
    page = browse(viewport={"width": 375, "height": 667})
    open_chat(page)
    for name in ("Expand", "Beside the page"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)


def reading(page: Page, site: Site) -> int:
    """Read in the middle of a long answer, and return how far that is."""
    site.replies.append(checked(LONG))
    ask(page).locator(".copy_answer").wait_for()
    ask(page, "And then?").locator(".copy_answer").wait_for()
    page.locator(".thread").evaluate("thread => { thread.scrollTop = 700 }")
    page.get_by_role("textbox", name=FIELD).fill("A half-typed")
    return int(page.locator(".thread").evaluate(TOP))


@pytest.mark.parametrize("how", ["reopen", "reload", "citation", "phone"])
def test_the_reading_position_and_a_half_typed_question_stay(browse: Browse, site: Site, how: str) -> None:
    options: dict[str, Any] = {"viewport": {"width": 375, "height": 667}} if how == "phone" else {}
    page = browse("/instant.html" if how == "phone" else "/", **options)
    at = reading(page, site)
    if how == "reload":
        page.reload()
    elif how == "reopen":
        page.get_by_role("button", name="Close").click()
        open_chat(page)
    else:
        page.locator("sup a").nth(page.evaluate(VISIBLE)).click()
        page.wait_for_url("**/second.html#s1")
        if how == "phone":
            expect(page.get_by_role("dialog")).to_be_hidden()
            open_chat(page)
    expect(page.locator(".turn")).to_have_count(2)
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("textbox", name=FIELD)).to_have_value("A half-typed")
    assert abs(int(page.locator(".thread").evaluate(TOP)) - at) <= 2


@pytest.mark.parametrize("value", ["{", "7", "null", '["x"]', '[{}, {"a": 1}, "x"]', "[null, null, -5]", '"x"'])
def test_what_another_script_wrote_there_does_no_harm(browse: Browse, value: str) -> None:
    page = browse()
    page.evaluate("value => sessionStorage.setItem('chapterverse_view', value)", value)
    page.reload()
    expect(ask(page).locator(".answered")).to_be_visible()


def test_at_400_percent_half_of_the_height_is_for_the_conversation(browse: Browse, site: Site) -> None:
    site.config["version"] = "2.1"
    # 1280 x 800 pixels at 400 %.
    page = browse(viewport={"width": 320, "height": 200})
    ask(page).locator(".copy_answer").wait_for()
    box = page.locator(".thread").bounding_box()
    assert box
    assert box["height"] >= 100


def test_escape_closes_the_panel_after_a_load(browse: Browse) -> None:
    page = browse()
    ask(page).locator(".answered").wait_for()
    page.reload()
    page.get_by_role("dialog").wait_for()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_page_s_own_escape_goes_first(browse: Browse) -> None:
    page = browse()
    ask(page).locator(".answered").wait_for()
    page.reload()
    page.get_by_role("dialog").wait_for()
    page.evaluate("document.addEventListener('keydown', event => event.preventDefault(), { once: true })")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_long_conversation_stays_as_long_as_the_session(browse: Browse, site: Site) -> None:
    page = browse()
    keep(page, conversation(*(said(role, f"{n}") for n in range(25) for role in ("user", "assistant"))))
    open_chat(page)
    expect(page.locator(".turn")).to_have_count(25)
    for number in range(3):
        ask(page, f"More {number}?").locator(".copy_answer").wait_for()
    expect(page.locator(".turn")).to_have_count(25)
    assert len(stored(page)["messages"]) == 50
    expect(page.locator(".asked").first).to_contain_text("3")


def test_the_announced_answer_takes_no_room(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("word " * 4000, citations=["1"])))
    page = browse()
    ask(page).locator(".copy_answer").wait_for()
    live = page.locator("[aria-live=polite]")
    expect(live).to_contain_text("word word")
    assert live.evaluate("node => [node.offsetWidth, node.offsetHeight]") == [1, 1]
    page.get_by_role("textbox", name=FIELD).evaluate("node => node.scrollIntoView({ block: 'end' })")
    live.evaluate("node => node.scrollIntoView()")
    head = page.locator(".head").bounding_box()
    panel = page.get_by_role("dialog").bounding_box()
    assert head
    assert panel
    assert abs(head["y"] - panel["y"]) <= 2


def test_a_citation_in_a_wide_panel_docks_it_so_that_the_passage_can_be_read(browse: Browse, site: Site) -> None:
    page = browse("/instant.html")
    turn = ask(page)
    page.get_by_role("button", name="Expand").click()
    before = width(page, "main")
    turn.locator("sup a").click()
    wait_for_text(page, before - 430)
    panel = page.get_by_role("dialog").bounding_box()
    text = page.locator("#p1").bounding_box()
    assert panel
    assert text
    assert text["x"] + text["width"] <= panel["x"]


#: Three columns as the themes lay them out by the window, which does not shrink; the text has the class `text`.
COLUMNS = {
    "material": "<div class='text'>{}</div><div class='md-sidebar--secondary'>contents</div>",
    "docusaurus": "<div class='col text' style='max-width:75%'>{}</div>"
    "<div class='col'><div class='theme-doc-toc-desktop'>contents</div></div>",
    "vitepress": "<div class='VPDoc'><div class='content text' style='min-width:640px'>{}</div></div>"
    "<div class='VPDoc'><div class='aside'>contents</div></div>",
    "starlight": "<div class='main-pane text' style='width:40%'>{}</div>"
    "<div class='right-sidebar-container'>contents</div>",
    "furo": "<div class='text'>{}</div><aside class='toc-drawer'>contents</aside>",
    "unknown": "<div class='text'>{}</div><div class='other'>contents</div>",
}
STYLE = """<style>main{display:flex}main>*{min-width:0;flex:1 1 0}nav{flex:0 0 300px}
main>:last-child:not(.VPDoc){flex:0 0 300px}.aside{width:200px}.VPDoc:last-child{flex:0}</style>"""


@pytest.mark.slow
@pytest.mark.parametrize("theme", COLUMNS)
def test_the_contents_of_a_page_give_way_to_a_docked_panel_or_it_floats(
    browse: Browse, standin_page: StandIn, theme: str
) -> None:
    text = "<p>" + "Words of a paragraph that fill a column. " * 20 + "</p>"
    html = f"<main><nav>menu</nav>{COLUMNS[theme].format(text)}</main>"
    standin_page(page_of(STYLE).html.replace("<main><h1>", html + "<div hidden><h1>"))
    page = browse("/tagged.html")
    contents = page.get_by_text("contents")
    expect(contents).to_be_visible()
    ask(page).locator(".copy_answer").wait_for()
    dock = page.get_by_role("button", name="Beside the page")
    if theme == "unknown":
        # 850 pixels less 600 are too few for text: it is not offered.
        page.wait_for_timeout(300)
        expect(dock).to_have_count(0)
        expect(contents).to_be_visible()
        assert width(page, "dialog") == 430
        assert page.evaluate("document.documentElement.clientWidth - document.body.clientWidth") < 100
        return
    dock.click()
    expect(contents).to_be_hidden()
    box = page.locator(".text").bounding_box()
    panel = page.get_by_role("dialog").bounding_box()
    assert box
    assert panel
    assert box["x"] >= 300
    assert box["width"] >= 400
    assert box["x"] + box["width"] <= panel["x"] + 1
    page.get_by_role("button", name="Close").click()
    expect(contents).to_be_visible()


def test_the_button_of_a_phone_is_round(browse: Browse) -> None:
    box = browse(viewport={"width": 375, "height": 667}).locator(".launcher").bounding_box()
    assert box
    assert box["width"] == box["height"] >= 44


BESIDE = """text => {
  const [range] = [...CSS.highlights.get('chapterverse')];
  const root = document.querySelector('chapter-verse').shadowRoot;
  const box = root.querySelector('dialog')?.getBoundingClientRect();
  if (!box) return false;
  return [...range.getClientRects()].every(({ left, right, top, bottom }) => (
    left >= box.right || right <= box.left || top >= box.bottom || bottom <= box.top));
}"""
WORDS = "Words of the cited passage that reach over the whole width of the page. " * 3


def cite(page: Page, site: Site) -> None:
    chunk = source(1, url="/tagged.html#here", snippet=WORDS[:190])
    site.replies.append(stream(answer("Lock.", citations=["1"], source_chunks=[chunk])))
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    turn.locator("sup a").click()
    page.wait_for_function("CSS.highlights.has('chapterverse')")


@pytest.mark.parametrize("path", ["load", "same"])
def test_a_cited_passage_does_not_lie_under_the_panel(
    browse: Browse, site: Site, standin_page: StandIn, path: str
) -> None:
    standin_page(page_of(body=f'<main><h2 id="here">Here</h2><p>{WORDS}</p><div class="space"></div></main>').html)
    page = browse("/" if path == "load" else "/tagged.html")
    cite(page, site)
    page.wait_for_function(BESIDE)
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("button", name="Beside the page")).to_have_attribute("aria-pressed", "true")


def test_where_the_page_makes_no_room_the_panel_shrinks_to_a_button(
    browse: Browse, site: Site, standin_page: StandIn
) -> None:
    wide = "<style>.wide{position:absolute;left:0;width:100vw}</style>"
    html = f'<main class="wide"><h2 id="here">Here</h2><p>{WORDS}</p><div class="space"></div></main>'
    standin_page(page_of(wide, html).html)
    page = browse("/tagged.html")
    cite(page, site)
    page.wait_for_function(BESIDE)
    back = page.get_by_role("button", name="Back to the answer")
    expect(page.get_by_role("dialog")).to_be_hidden()
    back.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(back).to_have_count(0)
    expect(page.locator(".turn")).to_have_count(1)


@pytest.mark.parametrize(("scheme", "link"), [("light", "#c2185b"), ("dark", "#80cbc4")])
def test_the_mark_is_a_tint_of_the_page_s_links(
    browse: Browse, site: Site, standin_page: StandIn, scheme: str, link: str
) -> None:
    style = f"<style>:root{{color-scheme:{scheme}}}main a{{color:{link}}}</style>"
    standin_page(page_of(style, f'<main><h2 id="here">Here</h2><p>{WORDS}</p></main>').html)
    page = browse("/tagged.html")
    cite(page, site)
    color, own, text = page.evaluate(
        "link => { const p = document.querySelectorAll('p'); const last = p[p.length - 1];"
        " const mark = getComputedStyle(last, '::highlight(chapterverse)');"
        " const probe = document.body.appendChild(document.createElement('i'));"
        " probe.style.backgroundColor = `color-mix(in srgb, ${link} 25%, #0000)`;"
        " const { backgroundColor } = getComputedStyle(probe);"
        " return [mark.backgroundColor, backgroundColor, mark.color === getComputedStyle(last).color]; }",
        link,
    )
    assert color == own
    assert text


def test_on_touch_the_first_tap_on_a_number_shows_the_passage(browse: Browse, site: Site) -> None:
    page = browse("/instant.html", viewport={"width": 820, "height": 1180}, has_touch=True, is_mobile=True)
    turn = ask(page)
    turn.locator(".tip").first.wait_for(state="attached")
    turn.locator("sup a.cite").tap()
    tip = turn.locator(".tip").first
    expect(tip.get_by_text("Paragraph 1 says how to lock")).to_be_visible()
    assert page.evaluate("window.loads") == []
    tip.get_by_role("link", name="Open").tap()
    page.wait_for_function("window.loads.length")
    assert page.url == f"{site.url}/second.html#s1"
