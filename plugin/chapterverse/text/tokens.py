"""Counts cl100k tokens exactly and offline.

The ranks are OpenAI's `cl100k_base.tiktoken` (MIT, as shipped with tiktoken), stored length-prefixed and xz-packed (389
kB instead of 1.68 MB). A test rebuilds the original and compares its SHA-256 with the one that tiktoken demands.
tiktoken itself would download the file at first use. The ranks are loaded when a text is first counted.
"""

from __future__ import annotations

import functools
import lzma
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

#: The pattern that splits a text into words before merging, from tiktoken's definition of cl100k_base.
_PATTERN = "|".join(  # noqa: FLY002  (one alternative a line)
    (
        r"'(?i:[sdmt]|ll|ve|re)",
        r"[^\r\n\p{L}\p{N}]?+\p{L}++",
        r"\p{N}{1,3}+",
        r" ?[^\s\p{L}\p{N}]++[\r\n]*+",
        r"\s++$",
        r"\s*[\r\n]",
        r"\s+(?!\S)",
        r"\s",
    )
)

#: Bytes of the longest token: a text of n bytes has at least n / 128 tokens.
_MAX_TOKEN_BYTES = 128

#: No word contains an ASCII letter followed by another ASCII character, so both sides of this seam count the same
#: separately and together.
_SEAM = re.compile(r"[A-Za-z](?=[\x00-@\[-`{-\x7f])")

#: Bytes to count, in percent of a text's bytes over the most. If counting saves every other byte, the rest fits: enough
#: for 3.6 bytes a token.
_HEAD_PERCENT = 140


def load_ranks() -> dict[bytes, int]:
    """Return the 100,256 mergeable byte strings with their ranks."""
    from importlib import resources

    packed = lzma.decompress(resources.files("chapterverse").joinpath("text/cl100k_base.xz").read_bytes())
    table: dict[bytes, int] = {}
    at = 0
    while at < len(packed):
        end = at + 1 + packed[at]
        table[packed[at + 1 : end]] = len(table)
        at = end
    return table


@functools.cache
def _encoding() -> Encoding:
    from tiktoken import Encoding

    return Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=load_ranks(), special_tokens={})


# The chunker counts the same heading path and line several times in a row.
@functools.lru_cache(maxsize=256)
def count(text: str) -> int:
    """Return the number of cl100k tokens of `text`. Look-alikes of special tokens count as plain text."""
    return len(_encoding().encode_ordinary(text))


def fits(text: str, most: int) -> bool:
    """Whether `text` has at most `most` tokens. Counts only as much of it as needed."""
    # A token has at least one byte and a character at most four. Long texts are never counted, because a run without
    # spaces takes more than linear time.
    if len(text) * 4 <= most or len(text) > most * _MAX_TOKEN_BYTES:
        return len(text) * 4 <= most
    size = len(text.encode(errors="surrogatepass"))
    if size <= most:
        return True
    seam = _SEAM.search(text, (size - most) * _HEAD_PERCENT * len(text) // (size * 100))
    if not seam:
        return count(text) <= most
    # Even at one token per byte the rest may fit now.
    head, rest = text[: seam.end()], text[seam.end() :]
    remaining_tokens = most - count(head)
    return len(rest.encode(errors="surrogatepass")) <= remaining_tokens or count(rest) <= remaining_tokens
