"""Questions about a code block of the page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from widget.pages import CSP, page
from widget.standin import Site
from widget.test_selection import PHONE, box, inside

Browse = Callable[..., Page]
StandIn = Callable[[str], None]

#: As the generators write them: line numbers of four kinds, copy buttons, lines that end in `<br>`.
BLOCKS = {
    "material": '<div class="language-python highlight"><pre><span></span><nav><button>Copy</button></nav>'
    '<code><span class="linenos">1</span>a = f()\n<span class="linenos">2</span>b = g()\n</code></pre></div>',
    "stock": '<pre><code class="language-python hljs">a = f()\nb = g()\n</code></pre>',
    "sphinx": '<div class="highlight-python notranslate"><div class="highlight"><pre><span></span>'
    '<span class="linenos">1</span>a = f()\n<span class="linenos">2</span>b = g()\n</pre></div></div>',
    "docusaurus": '<div class="language-python codeBlockContainer_x"><pre tabindex="0" class="prism-code"><code>'
    '<div class="token-line">a = f()<br></div><div class="token-line">b = g()<br></div></code></pre></div>',
    "vitepress": '<div class="language-python"><button class="copy"></button><span class="lang">python</span><pre '
    'tabindex="0"><code><span class="line">a = f()</span>\n<span class="line">b = g()</span></code></pre></div>',
    "hugo": '<div class="highlight"><pre tabindex="0"><code class="language-python"><span class="ln">1</span>a = f()\n'
    '<span class="ln">2</span>b = g()\n</code></pre></div>',
}


def button(tab: Page) -> Locator:
    return tab.get_by_role("button", name="Ask about this code")


def code_page(block: str, **headers: str) -> str:
    return page(body=f"{block}<p id=after>After the code.</p>", **headers).html


@pytest.mark.parametrize("generator", BLOCKS)
def test_a_code_block_is_asked_about_as_it_would_be_copied(
    browse: Browse, site: Site, standin_page: StandIn, generator: str
) -> None:
    standin_page(code_page(BLOCKS[generator]))
    tab = browse("/tagged.html")
    tab.locator("pre").hover()
    button(tab).click()
    expect(tab.locator(".quote")).to_contain_text("a = f()")
    tab.get_by_role("button", name="Send").click()
    expect(tab.locator(".answered")).to_be_visible()
    assert site.asked[0]["selected_text"] == "```\na = f()\nb = g()\n```"


def test_the_offer_comes_and_goes_with_the_pointer_and_covers_no_code(browse: Browse, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["stock"]))
    tab = browse("/tagged.html")
    block = tab.locator("pre")
    block.hover()
    expect(button(tab)).to_be_visible()
    found = box(button(tab))
    lines = block.evaluate(
        "pre => { const range = new Range(); range.selectNodeContents(pre); return [...range.getClientRects()]"
        ".filter(({ width }) => width).map(({ right, bottom }) => ({ right, bottom })); }"
    )
    assert all(line["bottom"] <= found["y"] + 1 or line["right"] < found["x"] for line in lines)
    assert found["y"] <= box(block)["bottom"]
    assert abs(found["right"] - box(block)["right"]) < 20
    assert found["height"] >= 24
    # From the code to the button the pointer leaves neither.
    tab.mouse.move(found["x"] + 20, found["y"] + 10, steps=5)
    tab.wait_for_timeout(400)
    expect(button(tab)).to_be_visible()
    tab.locator("#s1").hover()
    expect(button(tab)).to_be_hidden()


def test_there_is_one_button_for_all_blocks(browse: Browse, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["stock"] + BLOCKS["vitepress"]))
    tab = browse("/tagged.html")
    tops = []
    for block in tab.locator("pre").all():
        block.hover()
        tab.wait_for_timeout(400)
        tops.append(box(button(tab))["y"])
    assert tops[0] < tops[1]
    assert tab.locator(".offer").count() == 1


def test_a_block_longer_than_the_window_has_the_offer_in_sight(browse: Browse, standin_page: StandIn) -> None:
    standin_page(
        code_page(
            f"<pre><code>{'x = 1 # lock' + chr(10)}{'y = 2' + chr(10) * 3}{'z = 3' + chr(10) * 90}end</code></pre>"
        )
    )
    tab = browse("/tagged.html")
    tab.locator("pre").evaluate("pre => pre.scrollIntoView()")
    tab.mouse.move(200, 300)
    tab.mouse.move(200, 310)
    expect(button(tab)).to_be_visible()
    assert inside(box(button(tab)), 1280, 800)


def test_a_tap_on_code_offers_and_one_elsewhere_takes_it_back(browse: Browse, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["stock"]))
    tab = browse("/tagged.html", **PHONE)
    tab.locator("pre").tap()
    expect(button(tab)).to_be_visible()
    assert inside(box(button(tab)), 375, 700)
    tab.locator("#after").tap()
    expect(button(tab)).to_be_hidden()
    tab.locator("pre").tap()
    button(tab).tap()
    expect(tab.locator(".quote")).to_contain_text("a = f()")


def test_by_keyboard_the_offer_comes_next_after_its_code(browse: Browse, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["vitepress"] + '<a id="last" href="#s1">on</a>'))
    tab = browse("/tagged.html")
    tab.locator("pre").focus()
    expect(button(tab)).to_be_visible()
    tab.keyboard.press("Tab")
    expect(button(tab)).to_be_focused()
    tab.keyboard.press("Tab")
    expect(tab.locator("#last")).to_be_focused()
    expect(button(tab)).to_be_hidden()
    tab.wait_for_timeout(400)
    tab.keyboard.press("Shift+Tab")
    expect(tab.locator("pre")).to_be_focused()
    expect(button(tab)).to_be_visible()
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    expect(tab.locator(".quote")).to_contain_text("a = f()")


def test_a_pointer_at_rest_does_not_take_the_offer_from_the_keyboard(browse: Browse, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["vitepress"]))
    tab = browse("/tagged.html")
    tab.mouse.move(200, 200)
    tab.locator("pre").focus()
    expect(button(tab)).to_be_visible()
    tab.mouse.move(205, 90)
    tab.wait_for_timeout(500)
    expect(button(tab)).to_be_visible()


def test_escape_declines_until_the_pointer_comes_again(browse: Browse, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["stock"]))
    tab = browse("/tagged.html")
    tab.locator("pre").hover()
    expect(button(tab)).to_be_visible()
    tab.keyboard.press("Escape")
    expect(button(tab)).to_be_hidden()
    tab.locator("#after").hover()
    tab.wait_for_timeout(400)
    tab.locator("pre").hover()
    expect(button(tab)).to_be_visible()


@pytest.mark.parametrize("content", ["  \n ", "<span>1\n2\n3</span>"])
def test_a_block_without_words_is_not_offered(browse: Browse, standin_page: StandIn, content: str) -> None:
    standin_page(code_page(f"{BLOCKS['stock']}<pre id=bare style='min-height:40px'>{content}</pre>"))
    tab = browse("/tagged.html")
    tab.locator("pre").first.hover()
    expect(button(tab)).to_be_visible()
    tab.locator("#bare").hover()
    expect(button(tab)).to_be_hidden()


def test_a_long_block_is_cut_and_still_ends_as_a_block(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(code_page(f'<pre><code class="language-c++">{"x" * 9000}</code></pre>'))
    tab = browse("/tagged.html")
    tab.locator("pre").hover()
    button(tab).click()
    expect(tab.get_by_role("textbox", name="Ask a question")).to_be_focused()
    tab.get_by_role("button", name="Send").click()
    expect(tab.locator(".answered")).to_be_visible()
    sent: Any = site.asked[0]["selected_text"]
    assert len(sent) <= 5000
    assert sent.startswith("```\n")
    assert sent.endswith("x\n```")


def test_code_in_the_chat_is_not_offered(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["stock"], **{"Content-Security-Policy": CSP}))
    tab = browse("/tagged.html")
    tab.locator("pre").hover()
    expect(button(tab)).to_be_visible()
    tab.evaluate("chapterverse.ask('```py\\ncode\\n```')")
    tab.locator("dialog pre").hover()
    tab.wait_for_timeout(500)
    expect(button(tab)).to_be_hidden()


#: Themes that leave little or no room below a block, with a short and a long last line.
TIGHT = {
    "short": '<pre style="margin:0;padding:0">a = f()\nb = g()</pre>',
    "padded": '<pre style="margin:0;padding:16px">a = f()\nb = g()</pre>',
    "long": f'<pre style="margin:0;padding:12px;overflow:auto">a = f()\n{"b = g() " * 60}</pre>',
}


@pytest.mark.parametrize("block", TIGHT)
def test_the_offer_never_covers_the_line_after_the_code(browse: Browse, standin_page: StandIn, block: str) -> None:
    standin_page(code_page(TIGHT[block]).replace("<p id=after", "<p id=after style=margin:0"))
    tab = browse("/tagged.html")
    tab.locator("pre").hover()
    expect(button(tab)).to_be_visible()
    assert box(button(tab))["bottom"] <= box(tab.locator("#after"))["y"]


def test_the_offer_never_hides_behind_the_panel(browse: Browse, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["stock"]))
    tab = browse("/tagged.html")
    tab.locator("pre").scroll_into_view_if_needed()
    tab.get_by_role("button", name="Ask the docs").click()
    panel = tab.get_by_role("dialog")
    panel.wait_for()
    tab.locator("pre").hover(position={"x": 40, "y": 10})
    expect(button(tab)).to_be_visible()
    assert box(button(tab))["right"] <= box(panel)["x"]


def test_fences_are_for_the_api_and_never_shown(browse: Browse, site: Site, standin_page: StandIn) -> None:
    standin_page(code_page(BLOCKS["stock"]))
    tab = browse("/tagged.html")
    tab.locator("pre").hover()
    button(tab).click()
    expect(tab.locator("form q")).to_have_text("a = f()\nb = g()")
    tab.get_by_role("textbox", name="Ask a question").press("Enter")
    tab.locator(".answered").wait_for()
    expect(tab.locator(".asked q")).to_have_text("a = f()\nb = g()")
    assert site.asked[0]["selected_text"].startswith("```\n")
