"""Sites of MkDocs whose plugins change pages: the plugin and the command `index` read one site in one way."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from chapterverse.model import Chunk
from cli.shell import clean, command
from conftest import ROOT
from projects import STORE, Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

HERE = Path(__file__).parent
ADDRESS = "https://docs.example.com/sub/"
OURS: dict[str, Any] = {"chapterverse": {"endpoint": "/"}}
NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "metadata": {}, "source": ["# Kilns\n", "\n", "A kiln is hot.\n"]},
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": ["1260\n"]}],
            "source": ["print(1260)"],
        },
    ],
    "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    "nbformat": 4,
    "nbformat_minor": 4,
}
PAGES = {
    "index.md": "# Home\n\nWelcome to the kilns. See [glazes](glazes.md).\n",
    "glazes.md": "---\ntags: [clay]\ndate: 2026-03-04\n---\n# Glazes & <co>\n\nText.\n",
}


@dataclass(frozen=True)
class Site(Project):
    """A project of MkDocs that is built by a process of its own."""

    def configure(self, *plugins: Any, **config: Any) -> None:
        whole = {"site_name": "Kilns", "site_url": ADDRESS, "plugins": ["search", *plugins], **config}
        # Some configurations name Python's objects.
        (self.root / "mkdocs.yml").write_text(yaml.safe_dump(whole), encoding="utf-8")

    def build(self, packages: Path | None = None) -> str:
        return self._run(packages, "-m", "mkdocs", "build").stderr

    def index(self) -> dict[str, Any]:
        """Index the built site by the command, into the store of the plugin, and return the report."""
        store = ("--store", f"edge:{STORE}", "--site", "kilns", "--json")
        report: dict[str, Any] = json.loads(self._run(None, *command("index", "site", *store)[1:]).stdout)
        return report

    def _run(self, packages: Path | None, *arguments: str) -> subprocess.CompletedProcess[str]:
        environment = clean({"NO_MKDOCS_2_WARNING": "1", "DISABLE_MKDOCS_2_WARNING": "true"})
        if packages:
            environment |= {"PYTHONPATH": str(packages), "JUPYTER_PATH": str(packages.parents[2] / "share/jupyter")}
        done = subprocess.run(
            [sys.executable, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr
        return done


def assert_one_road(site: Site) -> None:
    """The command changes nothing in the index that the plugin made, and alone it makes the same one."""
    chunks = site.chunks()
    report = site.index()
    assert (report["pages"]["new"], report["pages"]["changed"], report["pages"]["removed"]) == (0, 0, 0)
    assert (report["chunks"]["total"], report["chunks"]["moved"], report["embedded"]) == (len(chunks), 0, 0)
    shutil.rmtree(site.root / STORE)
    site.index()
    assert set(map(_facts, site.chunks())) == set(map(_facts, chunks))


def _facts(chunk: Chunk) -> tuple[object, ...]:
    return chunk.chunk_id, chunk.text, chunk.url, chunk.language, chunk.content_type, chunk.tags, chunk.chapter_title


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.write({f"docs/{path}": text for path, text in PAGES.items()})
    return site


@pytest.fixture(scope="session")
def packages() -> Path:
    """The plugins that only these tests need, for Python's path."""
    command: list[str | Path] = [sys.executable, ROOT / "scripts" / "tools.py", "mkdocs"]
    programs = Path(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    (found,) = programs.parent.glob("lib/python*/site-packages")
    return found


def test_the_traps_of_material(tmp_path: Path) -> None:
    shutil.copytree(HERE / "material", tmp_path, dirs_exist_ok=True)
    site, config = Site(tmp_path), tmp_path / "mkdocs.yml"
    text = config.read_text("utf-8").replace("site_name: Full", "site_name: Kilns")
    config.write_text(text.replace("plugins:", "plugins:\n  - chapterverse: {endpoint: /}"), encoding="utf-8")
    site.build()
    assert len(site.pages()) == 3
    assert_one_road(site)


def test_our_own_documentation(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("site", ".cache", "__pycache__", ".venv", "node_modules", ".git", "tests", "dist")
    for folder in ("site_example", "plugin", "lambda", "infra"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignored)
    for file in ("CHANGELOG.md", "LICENSE", "pyproject.toml"):
        shutil.copy(ROOT / file, tmp_path)
    site = Site(tmp_path / "site_example")
    config = site.root / "mkdocs.yml"
    config.write_text(config.read_text("utf-8").replace("site_name: Chapter & Verse", "site_name: Kilns"), "utf-8")
    site.build()
    assert len(site.pages()) > 40
    assert_one_road(site)


@pytest.mark.parametrize("ours_first", [True, False])
def test_encryptcontent(site: Site, *, ours_first: bool) -> None:
    encryption = {"encryptcontent": {"hljs": False, "arithmatex": False, "mermaid2": False}}
    site.write({"docs/secret.md": "---\npassword: hunter2\n---\n# Secret\n\nThe code is mongoose.\n"})
    site.configure(*([OURS, encryption] if ours_first else [encryption, OURS]))
    site.build()
    assert site.pages() == set(PAGES)
    assert_one_road(site)


@pytest.mark.parametrize("ours_first", [True, False])
@pytest.mark.parametrize("structure", ["folder", "suffix"])
def test_static_i18n(tmp_path: Path, structure: str, *, ours_first: bool) -> None:
    site = Site(tmp_path)
    home, accueil = "# Home\n\nWelcome.\n\n![A](a.png)\n", "# Accueil\n\nBienvenue.\n"
    kiln = "# Kilns\n\nHot.\n\n![A](a.png)\n"
    if structure == "folder":
        files = {"en/index.md": home, "en/kiln.md": kiln, "fr/index.md": accueil, "en/a.png": ""}
    else:
        files = {"index.md": home, "kiln.md": kiln, "index.fr.md": accueil, "a.png": ""}
    site.write({f"docs/{path}": text for path, text in files.items()})
    languages = [
        {"locale": "en", "name": "English", "default": True, "build": True},
        {"locale": "fr", "name": "Français", "build": True},
        {"locale": "de", "name": "Deutsch", "build": True},
    ]
    i18n = {"i18n": {"docs_structure": structure, "fallback_to_default": True, "languages": languages}}
    site.configure(*([OURS, i18n] if ours_first else [i18n, OURS]), theme={"name": "material"})
    said = site.build()
    assert said.count("Indexed") == 1
    addresses = {(c.language, c.url.removeprefix(ADDRESS)) for c in site.chunks()}
    assert addresses == {("en", "#home"), ("en", "kiln/#kilns"), ("fr", "fr/#accueil")}
    assert not (site.root / "site/fr/kiln/index.md").exists()
    assert_one_road(site)


@pytest.mark.parametrize("ours_first", [True, False])
def test_jupyter_and_a_minifier_that_removes_comments(site: Site, packages: Path, *, ours_first: bool) -> None:
    site.write({"docs/kiln.ipynb": json.dumps(NOTEBOOK)})
    minify = {"minify": {"minify_html": True, "htmlmin_opts": {"remove_comments": True}}}
    others = ["mkdocs-jupyter", minify]
    site.configure(*([OURS, *others] if ours_first else [*others, OURS]), theme={"name": "material"})
    site.build(packages=packages)
    assert site.pages() == {*PAGES, "kiln.ipynb"}
    texts = "\n".join(chunk.text for chunk in site.chunks())
    assert "A kiln is hot." in texts
    assert "print(1260)" in texts
    assert_one_road(site)


@pytest.mark.parametrize("theme", ["mkdocs", "readthedocs", "material"])
def test_marks_change_no_pixel(site: Site, chromium: Browser, theme: str) -> None:
    """A page looks the same with and without the plugin, whatever its content begins and ends with."""
    starts = {
        "heading": "## Two\n\nText.",
        "paragraph": "Text.\n\n> Quote.",
        "list": "- a\n- b",
        "code": "```\na\n```\n",
    }
    ends = {"note": "!!! note\n    Text.", "table": "|a|b|\n|-|-|\n|1|2|", "rule": "---"}
    pages = {**starts, **ends, "both": f"{starts['code']}\n\n{ends['note']}"}
    site.write({f"docs/{name}.md": f"---\ntitle: {name}\n---\n{text}\n" for name, text in pages.items()})
    options = {"theme": {"name": theme, "font": False}, "markdown_extensions": ["admonition", "tables"]}
    drawn: list[dict[str, str]] = []
    for plugins in ([], [OURS]):
        site.configure(*plugins, **options)
        site.build()
        marked = "<!--chapterverse:start" in (site.root / "site/code/index.html").read_text("utf-8")
        assert marked is bool(plugins)
        page = chromium.new_page(viewport={"width": 1280, "height": 900})
        # Of the chat nothing but the marks counts here.
        page.route("**/*", _only_files)
        hashes = {}
        for name in pages:
            page.goto((site.root / f"site/{name}/index.html").as_uri(), wait_until="networkidle")
            hashes[name] = _draw(page)
        page.close()
        drawn.append(hashes)
    assert drawn[0] == drawn[1]
    assert len(set(drawn[0].values())) == len(pages)


def _draw(page: Page) -> str:
    """Return the hash of a picture of a page's content. Icons in the header are not drawn alike each time."""
    page.evaluate("document.fonts.ready")
    content = page.locator("main, [role=main]").first
    return hashlib.sha256(content.screenshot(animations="disabled")).hexdigest()


def _only_files(route: Route) -> None:
    if route.request.url.startswith("file:") and not route.request.url.endswith("launcher.js"):
        route.continue_()
    else:
        route.abort()
