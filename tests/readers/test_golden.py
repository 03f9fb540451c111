"""The captured sites: every section as reviewed, every anchor valid, no visible character lost."""

from __future__ import annotations

import json

import pytest

from chapterverse.model import BlockKind
from chapterverse.readers.sections.html_page import read_document
from readers.golden import SITES, as_json, golden_file, pages
from readers.seen import Seen, lost


@pytest.mark.parametrize("page", pages())
def test_sections_are_as_reviewed(page: str) -> None:
    html = (SITES / page).read_text(encoding="utf-8")
    assert as_json(html) == json.loads(golden_file(page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", pages())
def test_every_heading_that_has_an_id_is_a_section_and_every_anchor_exists_in_the_page(page: str) -> None:
    html = (SITES / page).read_text(encoding="utf-8")
    document = read_document(html)
    seen = Seen(document.fragment)
    assert sorted(s.anchor for s in document.sections if s.anchor) == sorted(seen.anchors)
    assert set(seen.anchors) <= set(seen.ids)


def test_a_heading_without_any_id_has_no_anchor() -> None:
    document = read_document((SITES / "docusaurus/docs/intro.html").read_text(encoding="utf-8"))
    assert [s.heading for s in document.sections if s.heading and s.anchor is None] == ["Home of Demo v1"]


@pytest.mark.parametrize("page", pages())
def test_no_visible_character_is_lost(page: str) -> None:
    document = read_document((SITES / page).read_text(encoding="utf-8"))
    assert not lost(document.fragment, document.sections)


FACTS = {
    "docusaurus/docs/intro": ("https://example.com/d/docs/intro", "en", "Home of Demo v1"),
    "docusaurus-traps/docs/voyage/leg-one/index": ("https://example.com/dd/docs/voyage/leg-one", "en", "First leg"),
    "material/index": ("https://example.com/mm/", "de", "Harbor handbook"),
    "mkdocs/index": ("https://example.com/m/", "en", "Harbor handbook"),
    "mkdocs/guide/second/index": ("https://example.com/m/guide/second/", "en", "Second page"),
    "sphinx-alabaster/api": ("https://example.com/sx/api.html", "en", "API"),
    "sphinx-book/index": ("https://example.com/sx/index.html", "en", "Harbor handbook"),
    "sphinx-furo/index": ("https://example.com/sx/index.html", "en", "Harbor handbook"),
    "vitepress-fr/index": ("https://example.com/vp/", "fr-FR", "Harbor handbook"),
    "zensical/index": ("https://example.com/z/", "en", "Harbor handbook"),
}


@pytest.mark.parametrize("page", FACTS)
def test_the_address_the_language_and_the_title(page: str) -> None:
    document = read_document((SITES / f"{page}.html").read_text(encoding="utf-8"))
    assert (document.canonical, document.language, document.title) == FACTS[page]


@pytest.mark.parametrize(
    "site", ["material", "zensical", "vitepress-fr", "sphinx-book", "sphinx-furo", "docusaurus-traps/docs"]
)
def test_tabs_and_admonitions_are_woven_in(site: str) -> None:
    document = read_document((SITES / site / "index.html").read_text(encoding="utf-8"))
    blocks = [block for section in document.sections for block in section.blocks]
    labels = [block.head for block in blocks if block.kind is BlockKind.TAB]
    assert labels[:2] == ["**Linux**", "**Windows**"]
    warning = next(block for block in blocks if block.kind is BlockKind.ADMONITION and "deck" in block.text)
    assert warning.head in ("**Warning: Careful now**", "**Careful now**", "**Warning**")
    assert warning.text == f"{warning.head}\n\nThe deck is wet."
