"""Text as a reader sees it: character references resolved, invisible characters gone.

Zero-width characters, bidi controls, variation selectors and Unicode tags can carry words that a person never sees and
a model does (poisoned documentation), so none of them reaches a block. The price: joined emoji fall apart.
"""

from __future__ import annotations

import html
import re

_INVISIBLE_RANGES = (
    (0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F),  # controls, all but tab and newline
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C),  # soft hyphen, grapheme joiner, Arabic letter mark
    (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFFA0, 0xFFA0),  # fillers
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),  # zero-width, bidi controls, invisible operators
    (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB),  # variation selectors, byte order mark, annotations
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),  # shorthand and musical format controls
    (0xE0000, 0xE0FFF),  # tags and more variation selectors
)  # fmt: skip
_INVISIBLE = re.compile("[" + "".join(f"{chr(a)}-{chr(b)}" for a, b in _INVISIBLE_RANGES) + "]+")
_SURROGATE = re.compile("[\ud800-\udfff]")

# Python refuses to convert integers of more than 4,300 digits; no character has a number of 16.
_HUGE_REFERENCE = re.compile("&#[0-9]{16,}+;?")


def strip_invisible(text: str) -> str:
    """Return `text` without the characters that show nothing; a lone surrogate becomes U+FFFD."""
    if text.isascii() and text.isprintable():
        return text
    return _SURROGATE.sub("\ufffd", _INVISIBLE.sub("", text))


def unescape(text: str) -> str:
    """Return `text` with its HTML character references resolved."""
    if "&" not in text:
        return text
    return html.unescape(_HUGE_REFERENCE.sub("\ufffd", text))


def collapse(text: str) -> str:
    """Return `text` with every run of whitespace as one space and none at its ends."""
    return " ".join(text.split())
