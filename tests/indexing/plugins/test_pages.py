"""The pages of a build: what a page's theme writes around its content."""

from __future__ import annotations

import json

from chapterverse.indexing.plugins.page_marks import mark_content
from chapterverse.indexing.plugins.pages import PageCollection, page_source

CONTENT = "<h1 id='oven'>Oven</h1><p>It is hot.</p>"


def collected(head: str) -> PageCollection:
    """Return a collection with one page, built by a theme with this head."""
    pages = PageCollection.of((), ())
    content = mark_content(
        CONTENT, pages.add(page_source("oven.md", "https://docs.example/oven/", "Oven", CONTENT, language="en"))
    )
    assert pages.confirm("oven.md", content, f"<html><head>{head}</head><body>{content}</body></html>")
    return pages


def test_json_ld_in_the_head_of_the_theme_is_the_pages_and_a_change_of_it_is_one_of_the_page() -> None:
    stated = {"@type": "Product", "name": "Oven"}
    plain, product, renamed = (
        collected(head).sources["oven.md"]
        for head in (
            "<!-- ld+json -->",
            f'<script type="application/ld+json">{json.dumps(stated)}</script>',
            f'<script type="application/ld+json">{json.dumps(stated | {"name": "Stove"})}</script>',
        )
    )
    assert (plain.read().structured_data, product.read().structured_data) == ((), (stated,))
    assert product.read().sections == plain.read().sections
    assert plain.context == page_source("oven.md", "https://docs.example/oven/", "Oven", CONTENT, language="en").context
    assert len({plain.context, product.context, renamed.context}) == 3
    assert len({each.content_hash for each in (plain, product, renamed)}) == 1
