"""Lengths of texts: in cl100k tokens, counted exactly and offline, and in bytes, by which tokens are estimated.

Counting tokens takes longer than a search. Each constant with BYTES holds bytes per token, for another purpose.

The ranks are OpenAI's `cl100k_base.tiktoken` (MIT, as shipped with tiktoken), stored length-prefixed and xz-packed (389
kB instead of 1.68 MB). A test rebuilds the original and compares its SHA-256 with the one that tiktoken demands.
tiktoken itself would download the file at first use. The ranks are loaded when a text is first counted.
"""

from __future__ import annotations

import functools
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

#: For chunks and passages: 80 % of 5,168 documentation texts have 3.4 to 5.1 bytes per cl100k token. On 145 public
#: questions (ray-v1) exact counts and 4 find the gold section among five for 64, 3.6 for 68.
PROSE_TOKEN_BYTES = 3.6
#: For the parts of a prompt, as Chinese has a token and more for each character; for English these are characters.
PROMPT_TOKEN_BYTES = 3.5
#: When money is counted. A text in English has four, one in Chinese nearly three; fewer count more.
BILLED_TOKEN_BYTES = 2.5

#: Bytes of the longest token: a text of n bytes has at least n / 128 tokens.
_MAX_TOKEN_BYTES = 128


def load_ranks() -> dict[bytes, int]:
    """Return the 100,256 mergeable byte strings with their ranks."""
    # Lazy: only the packed ranks need it.
    import lzma
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
    """Whether `text` has at most `most` tokens. Counts only where its length doesn't tell."""
    # A token has at least one byte and a character at most four. Long texts are never counted, because a run without
    # spaces takes more than linear time.
    if len(text) * 4 <= most or len(text) > most * _MAX_TOKEN_BYTES:
        return len(text) * 4 <= most
    return len(text.encode(errors="surrogatepass")) <= most or count(text) <= most


def utf8_length(text: str | None) -> int:
    """Return the bytes of a text in UTF-8; a lone surrogate counts as one."""
    return len((text or "").encode(errors="replace"))


def cut_to_bytes(text: str, most: int) -> str:
    """Return the beginning of a text, of at most so many bytes in UTF-8 and without a part of a character.

    A lone surrogate becomes a question mark.
    """
    return text.encode(errors="replace")[:most].decode(errors="ignore")


def cut_to_words(text: str, most: int) -> str:
    """Return the beginning of a text, of at most so many characters and up to a space if there is one."""
    return text if len(text) <= most else text[:most].rpartition(" ")[0] or text[:most]


def ellipsize(text: str, most: int) -> str:
    """Return a text of at most so many characters: of a longer one the beginning, with an ellipsis as the last."""
    return text if len(text) <= most else f"{text[: most - 1]}…"
