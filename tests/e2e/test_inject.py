"""Sites of other generators with an injected chat: questions in a real browser, citations down to the heading."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from chapterverse.cli import main
from e2e.sites import ROOT, address, serve
from e2e.test_chat import ask, open_chat

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# As strict as a site can be: no inline script, no inline style, nothing from elsewhere.
CSP = "default-src 'self'; style-src 'self'; script-src 'self'; require-trusted-types-for 'script'"
PLAIN = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Keys</title>
<meta http-equiv="Content-Security-Policy" content="{CSP}">
<link rel="canonical" href="https://harbor.example/docs/guide/keys.html"></head><body><main>
<h1 id="keys">Keys</h1><p>Every crate is sealed with a signing key.</p>
<h2 id="setup">Rotating a signing key</h2><p>Run <code>harbor keys rotate</code> on the dock host.</p>
</main></body></html>"""


def plain(site: Path) -> None:
    (site / "guide").mkdir(parents=True)
    (site / "guide/keys.html").write_text(PLAIN)


def sphinx(site: Path) -> None:
    shutil.copytree(ROOT / "tests/sites/sphinx", site)
    # Sphinx links each page to its source, which the copy of the site lacks.
    (site / "_sources").mkdir()
    for name in ("index.rst.txt", "page.md.txt"):
        (site / "_sources" / name).touch()


@contextmanager
def served(folder: Path, **options: Any) -> Iterator[str]:
    server: subprocess.Popen[str] = serve(folder, **options)
    try:
        yield address(server)
    finally:
        server.terminate()
        server.communicate(timeout=10)


def run(*arguments: object) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    assert not left.value.code


@pytest.mark.parametrize(
    ("make", "start", "question", "anchor"),
    [
        pytest.param(plain, "guide/keys.html", "How do I rotate a signing key?", "guide/keys.html#setup", id="plain"),
        pytest.param(sphinx, "page.html", "How does a client connect?", "index.html#demo.Client", id="sphinx"),
    ],
)
def test_an_injected_site_answers_and_cites_its_heading(
    tmp_path: Path,
    visit: Callable[[str], Page],
    make: Callable[[Path], None],
    start: str,
    question: str,
    anchor: str,
) -> None:
    site = tmp_path / "site"
    make(site)
    run("index", site, "--store", f"edge:{tmp_path / 'index'}")
    run("inject", site, "--endpoint", "/")
    run("check", site, "--store", f"edge:{tmp_path / 'index'}")
    with served(tmp_path) as url:
        page = visit(f"{url}/{start}")
        open_chat(page)
        ask(page, question)
        source = page.locator(".turn a.crumb").first
        href = source.get_attribute("href") or ""
        assert href.startswith(f"{url}/{anchor}"), href
        source.click()
        page.wait_for_url(href)
        assert page.locator(f"[id='{href.partition('#')[2]}']").count() == 1
        # The panel is open again where the reader has come to.
        page.locator("chapter-verse textarea").wait_for()


@contextmanager
def elsewhere(folder: Path) -> Iterator[str]:
    """Serve a folder of files as any host does, without an API."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=folder)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_site_may_load_the_widget_from_the_api(tmp_path: Path, chromium: Browser) -> None:
    plain(tmp_path / "site")
    run("index", tmp_path / "site", "--store", f"edge:{tmp_path / 'index'}")
    keys = tmp_path / "site/guide/keys.html"
    with elsewhere(tmp_path / "site") as origin:
        variables = {"CHAPTERVERSE_ALLOWED_ORIGINS": origin, "CHAPTERVERSE_BASE_URL": f"{origin}/"}
        with served(tmp_path, site=False, **variables) as api:
            tag = f'<script type="module" src="{api}/widget/launcher.js"></script></body>'
            keys.write_text(PLAIN.replace(CSP, "").replace("</body>", tag))
            page = chromium.new_page()
            page.goto(f"{origin}/guide/keys.html")
            open_chat(page)
            ask(page, "How do I rotate a signing key?")
            source = page.locator(".turn a.crumb").first
            assert source.get_attribute("href") == f"{origin}/guide/keys.html#setup"
            page.close()
