"""The chat on pages whose style sheets and scripts mean everything on them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask
from widget.pages import page
from widget.standin import Site

Browse = Callable[..., Page]
StandIn = Callable[[str], None]

IMPORTANT = (
    "*{display:inline!important;position:static!important;visibility:hidden!important;opacity:0!important;"
    "transform:scale(3)!important;width:1px!important;height:1px!important;overflow:hidden!important;"
    "pointer-events:none!important;clip-path:circle(0)!important;z-index:-1!important;font-size:40px!important}"
    # The test itself clicks on the page.
    "html,body,main{visibility:visible!important}"
)
SHEETS = {
    "unset": "*{all:unset}",
    "unset-important": "*{all:unset!important}",
    "transform": "body{transform:translate(40px,40px);filter:blur(0);overflow:hidden;height:100px}",
    "important": IMPORTANT,
    "overlay": "body::after{content:'';position:fixed;inset:0;z-index:2147483647;background:#fffd}",
    "only-main": "body>:not(main){display:none}",
    "only-main-important": "body>:not(main){display:none!important}",
    "generated-content": "*::before,*::after{content:'x';display:block;font-size:80px;background:red}",
    "popovers": "[popover],:popover-open,dialog,chapter-verse{display:none!important;inset:auto!important}",
    "root": "html{transform:rotate(3deg);filter:invert(1);contain:strict;height:50px;overflow:hidden;font-size:300%;"
    "letter-spacing:9px;writing-mode:vertical-rl}",
    "reset": "*,*::before,*::after{all:revert!important;font:900 40px/0 fantasy!important}"
    "div,p,ul,li,table{display:inline!important;float:left!important}button{all:unset!important}",
    "layered": "@layer a{chapter-verse{display:none!important;position:static!important}}",
}
SHEETS["all"] = "".join(SHEETS.values())
#: Written later, by a reader of the page, against what the list above leaves open.
LATER = {
    "root-filter": ":root{filter:blur(3px) brightness(.2);opacity:.1;mask:linear-gradient(#0000,#0000)}",
    "fixed": "*{position:fixed!important;inset:0!important;margin:0!important;float:right!important;order:9!important}",
    "slow": "*{transition:all 9s!important;animation:x 9s infinite!important}"
    "@keyframes x{from,to{opacity:0;translate:-2000px}}",
    "no-dialog": "dialog,[popover],:popover-open,:modal{display:none!important;visibility:collapse!important}",
    "layer-order": "@layer a,b;@layer b{chapter-verse{all:unset!important;display:none!important}}"
    "@layer a{*{all:initial!important;display:none!important}html,body,main{display:block!important}}",
    "parts": "::part(launcher),chapter-verse::part(panel),chapter-verse>*{display:none!important}",
    "content-visibility": "*{content-visibility:hidden!important;contain:strict!important}"
    "html,body,main{content-visibility:visible!important;contain:none!important}",
    "pointer": "*{pointer-events:none!important;user-select:none!important;touch-action:none!important}",
    "offset": "chapter-verse{offset-path:path('M0 0L-900 -900')!important;offset-distance:100%!important;"
    "clip:rect(0 0 0 0)!important;mask:linear-gradient(#0000,#0000)!important;max-width:0!important;"
    "max-height:0!important;rotate:40deg"
    "!important;translate:-900px!important;scale:.1!important;zoom:3!important;mix-blend-mode:difference!important}",
    "text": "*{text-indent:-999px!important;-webkit-text-fill-color:#0000!important;word-spacing:99px!important;"
    "-webkit-text-security:disc!important;text-transform:uppercase!important;display:contents!important}",
}

#: What a reader's pointer would hit in the middle of an element of the chat.
HIT = """node => {
  const { x, y, width, height } = node.getBoundingClientRect();
  const hit = node.getRootNode().elementFromPoint(x + width / 2, y + height / 2);
  return node === hit || node.contains(hit);
}"""


@pytest.mark.parametrize("sheet", [*SHEETS, *(pytest.param(name, marks=pytest.mark.slow) for name in LATER)])
def test_no_style_sheet_of_the_page_hides_or_moves_the_chat(
    browse: Browse, site: Site, standin_page: StandIn, sheet: str
) -> None:
    standin_page(page(head=f"<style>{(SHEETS | LATER)[sheet]}</style>").html)
    tab = browse("/tagged.html")
    button = tab.locator(".launcher")
    expect(button).to_be_visible()
    box = button.bounding_box()
    assert box
    assert (round(box["x"] + box["width"]), round(box["y"] + box["height"])) == (1260, 780)
    assert button.evaluate(HIT)
    turn = ask(tab)
    expect(turn.locator(".answered")).to_be_visible()
    panel = tab.get_by_role("dialog").bounding_box()
    assert panel
    assert (panel["width"], panel["height"]) == (430, 696)
    assert turn.locator("sup a").evaluate(HIT)
    assert tab.get_by_role("button", name="Send").evaluate(HIT)


@pytest.mark.parametrize(
    "script",
    [
        "const body = document.createElement('body'); body.append('Another page'); document.body.replaceWith(body)",
        "document.body.innerHTML = 'Another page'",
        "document.querySelector('chapter-verse').remove()",
    ],
)
def test_the_chat_is_there_again_after_the_page_removed_it(browse: Browse, script: str) -> None:
    tab = browse()
    ask(tab).locator(".answered").wait_for()
    tab.evaluate(f"() => {{ {script} }}")
    expect(tab.get_by_role("dialog")).to_be_visible()
    expect(tab.locator(".turn")).to_have_count(1)
    assert tab.locator(".turn sup a").evaluate(HIT)


def test_no_backdrop_of_the_page_covers_it(browse: Browse, standin_page: StandIn) -> None:
    standin_page(page(head="<style>::backdrop{background:#c00!important;backdrop-filter:blur(4px)}</style>").html)
    host = browse("/tagged.html").locator("chapter-verse")
    assert host.evaluate("host => getComputedStyle(host, '::backdrop').display") == "none"


@pytest.mark.parametrize("where", ["html", "body"])
def test_a_page_that_is_zoomed_or_selects_nothing_has_a_whole_panel_with_text_to_select(
    browse: Browse, standin_page: StandIn, where: str
) -> None:
    standin_page(page(head=f"<style>{where}{{zoom:1.5;user-select:none}}</style>").html)
    tab = browse("/tagged.html")
    body = ask(tab).locator("p").first
    expect(body).to_be_visible()
    box = tab.get_by_role("dialog").evaluate(
        "node => { const { top, left } = node.getBoundingClientRect(); return [top, left] }"
    )
    assert min(box) >= 0
    body.click(click_count=3)
    assert tab.locator("chapter-verse").evaluate("host => `${host.shadowRoot.getSelection()}`")
