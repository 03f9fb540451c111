"""Words, headings and gaps of foreign documentation as a browser shows it, against what the index holds.

The documentation is what packages say of themselves: their descriptions in themes of MkDocs and Hugo and by Antora, the
docstrings of the standard library in themes of Sphinx and by pdoc, and JSDoc's own code by JSDoc. Locks pin the
generators that are no packages of the environment: `infra/hugo.txt`, `infra/pdoc.txt`, and `package-lock.json` of a
folder here. Pages of generators that no registry has are those of `tests/sites`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
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
from readers.golden import SITES as CAPTURES

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PINS, HOMES = Path(__file__).parent, ROOT / ".cache/generators"
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
#: What the second builds add.
MORE_MARKDOWN = (
    "md_in_html, pymdownx.details, pymdownx.tabbed: {alternate_style: true}, pymdownx.highlight: {linenums: true}"
)
MORE_SPHINX = "'sphinx.ext.autodoc', 'sphinx.ext.napoleon', 'sphinx.ext.viewcode'"
PACKAGE_MODULES = (
    "chapterverse.model chapterverse.extensions jsonschema.validators httpx pydantic.fields starlette.responses".split()
)
MORE_MODULES = "argparse dataclasses enum logging string tempfile unittest.mock zipfile".split()
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
#: Docsy looks for these two beside its own folder, where npm doesn't put them.
DOCSY = """\
title = 'Packages'
baseURL = 'https://packages.example/'
theme = 'theme'
disableKinds = ['taxonomy', 'term', 'rss', 'sitemap']
[markup.goldmark.renderer]
unsafe = true
[[module.mounts]]
source = 'content'
target = 'content'
[[module.mounts]]
source = 'MODULES/bootstrap'
target = 'assets/vendor/bootstrap'
[[module.mounts]]
source = 'MODULES/@fortawesome/fontawesome-free'
target = 'assets/vendor/Font-Awesome'
"""
ANTORA = """\
site: {title: Packages, url: https://packages.example}
content: {sources: [{url: ./content, branches: HEAD}]}
ui: {bundle: {url: ./ui}}
asciidoc: {extensions: ['@asciidoctor/tabs']}
runtime: {cache_dir: ./cache, log: {level: fatal}}
output: {dir: ./site}
"""
#: The frame of Antora's default UI, which is in no registry.
ANTORA_PAGE = """\
<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{{{page.title}}}</title>
<link rel="stylesheet" href="{{{uiRootPath}}}/asciidoctor.css">
<link rel="stylesheet" href="{{{uiRootPath}}}/tabs.css"></head>
<body class="article"><header class="header"><nav class="navbar">Packages</nav></header><div class="body">
<div class="nav-container"><aside class="nav"><nav class="nav-menu"><h3 class="title">Packages</h3></nav></aside></div>
<main class="article"><div class="toolbar" role="navigation">Edit this page</div><div class="content">
<aside class="toc sidebar" data-title="Contents"><div class="toc-menu"></div></aside>
<article class="doc"><h1 class="page">{{{page.title}}}</h1>
{{{page.contents}}}
<nav class="pagination"><span class="prev">Index</span></nav></article></div></main></div>
<footer class="footer"><p>Built using the default UI.</p></footer></body></html>
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


def build_vitepress(theme: str, _folder: Path) -> Path:
    # Its pages are templates of Vue.
    pages = {f"{name}.md": f"::: v-pre\n{_IMAGE.sub('', description(name))}\n:::\n" for name in PACKAGES}
    text = VITEPRESS if theme == "vitepress" else VITEPRESS.replace("html: false", "html: false, lineNumbers: true")
    config = {".vitepress/config.mjs": text, "package.json": '{"type": "module"}'}
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


def build_own_docs(theme: str, folder: Path) -> Path:
    """Build this project's docs with tabs, annotations and numbered lines."""
    config = MKDOCS.replace("THEME", theme.split()[0]).replace("content.code.copy", "content.code.annotate")
    config = (
        config.replace("[admonition", f"[{MORE_MARKDOWN}, admonition") + f"docs_dir: {ROOT / 'site_example/docs'}\n"
    )
    (folder / "mkdocs.yml").write_text(config, encoding="utf-8")
    _run("mkdocs", "build", "--quiet", "--config-file", str(folder / "mkdocs.yml"), "--site-dir", str(folder / "site"))
    return folder / "site"


def build_sphinx(theme: str, folder: Path) -> Path:
    return _build_modules(SPHINX.replace("THEME", theme), MODULES, folder)


def build_packages(theme: str, folder: Path) -> Path:
    """Build docstrings in Google's style, with the source beside them."""
    config = SPHINX.replace("THEME", theme.split()[0]).replace("'sphinx.ext.autodoc'", MORE_SPHINX)
    return _build_modules(config, PACKAGE_MODULES, folder)


def _build_modules(config: str, modules: Iterable[str], folder: Path) -> Path:
    (folder / "conf.py").write_text(config, encoding="utf-8")
    names = "\n   ".join(modules)
    (folder / "index.rst").write_text(f"Modules\n=======\n\n.. toctree::\n\n   {names}\n", encoding="utf-8")
    for name in modules:
        text = f"{name}\n{'=' * len(name)}\n\n.. automodule:: {name}\n   :members:\n   :undoc-members:\n"
        (folder / f"{name}.rst").write_text(text, encoding="utf-8")
    _run("sphinx", "-q", "-b", "html", str(folder), str(folder / "site"))
    return folder / "site"


def build_hugo(_theme: str, folder: Path) -> Path:
    pages = {f"content/{name}.md": f"---\ntitle: {name}\n---\n\n{description(name)}" for name in PACKAGES}
    layouts = {f"layouts/_default/{kind}.html": HUGO_PAGE for kind in ("single", "list")}
    _write(folder, {"hugo.toml": HUGO, **layouts, **pages})
    _call(programs("hugo") / "hugo", "--source", folder, "--destination", folder / "site")
    return folder / "site"


def build_docsy(_theme: str, folder: Path) -> Path:
    home = HOMES / "docsy"
    install(PINS / "docsy", home)
    pages = {f"content/docs/{name}.md": f"---\ntitle: {name}\n---\n\n{description(name)}" for name in PACKAGES}
    kinds = {"content/docs/kinds.md": (PINS / "docsy/kinds.md").read_text("utf-8")}
    modules = home / "node_modules"
    _write(folder, {"hugo.toml": DOCSY.replace("MODULES", str(modules)), **pages, **kinds})
    (sass,) = modules.glob("sass-embedded-*/dart-sass")
    path = os.pathsep.join([str(sass), os.environ["PATH"]])
    theme = ("--themesDir", modules / "@docsy")
    _call(programs("hugo") / "hugo", "--source", folder, *theme, "--destination", folder / "site", PATH=path)
    return folder / "site"


def build_antora(_theme: str, folder: Path) -> Path:
    home = HOMES / "antora"
    install(PINS / "antora", home)
    modules = home / "node_modules/@asciidoctor"
    pages = {f"content/modules/ROOT/pages/{name}.adoc": f"= {name}\n\n{description(name)}" for name in PACKAGES}
    kinds = {"content/modules/ROOT/pages/kinds.adoc": (PINS / "antora/kinds.adoc").read_text("utf-8")}
    sheets = {f"ui/{sheet.name}": sheet.read_text("utf-8") for sheet in modules.glob("*/dist/css/*.css")}
    layouts = {f"ui/layouts/{kind}.hbs": ANTORA_PAGE for kind in ("default", "404")}
    about = {"content/antora.yml": "{name: packages, version: ~, title: Packages}", "antora.yml": ANTORA}
    _write(folder, {**about, **layouts, **sheets, **pages, **kinds})
    git = ("git", "-C", folder / "content", "-c", "user.name=x", "-c", "user.email=x@example.com")
    for step in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "Pages")):
        _call(*git, *step)
    _call(NODE, home / "node_modules/@antora/cli/bin/antora", folder / "antora.yml")
    return folder / "site"


