"""One small documentation site with seven generators' own style sheets, for the chat.

MkDocs, ProperDocs, Zensical and Sphinx build theirs for real. Docusaurus and VitePress would each bring hundreds of
megabytes, so `themes/` holds pages in their class names: on Docusaurus' own style sheet, Infima, and on the custom
properties that VitePress defines.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

THEMES_FOLDER = Path(__file__).parent / "themes"
INFIMA = Path(__file__).parents[2] / "node_modules" / "infima" / "dist" / "css" / "default" / "default.css"

#: Title, text and commands of each section; every generator makes of a title the same anchor.
SECTIONS = (
    (
        "Rotating a signing key",
        "The old key stays valid for 24 hours, so that crates in transit still open.",
        "harbor keys rotate --grace 24h",
    ),
    (
        "Revoking a signing key",
        "A revoked key opens nothing from that moment on. Revoke a key only when it has leaked.",
        "harbor keys revoke KEY_ID",
    ),
    (
        "Limits of a dock",
        "A dock holds 512 crates in transit, and a crate holds 16 MB.",
        "harbor dock limits --json",
    ),
    (
        "Moving a dock",
        "Crates that arrive during a move wait at the gate for up to an hour.",
        "harbor dock move east-2",
    ),
)

PAGES = {"index": "Harbor", "keys": "Keys and docks"}

#: Enough to scroll: themes show "back to top" only far down a page.
PARAGRAPHS = 2 * (
    (
        "Every crate is sealed with a signing key, and every dock checks the seal before it opens one. A seal that "
        "does not match is reported to the harbor master together with the name of the dock."
    ),
    (
        "Docks that share a quay share their keys. Read this page to the end before you change one of them on a quay "
        "that is in use, and tell those who work there."
    ),
)


#: What is wide, and in some themes never wraps: code, and the headers and one row of a table.
COMMAND = "harbor keys rotate --grace 24h --dock east-2 --dock east-3 --notify harbor-master@harbor.example " * 2
TABLE = (
    ("Setting", "Default", "What it does", "Since"),
    ("keys.rotate.grace", "24h", "How long a dock accepts seals of the key before, for crates in transit", "2.1"),
)


def markdown(title: str) -> str:
    parts = [f"# {title}", "See [Keys and docks](keys.md) for what a day in the harbor needs."]
    for heading, text, command in SECTIONS:
        parts += [f"## {heading}", text, f"```sh\n{command}\n```", *PARAGRAPHS]
    header, row = (f"| {' | '.join(cells)} |" for cells in TABLE)
    table = "\n".join((header, "| --- " * len(TABLE[0]) + "|", row))
    return "\n\n".join([*parts, table, f"```sh\n{COMMAND}\n```"]) + "\n"


def _restructured(title: str) -> str:
    parts = [f"{title}\n{'=' * len(title)}", "See :doc:`keys` for what a day in the harbor needs."]
    for heading, text, command in SECTIONS:
        parts += [f"{heading}\n{'-' * len(heading)}", text, f".. code-block:: sh\n\n   {command}", *PARAGRAPHS]
    header, row = ("   " + ", ".join(map(json.dumps, cells)) for cells in TABLE)
    table = f".. csv-table::\n   :header-rows: 1\n\n{header}\n{row}"
    return "\n\n".join([*parts, table, f".. code-block:: sh\n\n   {COMMAND}"]) + "\n"


def _html(title: str) -> str:
    parts = [f"<h1>{title}</h1>", '<p>See <a href="keys.html">Keys and docks</a> for what a day needs.</p>']
    for heading, text, command in SECTIONS:
        anchor = heading.lower().replace(" ", "-")
        parts += [f'<h2 id="{anchor}">{heading}</h2><p>{text}</p><pre><code>{command}</code></pre>']
        parts += [f"<p>{paragraph}</p>" for paragraph in PARAGRAPHS]
    return "\n".join(parts)


def _run(module: str, *arguments: str, folder: Path, python: str = sys.executable) -> None:
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [python, "-m", module, *arguments], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


MKDOCS = """
site_name: Harbor
site_url: https://harbor.example/
use_directory_urls: false
theme: {theme}
extra_javascript:
  - {{path: /widget/launcher.js, type: module}}
