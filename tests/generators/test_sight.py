"""Words, headings and gaps of foreign documentation as a browser shows it, against what the index holds.

The documentation is what the packages of the environment say of themselves: their descriptions in themes of MkDocs,
and the docstrings of the standard library in themes of Sphinx.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from generators.project import Project
from generators.sight import Sight, browse, look
from generators.test_starlight import CONTENT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PACKAGES = "fastapi httpx hypothesis jsonschema mcp mkdocs pydantic pytest ruff starlette typer uvicorn".split()
MODULES = "argparse asyncio.tasks collections csv difflib email.message fractions json pathlib textwrap".split()
MKDOCS = """\
site_name: Packages
theme: {name: THEME, features: [content.code.copy, navigation.footer]}
plugins: []
markdown_extensions: [admonition, attr_list, def_list, footnotes, tables, pymdownx.superfences, toc: {permalink: true}]
"""
DOCUSAURUS = """\
export default {
  title: 'Packages', url: 'https://packages.example', baseUrl: '/', onBrokenLinks: 'ignore', onBrokenAnchors: 'ignore',
  markdown: {format: 'md', hooks: {onBrokenMarkdownLinks: 'ignore'}},
  presets: [['classic', {docs: {routeBasePath: '/'}, blog: false, pages: false}]],
};
"""
STARLIGHT = """\
import {defineConfig} from 'astro/config';
import starlight from '@astrojs/starlight';

export default defineConfig({integrations: [starlight({title: 'Packages'})]});
"""
VITEPRESS = "export default {title: 'Packages', ignoreDeadLinks: true, markdown: {html: false}};\n"
SPHINX = "project = 'Modules'\nextensions = ['sphinx.ext.autodoc']\nhtml_theme = 'THEME'\n"


def description(name: str) -> str:
    """Return what a package says of itself, as Markdown."""
    about = metadata.metadata(name)
    return str(about.get_payload() or about["Description"] or "")


def build_docusaurus(_theme: str, _folder: Path) -> Path:
    pages = {f"docs/{name}.md": f"# {name}\n\n{_IMAGE.sub('', description(name))}" for name in PACKAGES}
    project = Project.new(
        "docusaurus", "@docusaurus/core/bin/docusaurus.mjs", "build", {"docusaurus.config.js": DOCUSAURUS, **pages}
    )
    project.build()
    return project.root / project.output


def build_starlight(_theme: str, _folder: Path) -> Path:
    front = "---\ntitle: {}\n---\n\n"
    pages = {f"src/content/docs/{n}.md": front.format(n) + _IMAGE.sub("", description(n)) for n in PACKAGES}
    files = {"astro.config.mjs": STARLIGHT, "src/content.config.ts": CONTENT, **pages}
    project = Project.new("starlight", "astro/bin/astro.mjs", "dist", files)
    project.build()
    return project.root / project.output


def build_vitepress(_theme: str, _folder: Path) -> Path:
    # Its pages are templates of Vue.
    pages = {f"{name}.md": f"::: v-pre\n{_IMAGE.sub('', description(name))}\n:::\n" for name in PACKAGES}
    config = {".vitepress/config.mjs": VITEPRESS, "package.json": '{"type": "module"}'}
    project = Project.new("vitepress", "vitepress/bin/vitepress.js", ".vitepress/dist", {**config, **pages})
    project.build()
    return project.root / project.output


def build_mkdocs(theme: str, folder: Path) -> Path:
    (folder / "docs").mkdir()
    (folder / "mkdocs.yml").write_text(MKDOCS.replace("THEME", theme), encoding="utf-8")
    for name in PACKAGES:
        (folder / f"docs/{name}.md").write_text(description(name), encoding="utf-8")
    _run("mkdocs", "build", "--quiet", "--config-file", str(folder / "mkdocs.yml"), "--site-dir", str(folder / "site"))
    return folder / "site"


def build_sphinx(theme: str, folder: Path) -> Path:
    (folder / "conf.py").write_text(SPHINX.replace("THEME", theme), encoding="utf-8")
    names = "\n   ".join(MODULES)
    (folder / "index.rst").write_text(f"Modules\n=======\n\n.. toctree::\n\n   {names}\n", encoding="utf-8")
    for name in MODULES:
        text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :members:\n   :undoc-members:\n"
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    _run("sphinx", "-q", "-b", "html", str(folder), str(folder / "site"))
    return folder / "site"


def _run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


#: Both generators refuse an image that they don't find.
_IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)|<img[^>]*>")

SITES: dict[str, tuple[Callable[[str, Path], Path], tuple[str, ...], str, str]] = {
    "material": (
        build_mkdocs, ("mkdocs", "mkdocs-material"), ".md-content__inner",
        ".headerlink, .md-source-file, .md-content__button, .footnote-backref",
    ),
    "readthedocs": (build_mkdocs, ("mkdocs",), "[itemprop=articleBody]", ".headerlink, .footnote-backref"),
    "mkdocs": (build_mkdocs, ("mkdocs",), "[role=main]", ".headerlink, .footnote-backref"),
    "furo": (build_sphinx, ("sphinx", "furo"), "article[role=main]", ".headerlink, .linenos"),
    "alabaster": (build_sphinx, ("sphinx", "alabaster"), ".body[role=main]", ".headerlink, .linenos"),
    "docusaurus": (build_docusaurus, (), ".theme-doc-markdown", ".hash-link"),
    "starlight": (build_starlight, (), "main h1, .sl-markdown-content", ".sl-anchor-link, .sr-only"),
    "vitepress": (build_vitepress, (), ".vp-doc", ".header-anchor, button.copy, span.lang"),
    "nature": (build_sphinx, ("sphinx",), ".body[role=main]", ".headerlink, .linenos"),
}  # fmt: skip


@pytest.mark.parametrize("name", SITES)
def test_the_index_holds_what_a_browser_shows(name: str, tmp_path: Path, chromium: Browser) -> None:
    build, made_of, content, without = SITES[name]
    site = build(name, tmp_path)
    paths = [page.relative_to(site).as_posix() for page in sorted(site.rglob("*.html"))]
    with browse(chromium, site) as page:
        sight = look(
            page, site, [path for path in paths if not path.startswith(("404", "genindex", "search"))], content, without
        )
    said = f"{[f'{package} {metadata.version(package)}' for package in made_of]}: {report(sight)}"
    assert sight.words > 5_000, said
    assert sight.present >= 0.995, said
    assert sight.foreign <= 0.005, said
    assert not sight.glued, said
    assert len(sight.lost) <= 0.005 * sight.headings, said


def report(sight: Sight) -> str:
    shares = f"{sight.pages} pages, {sight.words} words, {sight.present:.4%} present, {sight.foreign:.4%} others"
    words = f"missing {sight.missing.most_common(9)}, others {sight.others.most_common(9)}, glued {sight.glued}"
    return f"{shares}; {words}, lost {sight.lost[:9]}"
