from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.text import tokens
from chapterverse.text.tokens import cut_to_bytes, cut_to_words, ellipsize, utf8_length

#: What tiktoken itself demands of the file it downloads (`tiktoken_ext.openai_public.cl100k_base`).
EXPECTED_HASH = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"

SAMPLES = [
    "Hello, world! It's what they'll DON'T say.",
    "    indented code\n\n\nand more   \n  \r\n\tx = f(a)[1:2];\n",
    "snake_case camelCase HTTPServer v1.2.3 1234567 --dry-run https://a.example/b?c=d#e",
    "<|endoftext|> <|fim_prefix|>",
    "日本語のテスト、한국어 русский العربية हिन्दी",
    "👩\u200d👩\u200d👧 naïve cafe\u0301 \u00a0\u2003 ½ Ⅷ \x85\u2028",
    "| a | b |\n| --- | --- |\n```py\nprint('x')\n```\n\n\n",
]

RANKS = tokens.load_ranks()

# Words, code, white space of all kinds and what breaks encoders.
TEXTS = st.one_of(
    st.text(max_size=300),
    st.text(st.sampled_from("ab9 \n\t\r-_.#`|é日😀\x00\ud800"), max_size=400),
    st.lists(st.sampled_from(["the ", "chunk", "\n\n", "    ", "```py\n", "don't", "123456"]), max_size=80).map(
        "".join
    ),
)


#: The cutting of cl100k over kinds of characters instead of characters: letters, numbers, blanks, other space, returns
#: (line ends) and punctuation.
WORD = re.compile("[BSP]?L+|N{1,3}|B?P+R*|[BSR]+$|[BSR]*R|[BSR]+(?![^BSR])|[BSR]")
CONTRACTION = re.compile("'(?:[sdmt]|ll|ve|re)", re.IGNORECASE)


def kind(character: str) -> str:
    if character in "\r\n":
        return "R"
    if character.isspace() and character not in "\x1c\x1d\x1e\x1f":
        return "B" if character == " " else "S"
    category = unicodedata.category(character)[0]
    return category if category in "LN" else "P"


def words(text: str) -> Iterator[str]:
    kinds = "".join(map(kind, text))
    at = 0
    while at < len(text):
        found = CONTRACTION.match(text, at) or WORD.match(kinds, at)
        assert found
        yield text[at : found.end()]
        at = found.end()


def merged(piece: bytes, ranks: dict[bytes, int]) -> int:
    """Return how many tokens one word has: the textbook's byte pair encoding, best rank first."""
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 1:
        pairs = [ranks.get(a + b, sys.maxsize) for a, b in pairwise(parts)]
        best = min(pairs)
        if best == sys.maxsize:
            break
        at = pairs.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return len(parts)


def test_the_ranks_are_the_file_that_tiktoken_would_download() -> None:
    lines = (b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in tokens.load_ranks().items())
    assert hashlib.sha256(b"".join(lines)).hexdigest() == EXPECTED_HASH


def test_tiktoken_still_expects_that_file_and_that_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    import tiktoken_ext.openai_public as public

    def load(_url: str, expected_hash: str) -> dict[bytes, int]:
        assert expected_hash == EXPECTED_HASH
        return {}

    monkeypatch.setattr(public, "load_tiktoken_bpe", load)
    assert public.cl100k_base()["pat_str"] == tokens._PATTERN


def test_counts_are_those_of_a_plain_implementation() -> None:
    for text in (*SAMPLES, Path(tokens.__file__).read_text(encoding="utf-8")):
        assert tokens.count(text) == sum(merged(word.encode(), RANKS) for word in words(text))


@settings(deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_counts_of_any_text_are_those_of_a_plain_implementation(text: str) -> None:
    assert tokens.count(text) == sum(merged(word.encode(), RANKS) for word in words(text))


def test_the_longest_rank_is_the_bound_that_fits_relies_on() -> None:
    assert max(map(len, tokens.load_ranks())) == tokens._MAX_TOKEN_BYTES


@settings(deadline=None)
@given(TEXTS, st.integers(0, 600))
def test_fits_is_exact(text: str, budget: int) -> None:
    assert tokens.fits(text, budget) == (tokens.count(text) <= budget)


@settings(deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=12).map(" and ".join), st.floats(0, 1))
def test_fits_is_exact_at_the_border_of_long_texts(text: str, share: float) -> None:
    exact = tokens.count(text)
    # A text of n bytes has at most n tokens, so every budget between is one that bytes alone can't decide.
    for budget in (exact - 1, exact, exact + round(share * (len(text.encode(errors="surrogatepass")) - exact))):
        assert tokens.fits(text, budget) == (exact <= budget)


@settings(deadline=None)
@given(st.text(st.sampled_from(" -a=\n"), min_size=1, max_size=2000), st.integers(1, 8))
def test_fits_is_exact_where_tokens_are_longest(text: str, budget: int) -> None:
    assert tokens.fits(text, budget) == (tokens.count(text) <= budget)


@pytest.mark.parametrize("filling", ["a", " ", "-", "\n", "字", "😀", "ab9", "\t \n"])
def test_a_hostile_run_is_dismissed_without_counting_it(filling: str) -> None:
    started = time.process_time()
    assert not tokens.fits(filling * 20_000_000, 512)
    assert time.process_time() - started < 5


def test_nothing_is_loaded_before_the_first_count() -> None:
    program = """
import sys
from chapterverse.text import tokens
assert tokens.fits("short", 64) and not tokens.fits("x" * 100_000, 64)
assert "tiktoken" not in sys.modules
assert tokens.count("short") == 1
assert "tiktoken" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(("text", "length"), [(None, 0), ("", 0), ("thé", 4), ("\ud800", 1)])
def test_a_length_is_in_bytes(text: str | None, length: int) -> None:
    assert utf8_length(text) == length


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("tea", 3, "tea"), ("tea", 2, "te"), ("thé", 3, "th"), ("thé", 4, "thé"), ("茶", 2, ""), ("a\ud800b", 2, "a?")],
)
def test_a_cut_leaves_no_part_of_a_character(text: str, most: int, expected: str) -> None:
    assert cut_to_bytes(text, most) == expected
    assert utf8_length(expected) <= most


@pytest.mark.parametrize(
    ("text", "most", "expected"),
    [("a cup of tea", 12, "a cup of tea"), ("a cup of tea", 8, "a cup"), ("teapot", 3, "tea"), (" teapot", 3, " te")],
)
def test_a_text_is_cut_at_a_space_where_there_is_one(text: str, most: int, expected: str) -> None:
    assert cut_to_words(text, most) == expected


@pytest.mark.parametrize(("text", "expected"), [("teas", "teas"), ("teapot", "tea…")])
def test_an_ellipsis_counts_among_the_characters(text: str, expected: str) -> None:
    assert ellipsize(text, 4) == expected
