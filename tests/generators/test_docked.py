"""The chat beside the page on themes as their generators build them: no text of the page lies under the panel."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from conftest import ROOT
from generators.project import Project
from generators.test_starlight import CONTENT
from widget.sites import CLASSIC, MATERIAL, PAGES, STOCK, build_mkdocs, build_sphinx, markdown
from widget.standin import Site, serve
from widget.test_themes import ANSWERED, COPY, QUESTION, SWITCH, ask

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS = (1000, 1280, 1440, 1680, 1920)
LAUNCHER = "{tag: 'script', attrs: {type: 'module', src: '/widget/launcher.js'}}"

#: Blocks of text that end under a panel at the end of the window; what scrolls or hides ends its text.
UNDER = """() => {
  const edge = document.documentElement.clientWidth - Math.min(Math.max(430, 0.3 * innerWidth), 480, 0.4 * innerWidth);
  return [...document.querySelectorAll('h1,h2,h3,p,li,dt,dd,pre,td,th')].filter(block => {
    const range = new Range();
    range.selectNodeContents(block);
    let { left, right, width } = range.getBoundingClientRect();
    const code = block.querySelector(':scope>code');
    for (let node = code ?? block; node && node !== document.body; node = node.parentElement) {
      if (getComputedStyle(node).overflowX !== 'visible') right = Math.min(right, node.getBoundingClientRect().right);
    }
    return block.checkVisibility() && width && left < right && right > edge + 1;
  }).map(block => block.textContent.slice(0, 40));
}"""


@dataclass(frozen=True)
class Theme:
    """A theme that a generator builds.

    Attributes:
        build: makes the site of `widget.sites` in an empty folder and returns where its pages are.
        versions: of the theme and its generator, as this was tried with them.
        lock: the file that pins them.
        floats: widths at which the page has no room, so that docking is not offered.
        most_under: blocks that may lie under the panel.
    """

    build: Callable[[Path], Path]
    versions: dict[str, str]
    lock: str
    floats: tuple[int, ...] = ()
    most_under: int = 0


def _sphinx(theme: str) -> Callable[[Path], Path]:
    def build(folder: Path) -> Path:
        command: list[str | Path] = [sys.executable, ROOT / "scripts" / "tools.py", "sphinx"]
        programs = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        return build_sphinx(folder, theme, f"{programs}/python")

    return build


def _npm(name: str, program: str, output: str, files: dict[str, str], pages: str) -> Callable[[Path], Path]:
    def build(_: Path) -> Path:
        texts = {pages.format(page): f"---\ntitle: {title}\n---\n{_body(title)}" for page, title in PAGES.items()}
        project = Project.new(name, program, output, files | texts)
        project.build()
        return project.root / output

    return build


def _body(title: str) -> str:
    return markdown(title).partition("\n")[2]


DOCUSAURUS = {
    "docusaurus.config.js": """\
export default {
  title: 'Harbor', url: 'https://harbor.example', baseUrl: '/', trailingSlash: false,
  presets: [['classic', {docs: {routeBasePath: '/'}, blog: false, pages: false}]],
  headTags: [{tagName: 'script', attributes: {type: 'module', src: '/widget/launcher.js'}}],
};
"""
}
VITEPRESS = {
    ".vitepress/config.mjs": """\
export default {
  title: 'Harbor', head: [['script', {type: 'module', src: '/widget/launcher.js'}]],
  themeConfig: {sidebar: [{text: 'Pages', items: [{text: 'Harbor', link: '/'}, {text: 'Keys', link: '/keys'}]}]},
};
"""
}
STARLIGHT = {
    "astro.config.mjs": f"""\
import {{defineConfig}} from 'astro/config';
import starlight from '@astrojs/starlight';

