"""Code in answers has the colors of the page's own code."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask
from widget.pages import answer
from widget.pages import page as page_of
from widget.standin import Site, stream

Browse = Callable[..., Page]

#: A highlighter's styles, by the classes of Pygments, highlight.js or Prism. Dark is an attribute, as in most themes.
STYLES = {
    "pygments": ".highlight .k{color:#a00000}.highlight .c1{color:#00a000}",
    "highlight.js": ".hljs-keyword{color:#a00000}code.hljs .hljs-comment{color:#00a000}",
    "prism": ".token.keyword{color:#a00000}.token.comment{color:#00a000}",
}
DARK = "[data-theme=dark]{color:#eee}[data-theme=dark] .k{color:#0000a0!important}"
CODE = "```python\n# import nothing\nimport tea  # now\nreturn 'if' // 2\n```\n"

PAINTED = """kind => [...CSS.highlights.get(`chapterverse-${kind}`) ?? []].map(String)"""
COLOR = """(code, kind) => getComputedStyle(code, `::highlight(chapterverse-${kind})`).color"""


def code_of(browse: Browse, site: Site, text: str) -> Page:
    page = browse("/tagged.html")
    site.replies.append(stream(answer(text)))
    expect(ask(page).locator(".code .copy").last).to_be_visible()
    page.wait_for_function("() => CSS.highlights.has('chapterverse-keyword')")
    return page


@pytest.mark.parametrize("highlighter", STYLES)
def test_tokens_have_the_page_s_colors(
    browse: Browse, site: Site, standin_page: Callable[[str], None], highlighter: str
) -> None:
    standin_page(page_of(f"<style>{STYLES[highlighter]}{DARK}</style>").html)
    page = code_of(browse, site, CODE)
    painted = {kind: page.evaluate(PAINTED, kind) for kind in ("comment", "string", "number", "keyword")}
    assert painted == {
        "comment": ["# import nothing", "# now"],
        "string": ["'if'"],
        "number": ["2"],
        "keyword": ["import", "return"],
    }
    code = page.locator(".code code")
    assert code.evaluate(COLOR, "keyword") == "rgb(160, 0, 0)"
    assert code.evaluate(COLOR, "comment") == "rgb(0, 160, 0)"
    # The page has no style of its own for strings.
    assert code.evaluate(COLOR, "string") == code.evaluate("code => getComputedStyle(code).color")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    # The observer of the attribute has run by the next frame.
    page.evaluate("() => new Promise(requestAnimationFrame)")
    assert code.evaluate(COLOR, "keyword") == "rgb(0, 0, 160)"
    assert page.locator("main .highlight").count() == 0


def test_text_and_unclosed_comments_are_read_once(
    browse: Browse, site: Site, standin_page: Callable[[str], None]
) -> None:
    standin_page(page_of().html)
    page = code_of(browse, site, "```\nimport tea\n```\n\n```js\n" + "/* " * 15_000 + "\n```\n")
    assert page.evaluate(PAINTED, "keyword") == []
    assert len(page.evaluate(PAINTED, "comment")) == 1


def test_words_of_a_session_are_no_keywords(browse: Browse, site: Site, standin_page: Callable[[str], None]) -> None:
    standin_page(page_of(f"<style>{STYLES['pygments']}</style>").html)
    page = code_of(browse, site, "```console\n$ cut 'a' # now\n3 texts of 512 tokens would be for in\n```\n")
    assert page.evaluate(PAINTED, "keyword") == []
    assert page.evaluate(PAINTED, "string") == ["'a'"]


@pytest.mark.slow
def test_forced_colors_leave_code_alone(browse: Browse, site: Site, standin_page: Callable[[str], None]) -> None:
    standin_page(page_of(f"<style>{STYLES['pygments']}</style>").html)
    site.replies.append(stream(answer(CODE)))
    page = browse("/tagged.html", forced_colors="active")
    with page.expect_response("**/highlight.js"):
        ask(page)
    expect(page.locator(".code .copy")).to_be_visible()
    page.wait_for_timeout(300)
    # Chromium paints each range as if it were selected.
    assert page.evaluate("CSS.highlights.size") == 0
