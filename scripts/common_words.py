"""Writes the filter of common words, `plugin/chapterverse/text/common_words.bin`, from the ranks of cl100k."""

from __future__ import annotations

from pathlib import Path

from chapterverse.text import common_words
from chapterverse.text.tokens import load_ranks

if __name__ == "__main__":
    made = common_words.made_of(common_words.frequent_words(load_ranks()))
    Path(common_words.__file__).with_name("common_words.bin").write_bytes(made)
