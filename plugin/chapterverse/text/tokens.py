"""Exact cl100k token counts, offline.

The ranks are OpenAI's `cl100k_base.tiktoken` (MIT, as shipped with tiktoken), kept here length-prefixed and xz-packed
(389 kB instead of 1.68 MB); a test rebuilds that file and compares its SHA-256 with the one tiktoken itself demands.
tiktoken would download it at first use. Nothing is loaded before the first text that needs counting.
"""

from __future__ import annotations

import functools
import lzma
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiktoken import Encoding

#: The pattern that cuts a text into words before merging, from tiktoken's definition of cl100k_base.
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


#: Bytes of the longest rank: a text of n bytes has at least n / 128 tokens.
_LONGEST = 128

#: No word holds an ASCII letter and behind it an ASCII character that is none, so what stands left and right of this
#: seam counts the same apart and together.
_SEAM = re.compile(r"[A-Za-z](?=[\x00-@\[-`{-\x7f])")

#: How many bytes to count, in percent of those by which a text exceeds a budget, so that a token for each other byte
#: leaves it within the budget: enough for 3.6 bytes a token.
_HEAD = 140


def ranks() -> dict[bytes, int]:
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

    return Encoding("cl100k_base", pat_str=_PATTERN, mergeable_ranks=ranks(), special_tokens={})


# The chunker asks about the same heading path and the same line several times in a row.
@functools.lru_cache(maxsize=256)
def count(text: str) -> int:
    """Return the number of cl100k tokens of `text`; special-token look-alikes count as the plain text they are."""
    return len(_encoding().encode_ordinary(text))


def fits(text: str, budget: int) -> bool:
    """Return whether `text` has at most `budget` tokens, counting only as much of it as leaves a doubt."""
    # A token covers at least one byte and a character at most four bytes. Long texts are never counted: a run without
    # spaces costs more than its length.
    if len(text) * 4 <= budget or len(text) > budget * _LONGEST:
        return len(text) * 4 <= budget
    size = len(text.encode(errors="surrogatepass"))
    if size <= budget:
        return True
    seam = _SEAM.search(text, (size - budget) * _HEAD * len(text) // (size * 100))
    if not seam:
        return count(text) <= budget
    # With a token a byte the rest is sure to fit, once so much of the head is counted.
    head, rest = text[: seam.end()], text[seam.end() :]
    left = budget - count(head)
    return len(rest.encode(errors="surrogatepass")) <= left or count(rest) <= left
