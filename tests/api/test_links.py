from __future__ import annotations

from collections.abc import Generator as Steps
from collections.abc import Iterable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse_api.generation import Draft, Passage, Span
from chapterverse_api.links import Links
from growth import assert_linear

URL = "https://quill.example.com/docs/"
TEXT = (
    "Get it from <https://go.example.org/dl?v=1> or [here](https://mirror.example.org/a_(b)). Call `www.old.example`."
)
LINKS = Links([Passage("1", ("T",), TEXT, TEXT, frozenset(), 1.0, 1.0, URL, None)])


def cleaned(text: str) -> str:
    (span,) = LINKS.draft((Span(text),))
    return span.text


def streamed(pieces: Iterable[str]) -> str:
    def steps() -> Steps[str, None, Draft]:
        yield from pieces
        return ()

    return "".join(LINKS.stream(steps()))


@pytest.mark.parametrize(
    "text",
    [
        URL,
        f"See {URL}.",
        f"[docs]({URL}), then go on",
        "https://go.example.org/dl?v=1",
        "**https://mirror.example.org/a_(b)**",
        "www.old.example!",
        "// a comment",
        "x = a // b.c",
        "a://",
        "C:\\x and 12:30 and numpy.linalg",
    ],
)
def test_what_was_sent_may_stand_and_so_may_what_is_no_address(text: str) -> None:
    assert cleaned(text) == text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Go to https://evil.example.net/x.", "Go to ."),
        ("[docs](https://evil.example.net/x)", "[docs]()"),
        (f"{URL}../evil", ""),
        (f"{URL}](https://evil.example.net/", ""),
        ("https://quill.example.com.evil.example.net/docs/", ""),
        ("HTTPS://EVIL.example.net", ""),
        ("ftp://evil", ""),
        ("//evil.example.net/x", ""),
        ("<//evil.example.net>", "<>"),
        ("www.evil.example.net", ""),
        ("'https://evil.example.net'", "''"),
        ("javascript://evil.example.net/%0aalert(1)", ")"),
        ("https://go.example.org/dl?v=2", ""),
    ],
)
def test_any_other_address_is_left_out(text: str, left: str) -> None:
    assert cleaned(text) == left


def test_an_address_over_several_spans_is_left_out_of_each() -> None:
    draft = (Span("a https:"), Span("//evil.", ("1",)), Span("example.net/x b", ("1",)))
    assert LINKS.draft(draft) == (Span("a "), Span("", ("1",)), Span(" b", ("1",)))


@given(
    st.lists(
        st.sampled_from(["https:", "//", "evil.example.net", URL, " ", "\n", "www.", ".", "a", "(", ")", "é", '"']),
        max_size=30,
    ),
    st.randoms(use_true_random=False),
)
def test_a_stream_says_what_the_whole_says_however_it_is_cut(words: list[str], chance: Random) -> None:
    text = "".join(words)
    cuts = sorted(chance.randrange(len(text) + 1) for _ in range(5))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert streamed(pieces) == cleaned(text) == "".join(s.text for s in LINKS.draft(tuple(map(Span, pieces))))


def test_a_stream_keeps_pace_with_its_words() -> None:
    def steps() -> Steps[str, None, Draft]:
        for word in ("One ", "two", " three"):
            heard.append(word)
            yield word
        return ()

    heard: list[str] = []
    seen = [(piece, len(heard)) for piece in LINKS.stream(steps())]
    assert seen == [("One ", 1), ("two ", 3), ("three", 3)]


@pytest.mark.parametrize("unit", ["a", "a.", "//", "http://", "www.", "(", "https://a."])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    assert_linear(lambda size: cleaned(unit * (size // len(unit))), 10_000, 100_000)
