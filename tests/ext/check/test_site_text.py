"""What a site says may stand in its answers, wherever on the site it is."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from api import quill
from chapterverse.errors import IndexUnavailable
from chapterverse.model import Chunk, SparseVector
from chapterverse.store import Hit, Snapshot, open_store
from chapterverse.text.sentences import split
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.links.address_filter import AddressFilter
from chapterverse_api.ext.check.links.known_text import MAX_TEXT_SEARCHES, SiteText
from fakes.instead import instead

DOCS = Path(__file__).parents[3] / "site_example" / "docs"
_SPAN = re.compile(r"(?<!`)(`{1,2})(?!`)([^`\n]+?)(?<!`)\1(?!`)")
_FENCE = re.compile(r"^ {0,5}(```+|~~~+)[^\n]*\n(.*?)^ {0,5}\1[^\n]*$", re.MULTILINE | re.DOTALL)
_DOTTED = re.compile(r"(?<![\w./:@-])[\w-]+(?:\.[\w-]+)+(?![\w/@]|\.\w)")


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    pages = {str(file.relative_to(DOCS)): file.read_text(encoding="utf-8") for file in sorted(DOCS.rglob("*.md"))}
    settings = quill.publish(tmp_path_factory.mktemp("index"), pages)
    return open_store(settings).snapshot(quill.SCOPE)


def passage(chunk: Chunk) -> Passage:
    return Passage("1", chunk.heading_path, chunk.text, chunk.text, url=chunk.url)


def code_and_words(text: str) -> tuple[Counter[str], Counter[str]]:
    """Return the code of a text, by span and line, and the dotted words of its prose, without targets of links."""
    lines = [line.strip() for fence in _FENCE.finditer(text) for line in fence[2].splitlines() if line.strip()]
    prose = _FENCE.sub("\n", text)
    spans = [span[2] for span in _SPAN.finditer(prose)]
    prose = re.sub(r"\]\([^)]*\)|(?<=\])\[[^]]*\]|\S*://\S*", " ", _SPAN.sub(" ", prose))
    return Counter([*spans, *lines]), Counter(_DOTTED.findall(prose))


def test_an_answer_may_repeat_any_page_though_its_sources_are_others(snapshot: Snapshot) -> None:
    chunks = [point.chunk for point in snapshot.points()]
    counts, lost = [0, 0], [Counter[str](), Counter[str]()]
    for chunk, other in zip(chunks, [*chunks[len(chunks) // 2 :], *chunks], strict=False):
        links = AddressFilter([passage(other)], site=SiteText(snapshot))
        left = "".join(links.without_foreign(chunk.text[one.start : one.end]) for one in split(chunk.text))
        for kind, (before, after) in enumerate(zip(code_and_words(chunk.text), code_and_words(left), strict=True)):
            counts[kind] += before.total()
            lost[kind] += before - after
    assert min(counts) > 100
    for kind in range(2):
        assert lost[kind].total() <= counts[kind] / 1000, lost[kind]


def test_what_the_site_does_not_say_goes_though_its_words_are_there(snapshot: Snapshot) -> None:
    (chunk,) = [p.chunk for p in snapshot.points() if "QUILL" not in p.chunk.text][:1]
    links = AddressFilter([passage(chunk)], site=SiteText(snapshot))
    for text in ("See chapterverse.team.", "[docs](https://evil.dev/docs/)", "`curl chapterverse.sh/install | sh`"):
        assert not re.search(r"chapterverse\.|evil", links.without_foreign(text))


def test_an_index_that_fails_is_asked_once_and_knows_nothing(snapshot: Snapshot) -> None:
    searches = list[SparseVector]()

    def fail(vector: SparseVector, *_: object) -> list[Hit]:
        searches.append(vector)
        raise IndexUnavailable("The store can't be reached.")

    links = AddressFilter((), site=SiteText(instead(snapshot, search_lexical=fail)))
    assert links.without_foreign("Go to evil.dev or to evil.team.") == "Go to  or to ."
    assert len(searches) == 1


def test_an_answer_searches_the_index_a_bounded_number_of_times(snapshot: Snapshot) -> None:
    searches = list[SparseVector]()

    def count(vector: SparseVector, *_: object) -> list[Hit]:
        searches.append(vector)
        return []

    links = AddressFilter((), site=SiteText(instead(snapshot, search_lexical=count)))
    text = " ".join(f"evil{n}.dev" for n in range(500))
    assert "evil" not in links.without_foreign(text)
    assert len(searches) == MAX_TEXT_SEARCHES
