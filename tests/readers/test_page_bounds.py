"""What one page may hold; a page beyond it is left out, named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from chapterverse.errors import PageTooLarge
from chapterverse.ext.sources.markdown.page import MAX_BRACKETS, read_markdown
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.page_chunker import PageChunker
from chapterverse.readers.built_site import read_site
from chapterverse.readers.html.parser import MAX_DEPTH, MAX_ELEMENTS, MAX_PAGE_CHARS
from chapterverse.readers.sections.html_page import read_document, read_fragment, read_with_links
from fakes.docs import SCOPE

DEEP = "<div>" * MAX_DEPTH

READERS: list[Callable[[str], object]] = [
    lambda text: read_fragment(text, "T"),
    lambda text: read_with_links(text, "T", "https://e.com/"),
    lambda text: read_document(f"<main>{text}"),
    lambda text: read_markdown(text, "a.md"),
]


@pytest.mark.parametrize("read", READERS)
def test_a_page_of_too_many_elements_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(PageTooLarge, match=r"^holds more than 500,000 elements, too many for a page\.$"):
        read("<p>" * (MAX_ELEMENTS + 1))


@pytest.mark.parametrize("read", READERS)
def test_a_page_of_too_many_characters_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises(PageTooLarge, match=r"^holds more than (?:20|5),000,000 characters, too many for a page\.$"):
        read("x" * (MAX_PAGE_CHARS + 1))


@pytest.mark.parametrize("pump", ["![", "[["])
def test_a_page_of_too_many_brackets_is_refused_and_brackets_in_code_are_none(pump: str) -> None:
    many = pump * (MAX_BRACKETS // pump.count("[") + 1)
    with pytest.raises(PageTooLarge, match=r"^holds more than 100,000 opening brackets, too many for a page\.$"):
        read_markdown(f"A paragraph.\n\n{many}", "a.md")
    assert many in str(read_markdown(f"```\n{many}\n```", "a.md"))


@pytest.mark.parametrize("hidden", ["<div hidden>", "<div style='display:none'>", "<div data-search-exclude>", "<nav>"])
def test_hidden_text_is_never_read_however_deep_it_is(hidden: str) -> None:
    assert "secret" not in str(read_fragment(f"{DEEP[:-5]}{hidden}secret", "T"))
    assert "secret" not in str(read_fragment(f"{DEEP}<p hidden>secret", "T"))
    with pytest.raises(PageTooLarge, match=r"^hides an element below 100 others, too deep for a page\.$"):
        read_fragment(f"{DEEP}<div>{hidden}secret", "T")


def test_text_that_is_shown_is_read_however_deep_it_is() -> None:
    assert "shown" in str(read_fragment(f"{DEEP}{DEEP}shown", "T"))


def test_the_index_names_the_page(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<html lang=en><body><main>" + "<p>" * (MAX_ELEMENTS + 1), "utf-8")
    (source,) = read_site(tmp_path, "https://e.com/").sources
    outcome = PageChunker(SCOPE, "none/0", ChunkSizes()).try_to_chunk(source)
    assert outcome == "a.html holds more than 500,000 elements, too many for a page."