def build_pdoc(theme: str, folder: Path) -> Path:
    options = ("--docformat", "google", "--no-show-source") if theme != "pdoc" else ()
    _call(programs("pdoc") / "pdoc", *options, *(MORE_MODULES if options else MODULES), "--output-directory", folder)
    return folder


def build_jsdoc(template: str, folder: Path) -> Path:
    home = HOMES / "jsdoc"
    install(PINS / "jsdoc", home)
    jsdoc = home / "node_modules/jsdoc"
    theme = jsdoc / "templates/default" if template == "jsdoc" else home / "node_modules" / template
    _call(NODE, jsdoc / "jsdoc.js", "-r", "-t", theme, "-d", folder, "-R", jsdoc / "README.md", jsdoc / "lib")
    return folder


def _run(*command: str) -> None:
    _call(sys.executable, "-m", *command)


def _write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def _call(*command: str | Path, **environment: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr


#: Both generators refuse an image that they don't find.
_IMAGE = re.compile(r"!\[[^\]]*\]\((?!https?:)[^)]*\)|<img[^>]*>")

SITES: dict[str, tuple[Callable[[str, Path], Path], tuple[str, ...], str, str]] = {
    "material": (
        build_mkdocs, ("mkdocs", "mkdocs-material"), ".md-content__inner",
        ".headerlink, .md-source-file, .md-content__button, .footnote-backref",
    ),
    "material with options": (
        build_own_docs, ("mkdocs", "mkdocs-material"), ".md-content__inner",
        ".headerlink, .md-source-file, .md-content__button, .footnote-backref, .linenos",
    ),
    "readthedocs": (build_mkdocs, ("mkdocs",), "[itemprop=articleBody]", ".headerlink, .footnote-backref"),
    "mkdocs": (build_mkdocs, ("mkdocs",), "[role=main]", ".headerlink, .footnote-backref"),
    "furo": (build_sphinx, ("sphinx", "furo"), "article[role=main]", ".headerlink, .linenos"),
    "furo with extensions": (
        build_packages, ("sphinx", "furo"), "article[role=main]",
        ".headerlink, .linenos, .viewcode-link, .viewcode-back",
    ),
    "alabaster": (build_sphinx, ("sphinx", "alabaster"), ".body[role=main]", ".headerlink, .linenos"),
    "docusaurus": (build_docusaurus, (), ".theme-doc-markdown", ".hash-link"),
    "starlight": (build_starlight, (), "main h1, .sl-markdown-content", ".sl-anchor-link, .sr-only"),
    "vitepress": (build_vitepress, (), ".vp-doc", ".header-anchor, button.copy, span.lang"),
    "vitepress with numbers": (
        build_vitepress, (), ".vp-doc", ".header-anchor, button.copy, span.lang, .line-numbers-wrapper",
    ),
    "hugo": (build_hugo, (), "main", ".lnt"),
    "docsy": (build_docsy, (), ".td-content", ".td-heading-self-link, .footnote-ref, .footnote-backref"),
    "antora": (build_antora, (), "article.doc", ".anchor, sup.footnote, .pagination"),
    "pdoc": (build_pdoc, (), "main", ".headerlink, .view-source-button, .linenos"),
    "pdoc in Google style": (build_pdoc, (), "main", ".headerlink, .view-source-button, .linenos"),
    "jsdoc": (build_jsdoc, (), "#main", ""),
    "docdash": (build_jsdoc, (), "#main", ""),
    "nature": (build_sphinx, ("sphinx",), ".body[role=main]", ".headerlink, .linenos"),
}  # fmt: skip


#: Pages of `tests/sites`, what made them, their content, what the theme adds there, and what its style sheet hides or
#: writes. The pages are short, so that a single word is more than the share that others may lack.
CAPTURED = {
    "hextra": ("Hextra 0.12.3", "main > .content", ".subheading-anchor, .footnote-ref, .footnote-backref", ""),
    "just-the-docs": (
        "just-the-docs 0.12.0", "main", ".footnote, .reversefootnote, .gl",
        ".label {display: inline-block; margin: 0 .5em}",
    ),
    "mdbook": ("mdBook 0.5", "main", ".footnote-reference, li > p > a", ""),
    "quarto": (
        "Quarto 1.8", "main", ".footnote-ref, .footnote-back",
        ".screen-reader-only {display: none} .callout-tip .callout-icon::before {content: '' / 'Tip'}",
    ),
    "docfx": ("DocFX 2.78", "article", ".header-action", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", CAPTURED)
def test_the_index_holds_what_a_browser_shows_of_a_captured_page(name: str, chromium: Browser) -> None:
    made_by, content, without, sheet = CAPTURED[name]
    site = CAPTURES / name
    paths = [page.relative_to(site).as_posix() for page in site.rglob("*.html")]
    with browse(chromium, site) as page:
        sight = look(page, site, paths, content, without, sheet)
    said = f"{made_by}: {report(sight)}"
    assert sight.words > 20, said
    assert (sight.missing, sight.others, sight.glued, sight.lost) == ({}, {}, {}, []), said


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
