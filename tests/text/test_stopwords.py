from __future__ import annotations

from common_words import FILE, bloom_filter, frequent_words

from chapterverse.text.stopwords import is_common
from chapterverse.text.tokens import load_ranks


def test_the_filter_of_common_words_is_made_of_the_tokenizers() -> None:
    words = list(frequent_words(load_ranks()))
    assert FILE.read_bytes() == bloom_filter(words)
    assert all(map(is_common, words))
    strangers = [f"{word}{word[::-1]}" for word in words]
    assert sum(map(is_common, strangers)) < len(strangers) * 0.015