export default defineConfig({{
  site: 'https://harbor.example', build: {{format: 'file'}},
  integrations: [starlight({{title: 'Harbor', pagefind: false, head: [{LAUNCHER}]}})],
}});
""",
    "src/content.config.ts": CONTENT,
}
TESTS, TOOLS = "requirements/test.txt", "infra/sphinx.txt"
#: Here the column of text would be too narrow to read.
SMALL = (1000,)

THEMES = {
    "material": Theme(build_mkdocs("mkdocs", MATERIAL), {"mkdocs": "1.6.1", "mkdocs-material": "9.8.1"}, TESTS),
    "zensical": Theme(build_mkdocs("zensical", MATERIAL), {"zensical": "0.0.73"}, TESTS),
    "zensical-classic": Theme(build_mkdocs("zensical", CLASSIC), {"zensical": "0.0.73"}, TESTS),
    "mkdocs": Theme(build_mkdocs("mkdocs", STOCK), {"mkdocs": "1.6.1"}, TESTS),
    "furo": Theme(_sphinx("furo"), {"sphinx": "9.0.4", "furo": "2025.12.19"}, TOOLS),
    "rtd": Theme(
        _sphinx("sphinx_rtd_theme"), {"sphinx": "9.0.4", "sphinx-rtd-theme": "3.1.0"}, TOOLS, SMALL, most_under=8
    ),
    "pydata": Theme(_sphinx("pydata_sphinx_theme"), {"sphinx": "9.0.4", "pydata-sphinx-theme": "0.20.0"}, TOOLS),
    "book": Theme(_sphinx("sphinx_book_theme"), {"sphinx": "9.0.4", "sphinx-book-theme": "1.4.0"}, TOOLS),
    "docusaurus": Theme(
        _npm("docusaurus", "@docusaurus/core/bin/docusaurus.mjs", "build", DOCUSAURUS, "docs/{}.md"),
        {"@docusaurus/core": "3.10.2"}, "tests/generators/docusaurus/package-lock.json", SMALL,
    ),
    "vitepress": Theme(
        _npm("vitepress", "vitepress/bin/vitepress.js", ".vitepress/dist", VITEPRESS, "{}.md"),
        {"vitepress": "1.6.4"}, "tests/generators/vitepress/package-lock.json", SMALL,
    ),
    "starlight": Theme(
        _npm("starlight", "astro/bin/astro.mjs", "dist", STARLIGHT, "src/content/docs/{}.md"),
        {"@astrojs/starlight": "0.42.4", "astro": "7.3.5"}, "tests/generators/starlight/package-lock.json", SMALL,
    ),
}  # fmt: skip


def pinned(lock: str) -> dict[str, str]:
    """Return the versions that a lock pins."""
    text = (ROOT / lock).read_text()
    if lock.endswith(".json"):
        return {
            p.removeprefix("node_modules/"): found["version"] for p, found in json.loads(text)["packages"].items() if p
        }
    return dict(reversed(re.findall(r"^([\w.-]+)==([\w.]+)", text, re.MULTILINE)))


@pytest.mark.parametrize("theme", THEMES)
def test_a_docked_panel_has_no_text_under_it(chromium: Browser, tmp_path: Path, theme: str) -> None:
    look = THEMES[theme]
    assert look.versions.items() <= pinned(look.lock).items(), "say which versions it was tried with"
    under = {}
    with serve() as site:
        site.folder = look.build(tmp_path)
        for width in WIDTHS:
            page = chromium.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce")
            if dock(page, site):
                under[width] = page.evaluate(UNDER)
            page.close()
    assert under.keys() == {*WIDTHS} - {*look.floats}
    assert max(map(len, under.values())) <= look.most_under, under


def dock(page: Page, site: Site) -> bool:
    """Put an answered chat beside the page, and return whether that is offered."""
    page.goto(f"{site.url}/index.html")
    site.replies.append(ANSWERED)
    ask(page, QUESTION, COPY)
    page.wait_for_timeout(300)
    button = page.get_by_role("button", name="Beside the page")
    offered = button.is_visible()
    if offered:
        button.click()
        page.wait_for_timeout(SWITCH)
    return offered
