"""No regular expression takes time that grows much faster than its text: a page of a few lines must not hang a build.

Every pattern of both packages is attacked with pumps made from itself (see `pumps`), by the methods that the code
applies to it. A new pattern is found by importing every module, and in the source of functions.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

import pytest

from chapterverse.widget import bundle
from found_patterns import Found, compiled, inline
from pumps import MOST_GROWTH, Pump, Work, growth, pumps, slowest

#: Patterns whose text is ours: the scripts of the widget, which the build packs.
OUR_TEXT = {
    "chapterverse.widget.bundle._ENTRY", "chapterverse.widget.bundle._TITLES",
    "chapterverse.widget.bundle._EXPRESSION", "chapterverse.widget.bundle._REST", "chapterverse.widget.bundle._TOKEN",
}  # fmt: skip

#: A pattern that is only matched behind a text that is an address word for word, by a call on a parameter.
BEHIND_A_TEXT = "chapterverse_api.ext.check.links.known_text._END"

#: Patterns that are tried at single places of a text, and why these are so few, or so far from each other, that no
#: stretch is read again and again. The tests of these modules measure their growth.
TRIED_AT = {
    "chapterverse.text.markdown._TARGET_END": "where a link's address ends, of which there is one for each bracket",
    "chapterverse.ext.sources.markdown.mdx_tokenizer._ATTRIBUTE": "where the last attribute of the tag ended",
    "chapterverse.text.sentences._MARK_LINE": "behind a full stop and its marks",
    "chapterverse_api.ext.models.reasoning._REFUSAL_LINE_END": "behind the word that a sentence begins with",
    "chapterverse_api.ext.models.reasoning._REMARK": "behind the word that a sentence begins with",
    "chapterverse_api.ext.models.citation_marks._LINE_END": "behind a group of marks",
    "chapterverse_api.draft.quoting.quote._MARKER": "where the last mark of the line ended",
    "chapterverse_api.draft.extractive._PARAMETERS": "at the first bracket of a heading",
    "chapterverse_api.ext.check.links.hosts._AFTER": "at the first closed links of an address",
    "chapterverse_api.ext.check.links.markup._SPAN": "where a run of few backticks begins",
}

#: Parts of the patterns, each a test.
PARTS = 12


@functools.cache
def found() -> tuple[Found, ...]:
    return (*compiled(), *inline())


def works(pattern: Found) -> Iterator[Work]:
    """Yield what the code does with a pattern and a text."""
    flags = (pattern.flags & ~re.LOCALE) | re.ASCII if pattern.is_bytes else pattern.flags
    made = re.compile(pattern.pattern, flags)
    methods = {method.removesuffix(" at") for method in pattern.methods}
    if pattern.methods == ("search",) or (
        pattern.place not in TRIED_AT and any(m.endswith(" at") for m in pattern.methods)
    ):
        yield functools.partial(_search, made)
        return
    for method in sorted(methods):
        yield getattr(made, method)


def _search(pattern: re.Pattern[str], text: str) -> None:
    for _ in pattern.finditer(text):
        pass


def bombs(patterns: Iterable[Found]) -> Iterator[tuple[str, Pump, float]]:
    """Yield the first pump of each pattern that grows too fast, and its exponent."""
    for pattern in patterns:
        own = list(pumps(pattern.pattern, pattern.flags & ~re.LOCALE))
        tried = ((pump, work) for work in works(pattern) for pump in slowest(work, own))
        grown = ((pattern.place, pump, growth(work, pump)) for pump, work in tried)
        yield from filter(None, [next((bomb for bomb in grown if bomb[2] > MOST_GROWTH), None)])


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_pattern_is_a_bomb(part: int) -> None:
    assert list(bombs(p for p in found()[part::PARTS] if p.place not in {*OUR_TEXT, BEHIND_A_TEXT})) == []


@pytest.mark.slow
def test_every_pattern_is_found() -> None:
    places = {pattern.place for pattern in found()}
    assert len(found()) > 400
    assert {*OUR_TEXT, *TRIED_AT} <= places
    # A list's, and one of a function's.
    assert {"chapterverse.text.secrets_in_text", "chapterverse.ext.sources.markdown.slugs"} <= {
        pattern.module for pattern in found() if pattern.name.startswith("line ")
    }


@pytest.mark.slow
def test_patterns_are_tried_at_single_places_where_we_say_so() -> None:
    assert {p.place for p in found() if p.place in TRIED_AT and p.methods == ("search",)} == set()


def test_the_text_of_the_widget_is_short() -> None:
    assert max(map(len, bundle.files().values())) < 100_000


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\[([^\]]+)\]", "search"),
        (r"([\w$]+)['\"]?\s*:\s*\"", "search"),
        (r"\s*(?:```|~~~)", "search"),
        (r"^(?:::: \w+|\s*\.\. )auto", "search"),
        (r"//.*/badges?[/.]", "search"),
        (r"“[^”\n]*”", "search"),
        (r"\W*\w+(?:[_.:/@-]+\w+)+\W*", "fullmatch"),
        (r"\{\{-?\s*[\w.]+[^{}]*\}\}\Z", "match"),
        (r"(?:a|ab|b)*c", "match"),
        (r"-----BEGIN-----(?:\s|[A-Z][\w-]{2,20}: ?[^\n]{1,99}){0,20}([a-z]{32,})", "search"),
    ],
)
def test_a_bomb_is_found(pattern: str, method: str) -> None:
    assert [place for place, _, _ in bombs([Found("planted", "it", pattern, re.MULTILINE, False, (method,))])] == [
        "planted.it"
    ]


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"\[([^\[\]]+)\]", "search"),
        (r"(?<![\w$])([\w$]++)['\"]?\s*+:\s*+\"", "search"),
        (r"\[([^\]]{1,99})\]", "search"),
        (r"\s*(?:```|~~~)", "match"),
    ],
)
def test_a_linear_pattern_is_none(pattern: str, method: str) -> None:
    assert list(bombs([Found("planted", "it", pattern, 0, False, (method,))])) == []
