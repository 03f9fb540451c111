"""Answers in the panel: citations and their targets, sources, states, and hostile answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget.chat import ask, stored
from widget.pages import answer, source
from widget.standin import Site, stream

Browse = Callable[..., Page]


def test_segments_are_cited_inline_and_the_sources_listed(browse: Browse, site: Site) -> None:
    reply = answer(
        "Run `uv lock`. ", "Then `uv sync`.", citations=["1", "2"], source_chunks=[source(n) for n in (1, 2, 3)]
    )
    reply["segments"][0]["citations"] = ["1", "9"]
    site.replies.append(stream(reply))
    turn = ask(browse())
    numbers = "sup => [...sup.querySelectorAll('.cite')].map(cite => cite.textContent)"
    assert turn.locator("sup").nth(0).evaluate(numbers) == ["1"]
    assert turn.locator("sup").nth(1).evaluate(numbers) == ["1", "2"]
    expect(turn.locator(".sources b")).to_have_text(["Locking › Section 1", "Locking › Section 2"])
    expect(turn.locator("sup a").first).to_have_attribute("href", f"{site.url}/second.html#s1")
    expect(turn.locator("sup a").first).to_have_accessible_name("1: Locking › Section 1")


@pytest.mark.parametrize("how", ["hover", "focus"])
def test_a_citation_shows_its_passage_on_hover_and_on_focus(browse: Browse, site: Site, how: str) -> None:
    page = browse()
    marker = ask(page).locator("sup a")
    tip = page.locator(".tip")
    expect(tip).to_be_hidden()
    if how == "hover":
        marker.hover()
    else:
        page.keyboard.press("Shift+Tab")
        page.keyboard.press("Shift+Tab")
        marker.focus()
    expect(tip.get_by_text("Paragraph 1 says how to lock")).to_be_visible()
    expect(tip.get_by_text("Locking › Section 1")).to_be_visible()


def test_sources_that_no_segment_cites_are_all_listed(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("Hm.", source_chunks=[source(1, section=None), source(2, section="Locking")])))
    expect(ask(browse()).locator(".sources b")).to_have_text(["Locking", "Locking"])


@pytest.mark.parametrize("where", ["sup a", ".source"])
def test_a_citation_leads_to_its_heading_without_a_load(browse: Browse, site: Site, where: str) -> None:
    page = browse("/instant.html")
    turn = ask(page)
    turn.locator(".answered").wait_for()
    turn.locator(where).first.click()
    page.wait_for_function("window.loads.length")
    assert page.evaluate("window.loads") == [f"{site.url}/second.html#s1"]
    assert page.url == f"{site.url}/second.html#s1"
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator("body > a")).to_have_count(0)


def test_without_instant_navigation_a_citation_loads_the_page(browse: Browse, site: Site) -> None:
    page = browse()
    ask(page).locator("sup a").click()
    page.wait_for_url("**/second.html#s1")
    expect(page.locator("sup a")).to_be_visible()
    # Its passage stands in the middle, where no header can cover it.
    page.wait_for_function("scrollY > 0 || document.querySelector('#p1').getBoundingClientRect().top < innerHeight")


def test_a_click_for_a_new_tab_is_left_alone(browse: Browse, site: Site) -> None:
    page = browse("/instant.html")
    marker = ask(page).locator("sup a")
    with page.context.expect_page() as opened:
        marker.click(modifiers=["Control"])
    assert opened.value.url.endswith("/second.html#s1")
    opened.value.close()
    assert page.evaluate("window.loads") == []


def test_on_a_phone_a_citation_closes_the_panel_that_covers_the_page(browse: Browse, site: Site) -> None:
    page = browse("/instant.html", viewport={"width": 375, "height": 700})
    ask(page).locator("sup a").click()
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.wait_for_url(f"{site.url}/second.html#s1")


def test_a_source_elsewhere_opens_a_tab_and_tells_nobody(browse: Browse, site: Site) -> None:
    site.replies.append(
        stream(answer("Hm.", citations=["1"], source_chunks=[source(1, url="https://other.example/a#b")]))
    )
    marker = ask(browse()).locator("sup a")
    expect(marker).to_have_attribute("target", "_blank")
    expect(marker).to_have_attribute("rel", "noopener noreferrer nofollow ugc")


STATES = {
    "answered": "From these docs",
    "partial": "Partly answered",
    "not_in_docs": "Not in these docs",
    "degraded": "Reduced answer: part of the service is down",
}


def test_the_states_differ_in_words_and_in_their_icon(browse: Browse, site: Site) -> None:
    page = browse()
    icons = set()
    for state, words in STATES.items():
        site.replies.append(stream(answer("Hm.", status=state)))
        label = ask(page).locator(f".{state}")
        expect(label).to_contain_text(words)
        icons.add(label.locator("path").first.get_attribute("d"))
    assert len(icons) == len(STATES)


def test_what_is_not_in_the_docs_comes_with_the_closest_pages(browse: Browse, site: Site) -> None:
    nearest = [{"chapter": "Locking", "section": "Section 2", "url": "/second.html#s2"}]
    site.replies.append(stream(answer("Nothing.", status="not_in_docs", source_chunks=[], nearest=nearest)))
    turn = ask(browse("/instant.html"))
    expect(turn.get_by_text("Closest pages")).to_be_visible()
    expect(turn.get_by_role("list", name="Closest pages").get_by_role("link")).to_have_attribute(
        "href", f"{site.url}/second.html#s2"
    )


def test_a_finished_answer_is_announced_once_and_tokens_are_not(browse: Browse, site: Site) -> None:
    page = browse()
    site.replies.append(stream(answer("Run `uv lock`.\n\nThen sync.", citations=["1"]), *"Run it"))
    ask(page).locator(".answered").wait_for()
    expect(page.locator("[aria-live=polite]")).to_have_text("From these docs. Run uv lock. Then sync.")


def test_code_can_be_copied(browse: Browse, site: Site) -> None:
    page = browse(permissions=["clipboard-read", "clipboard-write"])
    site.replies.append(stream(answer("```sh\nuv lock\nuv sync\n```")))
    turn = ask(page)
    turn.get_by_role("button", name="Copy", exact=True).click()
    expect(turn.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == "uv lock\nuv sync"


def test_shift_enter_makes_a_line_and_enter_sends(browse: Browse, site: Site) -> None:
    page = browse()
    page.get_by_role("button", name="Ask the docs").click()
    page.get_by_role("textbox", name="Ask a question").wait_for()
    page.keyboard.press("Enter")
    page.keyboard.type("one")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("two")
    page.keyboard.press("Enter")
    expect(page.locator(".answered")).to_be_visible()
    assert [query["query"] for query in site.asked] == ["one\ntwo"]
    expect(page.get_by_role("textbox", name="Ask a question")).to_have_value("")


def test_a_finished_answer_leaves_the_focus_where_the_reader_is(browse: Browse, site: Site) -> None:
    page = browse()
    turn = ask(page)
    page.locator("#search").focus()
    turn.locator(".answered").wait_for()
    expect(page.locator("#search")).to_be_focused()


HARM = """
<script>window.hacked = 1</script> <img src=x onerror="window.hacked=1"> <svg onload=window.hacked=1>
[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>)
![x](https://evil.example/pixel.png) <https://user:pw@evil.example/> [b](https://evil.example/\u202egnp.exe)
`<iframe src=//evil.example>` **<b onclick=window.hacked=1>bold</b>**

| <style>*{display:none}</style> | [x](vbscript:1) |
|---|---|
| <form action=//evil.example> | <a href="javascript:window.hacked=1">a</a> |

```"><script>window.hacked=1</script>
</code></pre><script>window.hacked=1</script>
```

> <meta http-equiv=refresh content="0;url=//evil.example"> <base href=//evil.example>
"""

ALLOWED = {
    "a": {"href", "class", "title", "target", "rel", "aria-label"}, "p": {"class"}, "h3": set(), "h4": set(),
    "h5": set(), "h6": set(), "ul": set(), "ol": {"start", "class", "aria-label"}, "li": set(), "blockquote": set(),
    "pre": {"tabindex", "class"}, "code": {"class"}, "em": set(), "strong": set(),
    "br": set(), "hr": set(), "table": set(),
    "thead": set(), "tbody": set(), "tr": set(), "th": set(), "td": set(),
    "div": {"class", "tabindex", "dir", "role", "aria-level", "hidden"},
    "span": {"class", "title", "aria-label"}, "sup": set(), "b": set(), "q": {"class"},
    "svg": {"viewBox", "aria-hidden"},
    "path": {"d"}, "mark": set(), "button": {"type", "class", "title", "aria-label", "aria-pressed"},
}  # fmt: skip

SEEN = """turn => [...turn.querySelectorAll('*')].map(e => [e.localName, [...e.attributes].map(a => a.name)])"""


@pytest.mark.parametrize("path", ["/", "/strict.html"])
def test_an_answer_that_means_harm_is_only_text(browse: Browse, site: Site, path: str) -> None:
    chunk = source(1, chapter=HARM, section=HARM, snippet=HARM[:200], url="javascript:window.hacked=1", id="1")
    reply = answer(HARM, citations=["1"], source_chunks=[chunk], nearest=[chunk])
    site.replies += [stream(reply, *(HARM[at : at + 40] for at in range(0, len(HARM), 40)))]
    page = browse(path)
    turn = ask(page, HARM)
    expect(turn.locator(".answered")).to_be_visible()
    page.reload()
    turn = page.locator(".turn").last
    expect(turn.locator(".answered")).to_be_visible()
    for name, attributes in turn.evaluate(SEEN):
        assert set(attributes) <= ALLOWED[name]
    links = turn.evaluate("turn => [...turn.querySelectorAll('a')].map(a => new URL(a.href).protocol)")
    assert set(links) <= {"http:", "https:"}
    assert page.evaluate("window.hacked") is None
    assert stored(page)["messages"][0]["content"] == HARM.strip()


def test_everything_works_under_a_strict_policy(browse: Browse, site: Site) -> None:
    page = browse("/strict.html")
    page.locator("#p1").dblclick(position={"x": 30, "y": 8})
    page.get_by_role("button", name="Ask about this").click()
    page.get_by_role("textbox", name="Ask a question").wait_for()
    turn = ask(page)
    expect(turn.locator(".answered")).to_be_visible()
    turn.locator("sup a").click()
    page.wait_for_url("**/second.html#s1")


def test_a_greeting_is_not_said_to_be_missing_from_the_docs(browse: Browse, site: Site) -> None:
    site.replies.append(stream(answer("Hello.", status="not_in_docs", source_chunks=[], retrieval_used=False)))
    page = browse()
    turn = ask(page, "hi")
    expect(turn.locator(".copy_answer")).to_be_visible()
    expect(turn.get_by_text("Not in these docs")).to_have_count(0)
    expect(page.locator("[aria-live=polite]")).to_contain_text("Hello.")


def test_pages_to_read_first_are_no_closest_pages_and_are_told(browse: Browse, site: Site) -> None:
    first = {key: source(1)[key] for key in ("chapter", "section", "url")}
    hello = answer("Hello.", status="not_in_docs", source_chunks=[], retrieval_used=False, nearest=[first])
    site.replies.append(stream(hello))
    page = browse()
    turn = ask(page, "hi")
    turn.locator(".copy_answer").wait_for()
    expect(turn.locator(".sources a")).to_have_text(["›Locking › Section 1"])
    expect(turn.get_by_text("Closest pages")).to_have_count(0)
    expect(turn.get_by_role("list", name="Closest pages")).to_have_count(0)
    expect(page.locator("[aria-live=polite]")).to_have_text("Hello. Locking › Section 1")


def test_nothing_of_the_turn_before_is_left_above_a_question(browse: Browse, site: Site) -> None:
    page = browse()
    # Its tools are the last of it.
    site.replies.append(stream(answer("So.", source_chunks=[])))
    ask(page).locator(".copy_answer").wait_for()
    turn = ask(page, "And then?")
    turn.locator(".copy_answer").wait_for()
    gap = """turn => turn.querySelector('.asked').getBoundingClientRect().top
      - turn.parentNode.getBoundingClientRect().top"""
    before = """turn => turn.parentNode.getBoundingClientRect().top
      - turn.previousSibling.querySelector('.copy_answer').getBoundingClientRect().bottom"""
    assert 8 <= turn.evaluate(gap) <= 20
    assert turn.evaluate(before) >= 0
