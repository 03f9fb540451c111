"""A site and a browser."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from e2e.sites import ROOT, Site, address, build, serve, write_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, str], Site]]:
    """Build and serve a site by theme and generator, or our own documentation for the theme "ours"; each once."""
    running: dict[tuple[str, str], Site] = {}
    servers: list[subprocess.Popen[str]] = []

    def start(theme: str, generator: str = "mkdocs") -> Site:
        if (theme, generator) not in running:
            folder = tmp_path_factory.mktemp("site")
            if theme == "ours":
                build(ROOT / "site_example", folder, generator)
            else:
                write_site(folder, theme)
                build(folder, folder, generator)
            server = serve(folder)
            servers.append(server)
            running[theme, generator] = Site(folder / "site", address(server))
        return running[theme, generator]

    yield start
    for server in servers:
        server.terminate()
        server.communicate(timeout=10)


@pytest.fixture
def visit(chromium: Browser) -> Iterator[Callable[[str], Page]]:
    """Open an address in a new window, and check at the end that no other server was contacted."""
    contexts: list[BrowserContext] = []
    requests, errors = list[str](), list[str]()

    def open_page(url: str, **options: Any) -> Page:
        context = chromium.new_context(viewport={"width": 1280, "height": 800}, **options)
        context.set_default_timeout(30_000)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    foreign = [url for url in requests if not re.match(r"(http://127\.0\.0\.1:\d+/|data:|blob:)", url)]
    assert foreign == []
