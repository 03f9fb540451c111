"""A page with the chat, and the checks that every test of the widget makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from widget import pages
from widget.standin import Site, serve

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

#: Notes what a strict page would report: refused scripts, styles and requests, and strings given to HTML sinks.
WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', event => {
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as running:
        yield running


@pytest.fixture
def standin_page(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a page of this HTML at /tagged.html."""
    return lambda html: monkeypatch.setitem(pages.PAGES, "/tagged.html", pages.Page(html))


@pytest.fixture(scope="session")
def context(chromium: Browser) -> Callable[..., BrowserContext]:
    """Return the browser profile with these options, shared by tests, because each has its own origin and tabs."""
    made: dict[str, BrowserContext] = {}

    def get(**options: Any) -> BrowserContext:
        key = repr(sorted(options.items()))
        if key not in made:
            made[key] = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
            made[key].set_default_timeout(30_000)
            made[key].add_init_script(WATCH)
            # It keeps its window open: a new one for each test would cost more than the test, as Chromium draws its own
            # buttons by pages too.
            made[key].new_page()
        return made[key]

    return get


@pytest.fixture
def browse(context: Callable[..., BrowserContext], site: Site) -> Iterator[Callable[..., Page]]:
    """Open a page of the site. At the end no page has thrown, broken its policy or asked anybody else for anything."""
    pages: list[Page] = []
    requests: list[str] = []
    thrown: list[str] = []

    def open_page(path: str = "/", **options: Any) -> Page:
        page = context(**options).new_page()
        pages.append(page)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: thrown.append(error.message))
        page.goto(site.url + path)
        return page

    yield open_page
    violations = [violation for page in pages for violation in page.evaluate("window.violations")]
    for page in pages:
        page.close()
    assert violations == []
    assert thrown == []
    assert [url for url in requests if not url.startswith(site.url)] == []
