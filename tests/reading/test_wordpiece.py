"""The tokens are those of the library that the base weights came with."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from chapterverse.reading.encoding import WordPiece

ROOT = Path(__file__).parents[2]
VOCABULARY = (ROOT / "reading/chapterverse_reading/vocabulary.txt").read_text("utf-8").split("\n")


@pytest.fixture(scope="module")
def oracle() -> Tokenizer:
    numbers = {token: number for number, token in enumerate(VOCABULARY)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


@pytest.mark.parametrize(
    "text",
    [
        "How do I set a timeout?",
        "`httpx.Client(timeout=10.0)` raises ReadTimeout — see --no-cache_dir",
        "Größe, naïve, élève, ÅNGSTRÖM",
        "设置超时 and タイムアウト",
        "x" * 120,
        "tab\tand\nline",
        "",
    ],
)
def test_tokens_are_those_of_the_library(text: str, oracle: Tokenizer) -> None:
    assert WordPiece(VOCABULARY).encode(text) == oracle.encode(text, add_special_tokens=False).ids


def test_tokens_of_our_documentation_are_those_of_the_library(oracle: Tokenizer) -> None:
    words = WordPiece(VOCABULARY)
    pages = sorted((ROOT / "site_example/docs").rglob("*.md"))
    assert len(pages) > 20
    for page in pages:
        # The library takes a sign like → for a letter, so that its word is unknown.
        text = "".join(c for c in page.read_text("utf-8") if c.isascii())
        assert words.encode(text) == oracle.encode(text, add_special_tokens=False).ids
