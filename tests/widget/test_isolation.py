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
}
SHEETS["all"] = "".join(SHEETS.values())

#: What a reader's pointer would hit in the middle of an element of the chat.
HIT = """node => {
  const { x, y, width, height } = node.getBoundingClientRect();
  const hit = node.getRootNode().elementFromPoint(x + width / 2, y + height / 2);
  return node === hit || node.contains(hit);
}"""


@pytest.mark.parametrize("sheet", SHEETS)
def test_no_style_sheet_of_the_page_hides_or_moves_the_chat(
    browse: Browse, site: Site, standin_page: StandIn, sheet: str
) -> None:
    standin_page(page(head=f"<style>{SHEETS[sheet]}</style>").html)
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


def test_the_chat_is_there_again_after_the_body_was_replaced(browse: Browse) -> None:
    tab = browse()
    ask(tab).locator(".answered").wait_for()
    tab.evaluate("""() => {
      const body = document.createElement('body');
      body.append('Another page');
      document.body.replaceWith(body);
    }""")
    expect(tab.get_by_role("dialog")).to_be_visible()
    expect(tab.locator(".turn")).to_have_count(1)
    assert tab.locator(".turn sup a").evaluate(HIT)


def test_a_host_that_was_removed_comes_back_when_it_is_asked(browse: Browse) -> None:
    tab = browse()
    tab.evaluate("document.querySelector('chapter-verse').remove()")
    tab.evaluate("chapterverse.ask('How?')")
    expect(tab.locator(".answered")).to_be_visible()
