"""The example site: it builds, its traps are read as readers see them, and its questions are answered."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache, cached_property
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path
from urllib.parse import unquote

import pytest

from chapterverse.model import Chunk
from chapterverse.readers.sections.html_page import read_document
from chapterverse.settings import Settings
from chapterverse.store import only_scope, open_store
from chapterverse.text import tokens
from chapterverse_api.commands import ServiceSession

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "site_example"
DOCS = EXAMPLE / "docs"
BASE = "https://docs.chapterverse.example/"
#: The questions that the chat offers, and the section that answers each.
STARTERS = {
    "How do I add the chat to a site that I already have?": "getting-started/#add",
    "What happens when the answer is not in the docs?": "how-it-works/retrieval/#refusal",
    "How can I check that a citation is real?": "how-it-works/citations/#how-can-i-check-that-a-citation-is-real",
}

#: The one heading that its author keeps out by `data-search-exclude`.
EXCLUDED_ANCHOR = ("getting-started/choosing-pages/", "an-example")
#: Words that stand in what must not be indexed, and nowhere else.
EXCLUDED_WORDS = (
    "tangerine dromedary", "cobalt porcupine", "vermilion cassowary", "lacquered hippocampus", "invisible wombat",
    "scripted platypus",
)  # fmt: skip


@dataclass(frozen=True)
class Built:
    """A site that was built twice with the plugin: its folder, its index, and what each build said."""

    site: Path
    settings: Settings
    said: tuple[str, str]

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        store = open_store(self.settings)
        return tuple(p.chunk for p in store.snapshot(only_scope(store)).points())

    @cached_property
    def pages(self) -> dict[str, str]:
        """The HTML of every page that is meant to be read, by its path below the site's address."""
        files = {f.relative_to(self.site).as_posix(): f.read_text("utf-8") for f in self.site.rglob("*.html")}
        return {name.removesuffix("index.html"): html for name, html in files.items() if name != "404.html"}

    @cached_property
    def service(self) -> ServiceSession:
        service = ServiceSession.open(self.settings)
        assert isinstance(service, ServiceSession)
        return service

    def of(self, path: str, anchor: str | None = None) -> list[Chunk]:
        """Return the chunks of a page, or of one section of it, in reading order."""
        url = BASE + path
        found = [
            c for c in self.chunks if c.url.partition("#")[0] == url and (anchor is None or c.url == f"{url}#{anchor}")
        ]
        return sorted(found, key=lambda c: c.chunk_index)

    def text(self, path: str, anchor: str | None = None) -> str:
        return "\n\n".join(c.text for c in self.of(path, anchor))


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("site_example")
    store = f"edge:{folder / 'index'}"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CHAPTERVERSE_", "MIKE_"))}
    environment = {**kept, "CHAPTERVERSE_STORE": store, "NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder / "site")]
    said = []
    for _ in range(2):
        done = subprocess.run(
            [*command, "-f", str(EXAMPLE / "mkdocs.yml")], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stderr)
    return Built(folder / "site", Settings(store=store), (said[0], said[1]))


class Oracle(HTMLParser):
    """Reads a built page with the standard library: all ids, the article's headings, and the loaded resources."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.headings: list[tuple[str, str]] = []
        self.loads: list[str] = []
        self._heading: str | None = None
        self._words: list[str] = []
        self._in_article = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {k: v or "" for k, v in attrs}
        self.ids.update(attributes[k] for k in ("id",) if k in attributes)
        self._in_article = self._in_article or tag == "article"
        if tag in ("script", "img", "iframe", "source") and attributes.get("src"):
            self.loads.append(attributes["src"])
        if tag == "link" and attributes.get("rel") not in ("canonical", "prev", "next"):
            self.loads.append(attributes.get("href", ""))
        if self._in_article and re.fullmatch("h[1-6]", tag):
            self._heading, self._words = attributes.get("id", ""), []

    def handle_endtag(self, tag: str) -> None:
        if tag == "article":
            self._in_article = False
        if self._heading is not None and re.fullmatch("h[1-6]", tag):
            self.headings.append((self._heading, " ".join("".join(self._words).replace("¶", "").split())))
            self._heading = None

    def handle_data(self, data: str) -> None:
        self._words.append(data)


@cache
def oracle(html: str) -> Oracle:
    return Oracle(html)


def without_excluded(path: str, anchors: list[str]) -> list[str]:
    """Return the anchors but for the one kept out: Material takes the author's mark off the built page."""
    return [anchor for anchor in anchors if (path, anchor) != EXCLUDED_ANCHOR]


def is_indexed(path: str) -> bool:
    return not path.startswith(("getting-started/tour/", "project/house-keeping/", "project/style-card/"))


# The build


def test_the_second_build_embeds_nothing(built: Built) -> None:
    first, second = (re.search(r"Indexed (\d+) pages .*", said) for said in built.said)
    assert first, built.said[0]
    assert second, built.said[1]
    assert int(first[1]) >= 16
    assert "(0 new, 0 changed, 0 removed)" in second[0]
    assert " 0 embedded" in second[0]


def test_pages_load_nothing_from_a_third_party(built: Built) -> None:
    foreign = {url for html in built.pages.values() for url in oracle(html).loads if re.match(r"(?:https?:)?//", url)}
    assert foreign == set()


# The readers, on every page


def test_every_rendered_heading_becomes_a_section_with_its_anchor(built: Built) -> None:
    for path, html in built.pages.items():
        rendered = [anchor for anchor, _ in oracle(html).headings if anchor]
        read = [s.anchor for s in read_document(html).sections if s.anchor]
        assert without_excluded(path, read) == without_excluded(path, rendered), path


def test_every_anchor_of_the_index_is_an_id_of_its_page(built: Built) -> None:
    assert len(built.chunks) > 200
    for chunk in built.chunks:
        path, _, anchor = chunk.url.removeprefix(BASE).partition("#")
        assert not anchor or unquote(anchor) in oracle(built.pages[path]).ids, chunk.url


def test_every_page_and_every_heading_is_in_the_index(built: Built) -> None:
    for path, html in built.pages.items():
        chunks = built.of(path)
        assert bool(chunks) == is_indexed(path), path
        cited = {c.url.partition("#")[2] for c in chunks}
        named = {heading for c in chunks for heading in c.heading_path}
        for anchor, words in oracle(html).headings if chunks else ():
            # A heading with nothing but headings below it has no text of its own, and stands in their paths.
            found = anchor in cited or words in named
            assert found == ((path, anchor) != EXCLUDED_ANCHOR), (path, anchor)


def test_no_chunk_is_over_the_cap(built: Built) -> None:
    assert max(tokens.count(c.embed_text) for c in built.chunks) <= 512


# What must not be indexed


@pytest.mark.parametrize("words", EXCLUDED_WORDS)
def test_what_is_excluded_is_nowhere_in_the_index(built: Built, words: str) -> None:
    assert any(words in page.read_text("utf-8") for page in DOCS.rglob("*.md"))
    assert not [c.url for c in built.chunks if words in c.embed_text]


def test_a_draft_is_not_built(built: Built) -> None:
    assert not (built.site / "drafts").exists()


@pytest.mark.parametrize(
    "sign", ["¶", "↩", "Copy to clipboard", "Back to top", "Switch to dark mode", "Skip to content"]
)
def test_what_serves_the_page_is_left_out(built: Built, sign: str) -> None:
    assert not [c.url for c in built.chunks if sign in c.embed_text]


def test_source_dumps_are_left_out(built: Built) -> None:
    assert "Source code in <code>" in built.pages["project/library/"]
    assert not [c.url for c in built.chunks if "Source code in `" in c.text]


# What must be


MARKUP = "reference/markup/"

SURVIVORS = {
    "a tab's label before its panel": (MARKUP, "tabs", "**Linux**\n\nInstall with the package manager"),
    "a tab's code": (MARKUP, "tabs", "```bash\nbrew install chapterverse-demo-package\n```"),
    "text behind the tabs": (MARKUP, "tabs", "This paragraph belongs to"),
    "a heading in a tab": (MARKUP, "a-heading-inside-a-tab", "It applies to the text below it"),
    "an admonition's kind and title": (MARKUP, "boxes", "**Danger: Do not feed after midnight**"),
    "a closed box inside a box": (MARKUP, "boxes", "**Tip: A box in a box, closed**\n\nClosed boxes are read"),
    "a heading in a nested box": (MARKUP, "a-heading-inside-a-nested-box", "It becomes a section of its own."),
    "a bar in a cell": (MARKUP, "tables", "| either \\| or | a bar outside of code | `int \\| None` |"),
    "a bar in code in a cell": (MARKUP, "tables", "| `a\\|b` | a or b | `cat\\|dog` |"),
    "code inside a step": (MARKUP, "lists", '1. Steps keep their numbers.\n\n   ```console\n   $ echo "code inside'),
    "a list inside a list": (MARKUP, "lists", "   1. with a first\n      - and a bullet in it\n   2. and a second"),
    "code inside a nested step": (MARKUP, "lists", "      ```ini\n      [inside]"),
    "tasks": (MARKUP, "lists", "- [x] a task that is done\n- [ ] a task that is open"),
    "definitions": (MARKUP, "lists", "**Term**\n\nA definition follows its term.\n\nA second definition"),
    "two terms of a definition": (MARKUP, "lists", "**Another term**\n**And its synonym**\n\nBoth stand"),
    "language and title of code": (MARKUP, "code", '```python title="numbers.py"\ndef numbered(value: int) -> str:\n'),
    "a code annotation": (MARKUP, "code", "1. This annotation belongs to a line"),
    "code in a line": (MARKUP, "code", "`sorted({3, 1, 2})`"),
    "a fence inside a fence": (MARKUP, "code", "````markdown\n```text\na fence inside a fence\n```\n````"),
    "a footnote": (MARKUP, "footnotes", "\n\nThe quokka footnote"),
    "the same footnote elsewhere": (MARKUP, "another-section-with-footnotes", "\n\nThe quokka footnote"),
    "a footnote's second paragraph": (MARKUP, "another-section-with-footnotes", "paragraphs.\n\nThis is its second"),
    "keys, marks and abbreviations": (MARKUP, "inline", "Marked text, Ctrl+Alt+Del, H2O and an abbreviation"),
    "an image's alternative text": (MARKUP, "inline", "A lighthouse on a stack of index cards"),
    "Markdown inside of HTML": (MARKUP, "html-with-markdown-in-it", "**Right card**: and so is the second."),
    "a heading inside of HTML": (MARKUP, "a-heading-inside-a-card", "Text below the heading in the card."),
    "a raw HTML heading": (MARKUP, "raw-html", "was written as HTML"),
    "a setext heading": (MARKUP, "setext-headings", "A line of dashes"),
    "the second of two headings": (MARKUP, "example_1", "The second."),
    "an own id": (MARKUP, "marks", "Its title in a citation is plain text."),
    "a variable of macros": ("running/troubleshooting/", "the-site-has-no-address", "Citations are links, and a link"),
    "a heading from a macro's loop": ("running/troubleshooting/", "there-is-no-index-yet", "Nothing was published"),
    "a snippet": ("", "not-built-yet", "a package on PyPI"),
    "the same snippet elsewhere": ("project/architecture/", "not-built-yet", "a package on PyPI"),
    "a snippet from outside the docs": ("project/changelog/", None, "Keep a Changelog"),
    "a generated signature": ("project/service/", "chapterverse_api.make_candidate", "```python\nmake_candidate("),
    "a generated description": (
        "project/service/",
        "chapterverse_api.create_app",
        "Return the application",
    ),
    "a page without a heading": ("project/license/", None, "Permission is hereby granted"),
    "a page in no menu": ("notes/reading-the-summary-line/", None, "This page stands in no menu."),
}  # fmt: skip


@pytest.mark.parametrize("trap", SURVIVORS)
def test_markup_survives(built: Built, trap: str) -> None:
    path, anchor, expected = SURVIVORS[trap]
    assert expected in built.text(path, anchor)


@pytest.mark.parametrize(
    ("anchor", "heading"),
    [
        ("uberschriften-mit-akzenten-deja-vu", "Überschriften mit Akzenten: déjà vu"),
        ("_1", "日本語の見出し"),
        ("marks", "code in a heading with marks"),
        ("raw-html", "Raw HTML headings"),
    ],
)
def test_headings_are_named_as_they_are_read(built: Built, anchor: str, heading: str) -> None:
    (chunk,) = built.of(MARKUP, anchor)
    assert (chunk.section_heading, chunk.heading_path[0], chunk.heading_path[-1]) == (
        heading,
        "Markup that survives",
        heading,
    )


def test_a_page_without_a_heading_is_cited_whole(built: Built) -> None:
    assert {(c.url, c.chapter_title, c.section_heading) for c in built.of("project/license/")} == {
        (f"{BASE}project/license/", "License", None)
    }


def test_generated_pages_say_what_they_are(built: Built) -> None:
    assert {c.content_type for c in built.of("project/library/")} == {"api"}
    assert {c.content_type for c in built.of(MARKUP)} == {"documentation"}


def test_long_code_is_cut_between_lines_and_fenced_again(built: Built) -> None:
    pieces = [c.text for c in built.of(MARKUP, "a-long-block-of-code") if c.text.startswith("```")]
    bodies = [re.fullmatch(r'```python title="ask.py"\n(.*)\n```', piece, re.DOTALL) for piece in pieces]
    assert len(pieces) >= 2
    source = (DOCS / "reference" / "markup.md").read_text("utf-8")
    assert "\n".join(body[1] if body else "" for body in bodies) in source


def test_a_long_table_is_cut_between_rows_and_headed_again(built: Built) -> None:
    pieces = [c.text.split("\n") for c in built.of(MARKUP, "a-long-table") if c.text.startswith("|")]
    assert len(pieces) >= 2
    assert {tuple(piece[:2]) for piece in pieces} == {tuple(pieces[0][:2])}
    source = (DOCS / "reference" / "markup.md").read_text("utf-8")
    assert "\n".join(chain.from_iterable(piece[2:] for piece in pieces)) in source


@pytest.mark.parametrize("question", STARTERS)
def test_a_starter_question_is_answered_from_its_section(built: Built, question: str) -> None:
    for file in (EXAMPLE / "mkdocs.yml", ROOT / "scripts" / "demo.py"):
        assert question in file.read_text("utf-8")
    answer = built.service.answer(query=question)
    assert answer["status"] == "answered"
    assert answer["sources_cited"][0] == BASE + STARTERS[question]
