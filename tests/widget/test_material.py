"""On a real site: Material for MkDocs with instant navigation."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page as Tab
from playwright.sync_api import expect

from widget.chat import ask
from widget.standin import Site

CONFIG = """
site_name: Docs
site_url: {url}/
theme:
  name: material
  font: false
  features: [navigation.instant, navigation.top, search.suggest]
  palette: {{scheme: slate, primary: teal}}
plugins: []
use_directory_urls: false
markdown_extensions: [attr_list]
extra_javascript:
  - {{path: /widget/launcher.js, type: module}}
"""


@pytest.fixture
def material(site: Site, tmp_path: Path) -> None:
    """Build two pages and let the stand-in serve them."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "mkdocs.yml").write_text(CONFIG.format(url=site.url))
    sections = "\n\n".join(f"## Section {n} {{#s{n}}}\n\n" + "Words.\n\n" * 40 for n in range(1, 4))
    for name in ("index", "second"):
        (tmp_path / "docs" / f"{name}.md").write_text(f"# Page {name}\n\n{sections}")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, env={"NO_MKDOCS_2_WARNING": "1", "PATH": ""})
    site.folder = tmp_path / "site"


@pytest.mark.usefixtures("material")
def test_a_citation_keeps_instant_navigation_and_the_open_panel(browse: Callable[..., Tab], site: Site) -> None:
    page = browse("/index.html")
    page.evaluate("window.same = true")
    turn = ask(page)
    turn.locator("sup a").click()
    page.wait_for_url("**/second.html#s1")
    expect(page.locator("h1")).to_contain_text("Page second")
    assert page.evaluate("window.same")
    expect(turn.locator("sup a")).to_be_visible()
    page.wait_for_function("document.querySelector('#s1').getBoundingClientRect().top < 200")
    assert page.evaluate("document.querySelector('chapter-verse').shadowRoot.adoptedStyleSheets.length") >= 2


@pytest.mark.usefixtures("material")
def test_typing_never_opens_the_search_and_back_to_top_stays_free(browse: Callable[..., Tab], site: Site) -> None:
    page = browse("/index.html")
    page.mouse.wheel(0, 900)
    page.wait_for_function("scrollY > 500")
    page.mouse.wheel(0, -200)
    top = page.locator(".md-top")
    expect(top).to_be_visible()
    launcher = page.locator(".launcher").bounding_box()
    box = top.bounding_box()
    assert launcher
    assert box
    assert box["y"] + box["height"] < launcher["y"] or box["x"] + box["width"] < launcher["x"]
    ask(page, "s/f?").locator(".answered").wait_for()
    expect(page.get_by_role("textbox", name="Ask a question")).to_be_focused()
    assert not page.evaluate("document.querySelector('#__search')?.checked ?? false")
