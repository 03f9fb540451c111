"""The captured sites: every section as reviewed, every anchor alive, no visible character lost."""

from __future__ import annotations

import json

import pytest

from chapterverse.readers import read_document
from readers.golden import SITES, as_json, golden_file, pages
from readers.seen import Seen, characters, words_of


@pytest.mark.parametrize("page", pages())
def test_sections_are_as_reviewed(page: str) -> None:
    html = (SITES / page).read_text(encoding="utf-8")
    assert as_json(html) == json.loads(golden_file(page).read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", pages())
def test_every_heading_is_a_section_and_every_anchor_exists_in_the_page(page: str) -> None:
    html = (SITES / page).read_text(encoding="utf-8")
    document = read_document(html)
    seen = Seen(document.fragment)
    headings = [s for s in document.sections if s.heading is not None]
    terms = [s for s in headings if s.anchor and "sphinx" in page and s.anchor.startswith("demo.")]
    assert len(headings) - len(terms) == len(seen.headings)
    assert {s.anchor for s in headings if s.anchor} <= set(seen.ids)
    for (_, own), section in zip(seen.headings, [s for s in headings if s not in terms], strict=True):
        assert own is None or section.anchor == own


def test_a_heading_without_any_id_has_no_anchor() -> None:
    document = read_document((SITES / "docusaurus/docs/intro.html").read_text(encoding="utf-8"))
    assert [s.heading for s in document.sections if s.heading and s.anchor is None] == ["Home of Demo v1"]


@pytest.mark.parametrize("page", pages())
def test_no_visible_character_is_lost(page: str) -> None:
    document = read_document((SITES / page).read_text(encoding="utf-8"))
    visible = characters(Seen(document.fragment).text)
    assert not visible - characters(words_of(document.sections))
