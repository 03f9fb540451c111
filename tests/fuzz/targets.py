"""Invariants for every input, as functions of bytes: hypothesis tries few inputs, a fuzzer many."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

from chapterverse.errors import InputError
from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.ext.sources.markdown.slugs import Slugger
from chapterverse.indexing.chunking import ChunkSizes, chunk
from chapterverse.model import Chunk, Page, Scope, Section, replace_unstorable
from chapterverse.readers.sections.html_page import read_document, read_fragment
from chapterverse.readers.urls import SiteGenerator
from chapterverse.text import tokens
from fuzz.choices import Choices, html_of, markdown_of, page_of
from readers.seen import Seen, characters, ink, is_within, leaf_texts

_SCOPE = Scope("docs")
_SIZES = (ChunkSizes(), ChunkSizes(24, 48), ChunkSizes(16, 32), ChunkSizes(512, 512), ChunkSizes(32, 512))
_RULES = tuple(SiteGenerator)


def any_html(data: bytes) -> None:
    """Read any bytes as a page: its anchors exist, and its chunks contain all of its blocks."""
    text = _decoded(data)
    document = read_document(text)
    known = replace_unstorable(text.replace("\r\n", "\n").replace("\r", "\n"))
    for anchor in (replace_unstorable(section.anchor) for section in document.sections if section.anchor):
        assert anchor in known or anchor in replace_unstorable(html.unescape(known)), f"invented anchor {anchor!r}"
    _check_chunks(_page(document.sections, document.title))


def made_html(data: bytes) -> None:
    """Read a well-formed page: no visible character is missing from its chunks, no anchor is another heading's."""
    text = html_of(Choices(data))
    seen = Seen(text)
    page = _page(read_fragment(text, "Title"), "Title")
    assert {s.anchor for s in page.sections if s.anchor} <= set(seen.ids), "invented anchor"
    _check_nothing_missing(seen.text, page)


def any_markdown(data: bytes) -> None:
    """Read any bytes as Markdown: no anchor is verified, and its chunks contain all of its blocks."""
    _read_markdown(data, "a.md")


def any_mdx(data: bytes) -> None:
    """Read any bytes as MDX, with the same checks."""
    _read_markdown(data, "a.mdx")


def made_markdown(data: bytes) -> None:
    """Read well-formed Markdown: no visible character is missing from its chunks."""
    text = markdown_of(Choices(data))
    made = read_markdown(text, "a.md")
    # The words that the form itself consists of: languages of code, addresses, admonitions' keywords.
    visible = text.replace("```py\n", "```\n").replace("```text\n", "```\n").replace("(y)", "").replace("!!! note", "")
    _check_nothing_missing(visible, _page(made.sections, "Title"))


def slugs(data: bytes) -> None:
    """Make ids of headings: the same again, no two alike, no blank in them."""
    headings = _decoded(data).split("\n")
    for rule in _RULES:
        first, second = Slugger(rule), Slugger(rule)
        made = [first.slug(heading) for heading in headings]
        assert made == [second.slug(heading) for heading in headings], "another slug the second time"
        assert len(set(made)) == len(made), f"{rule}: two headings, one slug"
        assert not any(" " in slug or "\n" in slug for slug in made), f"{rule}: a blank in a slug"


def blocks(data: bytes) -> None:
    """Chunk any blocks in any sizes."""
    choices = Choices(data)
    _check_chunks(page_of(choices), choices.of(_SIZES))


def counts(data: bytes) -> None:
    """Decide whether a text fits: at every budget as its exact count says."""
    text = _decoded(data)
    exact = tokens.count(text)
    for budget in {0, 1, exact - 1, exact, exact + 1, (exact + len(data)) // 2}:
        assert tokens.fits(text, budget) == (exact <= budget), f"{exact} tokens, budget {budget}"


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target
    for target in (any_html, made_html, any_markdown, any_mdx, made_markdown, slugs, blocks, counts)
}


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="surrogateescape")


def _read_markdown(data: bytes, path: str) -> None:
    rule = _RULES[data[0] % len(_RULES)] if data else SiteGenerator.MKDOCS
    try:
        made = read_markdown(_decoded(data[1:]), path, rule)
    except InputError:
        return
    assert not any(section.anchor_verified for section in made.sections)
    _check_chunks(_page(made.sections, made.title))


def _page(sections: tuple[Section, ...], title: str) -> Page:
    return Page("a.md", "https://docs.example/a/", title, "en", sections)


def _check_chunks(page: Page, sizes: ChunkSizes = _SIZES[0]) -> list[Chunk]:
    found = chunk(page, _SCOPE, "none/0", sizes)
    _check_sound(found, sizes)
    held = "".join(ink(c.text) for c in found)
    for section in page.sections:
        for text in leaf_texts(section.blocks):
            assert is_within(ink(replace_unstorable(text)), held), f"lost {text!r}"
    return found


def _check_sound(found: Sequence[Chunk], sizes: ChunkSizes) -> None:
    for c in found:
        assert c.text.strip(), "a blank chunk"
        assert tokens.count(c.embed_text) <= sizes.cap, "a chunk over the cap"
        c.embed_text.encode()


def _check_nothing_missing(visible: str, page: Page) -> None:
    found = _check_chunks(page)
    # A heading over deeper ones alone is said by their paths; each path counts once.
    paths = {heading: None for c in found for heading in c.heading_path}
    repeated = [section.heading or "" for section in page.sections if section.heading in paths]
    missing = characters(visible) - characters("".join([*repeated, *(c.text for c in found)]))
    assert not missing, f"lost {dict(missing)}"