"""

PALETTE = (
    "font: false, palette: [{scheme: default, primary: teal, toggle: {icon: material/weather-night, name: Dark}}, "
    "{scheme: slate, primary: teal, toggle: {icon: material/weather-sunny, name: Light}}], "
    "features: [navigation.instant, navigation.top, search.suggest]"
)
MATERIAL = f"{{name: material, {PALETTE}}}"
CLASSIC = f"{{name: material, variant: classic, {PALETTE}}}"
#: Without `highlightjs: false` its pages ask a content network for a script; with it the switch of MkDocs 1.6 throws.
STOCK = "{name: mkdocs, highlightjs: false, color_mode: light}"


def build_mkdocs(module: str, theme: str) -> Callable[[Path], Path]:
    """Return what builds a site from Markdown and `mkdocs.yml`."""

    def build(folder: Path) -> Path:
        (folder / "docs").mkdir()
        for name, title in PAGES.items():
            (folder / "docs" / f"{name}.md").write_text(markdown(title))
        (folder / "mkdocs.yml").write_text(MKDOCS.format(theme=theme))
        _run(module, "build", "--config-file", "mkdocs.yml", folder=folder)
        return folder / "site"

    return build


def build_sphinx(folder: Path, theme: str = "furo", python: str = sys.executable) -> Path:
    """Build a site from reStructuredText by the Sphinx of a Python."""
    for name, title in PAGES.items():
        (folder / f"{name}.rst").write_text(_restructured(title))
    with (folder / "index.rst").open("a") as index:
        index.write("\n.. toctree::\n\n   keys\n")
    (folder / "conf.py").write_text(
        f"project = 'Harbor'\nhtml_theme = '{theme}'\nhtml_js_files = [('/widget/launcher.js', {{'type': 'module'}})]\n"
    )
    _run("sphinx", "-q", "-b", "html", ".", "site", folder=folder, python=python)
    return folder / "site"


def _template(name: str, *styles: Path) -> Callable[[Path], Path]:
    """Return what fills the page `themes/NAME.html`."""

    def build(folder: Path) -> Path:
        template = (THEMES_FOLDER / f"{name}.html").read_text()
        for page, title in PAGES.items():
            (folder / f"{page}.html").write_text(template.replace("{title}", title).replace("{article}", _html(title)))
        for style in (*styles, THEMES_FOLDER / f"{name}.css"):
            shutil.copy(style, folder)
        return folder

    return build


def _press(selector: str) -> str:
    return f"document.querySelector('{selector}').click()"


@dataclass(frozen=True)
class Theme:
    """A site, and what the tests must know of its theme.

    Attributes:
        build: makes the site in an empty folder and returns where its pages are.
        dark: a script that takes the site from light to dark, by the theme's own control where it has one.
        background, text, link: selectors of elements of the page that show these colors.
        accent: an element in the color of what matters most, and the property in which it has that color.
        top: its "back to top", where it has one that floats.
        search: what opens its search by a click, and the field in it.
        keys: its shortcuts.
        instant: whether it follows links without loading a page.
    """

    build: Callable[[Path], Path]
    dark: str
    background: str
    text: str
    link: str
    accent: tuple[str, str]
    top: str = ""
    search: tuple[str, str] = ("", "")
    keys: tuple[str, ...] = ()
    instant: bool = False


def _like_material(module: str, theme: str, search: tuple[str, str], *keys: str) -> Theme:
    return Theme(
        build_mkdocs(module, theme),
        dark=_press("#__palette_1"),
        background="body",
        text=".md-content p",
        link=".md-content p a",
        # Of the three only Zensical's modern variant has no surface in this color.
        accent=("body", "--md-primary-fg-color"),
        top=".md-top",
        search=search,
        keys=("/", "n", "p", ".", ",", *keys),
        instant=True,
    )


def _like_bootstrap(module: str, search: tuple[str, str]) -> Theme:
    return Theme(
        build_mkdocs(module, STOCK),
        dark="document.documentElement.dataset.bsTheme = 'dark'",
        background="body",
        text="[role=main] p",
        link="[role=main] p a",
        accent=(".navbar", "background-color"),
        search=search,
        keys=("/", "?", "s", "n", "p"),
    )


ZENSICAL_SEARCH = (".md-search__button", "[role=combobox]")

THEMES = {
    "material": _like_material("mkdocs", MATERIAL, (".md-search__input", ".md-search__input"), "f", "s"),
    "zensical": _like_material("zensical", MATERIAL, ZENSICAL_SEARCH, "Control+k"),
    "zensical-classic": _like_material("zensical", CLASSIC, ZENSICAL_SEARCH, "Control+k"),
    "mkdocs": _like_bootstrap("mkdocs", ("[data-bs-target='#mkdocs_search_modal']", "#mkdocs-search-query")),
    "properdocs": _like_bootstrap(
        "properdocs", ("[data-bs-target='#properdocs_search_modal']", "#properdocs-search-query")
    ),
    "furo": Theme(
        build_sphinx,
        dark=_press(".theme-toggle"),
        background="body",
        text="article p",
        link="article p a",
        accent=(".toctree-l1 > a", "color"),
        top=".back-to-top",
        search=(".sidebar-search", ".sidebar-search"),
        keys=("/",),
    ),
    "docusaurus": Theme(
        _template("docusaurus", INFIMA),
        dark="document.documentElement.dataset.theme = 'dark'",
        background=".navbar",
        text="article p",
        link="article p a",
        accent=(".button--primary", "background-color"),
        top=".theme-back-to-top-button",
    ),
    "vitepress": Theme(
        _template("vitepress"),
        dark="document.documentElement.classList.add('dark')",
        background="body",
        text=".vp-doc p",
        link=".vp-doc p a",
        accent=(".VPButton.brand", "background-color"),
    ),
}
