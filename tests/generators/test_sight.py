"""Words, headings and gaps of foreign documentation as a browser shows it, against what the index holds.

The documentation is what packages say of themselves: their descriptions in themes of MkDocs and in Hugo, the docstrings
of the standard library in themes of Sphinx and by pdoc, and JSDoc's own code by JSDoc. Locks pin the generators that
are no packages of the environment: `infra/hugo.txt`, `infra/pdoc.txt`, and `package-lock.json` of a folder here.
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
from browser import NODE

from conftest import ROOT
from generators.project import Project, install
from generators.sight import Sight, browse, look
from generators.test_starlight import CONTENT
from infra.conftest import programs

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


HUGO = """\
title = 'Packages'
disableKinds = ['taxonomy', 'term', 'rss', 'sitemap']
[markup.goldmark.renderer]
unsafe = true
[markup.highlight]
lineNos = true
lineNumbersInTable = true
"""
HUGO_PAGE = """\
<!doctype html>
<html><head><meta charset="utf-8"><title>{{ .Title }}</title><style>code {padding: .3em}</style></head>
<body><nav>Packages</nav><main><h1>{{ .Title }}</h1>{{ .Content }}</main></body></html>
"""


def description(name: str) -> str:
    """Return what a package says of itself, as Markdown."""
    about = metadata.metadata(name)
    return str(about.json.get("description", ""))


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


def build_hugo(_theme: str, folder: Path) -> Path:
    pages = {f"content/{name}.md": f"---\ntitle: {name}\n---\n\n{description(name)}" for name in PACKAGES}
    layouts = {f"layouts/_default/{kind}.html": HUGO_PAGE for kind in ("single", "list")}
    for path, text in {"hugo.toml": HUGO, **layouts, **pages}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    _call(programs("hugo") / "hugo", "--source", folder, "--destination", folder / "site")
    return folder / "site"


def build_pdoc(_theme: str, folder: Path) -> Path:
    _call(programs("pdoc") / "pdoc", *MODULES, "--output-directory", folder)
    return folder


def build_jsdoc(template: str, folder: Path) -> Path:
    home = ROOT / ".cache/generators/jsdoc"
    install(Path(__file__).parent / "jsdoc", home)
    jsdoc = home / "node_modules/jsdoc"
    theme = jsdoc / "templates/default" if template == "jsdoc" else home / "node_modules" / template
    _call(NODE, jsdoc / "jsdoc.js", "-r", "-t", theme, "-d", folder, "-R", jsdoc / "README.md", jsdoc / "lib")
    return folder


def _run(*command: str) -> None:
    _call(sys.executable, "-m", *command)


def _call(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
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
    "hugo": (build_hugo, (), "main", ".lnt"),
    "pdoc": (build_pdoc, (), "main", ".headerlink, .view-source-button, .linenos"),
    "jsdoc": (build_jsdoc, (), "#main", ""),
    "docdash": (build_jsdoc, (), "#main", ""),
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
