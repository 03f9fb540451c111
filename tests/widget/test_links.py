"""Links in quotes, whose addresses the Markdown of the cited page has."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from widget import pages
from widget.chat import ask
from widget.pages import framing, of_segments, quote, source
from widget.pages import page as page_of
from widget.standin import Site, checked

Browse = Callable[..., Page]

QUOTE = (
    "A lock names every version; see the settings page and `uv lock` for more. Settings are read once, and the script "
    "that a page must not run is here.\n\n- The whole reference of the command line\n\n"
    "Code such as `[Google](https://evil.example/)` makes no link, while a name such as Foo "
    "makes one, and so does Bar in angles.\n\n"
)
MARKDOWN = r"""---
title: Locks
---
See also [Settings](https://docs.example/other). [here](https://docs.example/else) it ends.

A lock names every version; see [the *settings* page](https://docs.example/settings?a=1&amp;b) and `uv lock` for more.
Then: the settings page and [`uv lock`](/cli.html#lock) for more. Settings are read once, and
the script that a page must not run is [here](javascript:alert(1)).

- [The whole reference of the command line](/reference.html)
- [The whole reference of the command line](/reference.html)

Code such as `[Google](https://evil.example/)` makes no link, while [»](/empty.html) a name
such as [Foo](https://en.wikipedia.org/wiki/Foo_(bar)) makes one,
and so does [Bar](<https://en.wikipedia.org/wiki/Foo_(bar)>) in angles.
"""


@pytest.fixture
def cited(site: Site, standin_page: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> Site:
    """A site whose pages have their Markdown beside them, and an answer that quotes one of them."""
    html = page_of('<link rel="alternate" type="text/markdown" href="/tagged.md">').html
    standin_page(html)
    monkeypatch.setitem(pages.PAGES, "/second.md", pages.Page(MARKDOWN))
    answer = of_segments(framing("**Locking › Section 2**\n\n"), quote(QUOTE, "2", "A lock names every version"))
    site.replies.append(checked(answer))
    return site


def test_what_the_page_links_in_a_quote_is_linked_there(browse: Browse, cited: Site) -> None:
    turn = ask(browse("/tagged.html"))
    links = turn.locator(".card > div a")
    expect(links).to_have_text(
        ["the settings page", "uv lock", "The whole reference of the command line", "Foo", "Bar"]
    )
    expect(links.nth(0)).to_have_attribute("href", "https://docs.example/settings?a=1&b")
    expect(links.nth(0)).to_have_attribute("rel", "noopener noreferrer nofollow ugc")
    expect(links.nth(1)).to_have_attribute("href", f"{cited.url}/cli.html#lock")
    for place in (3, 4):
        expect(links.nth(place)).to_have_attribute("href", "https://en.wikipedia.org/wiki/Foo_(bar)")
    expect(turn.locator(".card > div")).to_contain_text("A lock names every version; see the settings page and uv lock")


@pytest.mark.parametrize(
    "url", ["https://elsewhere.example/second.html", "/gone.html", "//", "SITE//evil.example/x", "data:text/plain,x"]
)
def test_a_page_of_another_site_or_without_markdown_is_not_asked_for_or_changes_nothing(
    browse: Browse, cited: Site, url: str
) -> None:
    url = url.replace("SITE", cited.url)
    cited.replies[0] = checked(
        of_segments(framing("**Locking › Section 2**\n\n"), quote(QUOTE, "2"), source_chunks=[source(2, url=url)])
    )
    page = browse("/tagged.html")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    turn = ask(page)
    turn.locator(".copy_answer").wait_for()
    page.wait_for_load_state("networkidle")
    expect(turn.locator(".card > div a")).to_have_count(0)
    assert all(request.startswith(f"{cited.url}/") for request in requests)


def test_a_site_without_markdown_is_asked_for_none(browse: Browse, cited: Site) -> None:
    page = browse("/second.html")
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    ask(page).locator(".copy_answer").wait_for()
    page.wait_for_load_state("networkidle")
    assert not [url for url in requests if url.endswith((".md", "links.js"))]
