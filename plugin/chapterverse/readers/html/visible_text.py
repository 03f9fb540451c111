"""Text as a reader sees it: character references resolved, invisible characters removed.

Zero-width characters, bidi controls, variation selectors, private characters and Unicode tags can carry words that a
person never sees and a model does (poisoned documentation), so none of them reaches a block, not even one of code,
where they make it look like other code (CVE-2021-42574). What words and emoji are written with stays where it belongs:
a joiner between two letters of a script that has them or between two emoji, a selector behind an emoji.
"""

from __future__ import annotations

import html
import re

from chapterverse.text.json_text import SURROGATE

_INVISIBLE_RANGES = (
    (0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F),  # controls, all but tab and newline
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C),  # soft hyphen, grapheme joiner, Arabic letter mark
    (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x3164, 0x3164), (0xFFA0, 0xFFA0),  # fillers
    (0x200B, 0x200B), (0x200E, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F),  # zero-width, bidi controls, operators
    (0xE000, 0xF8FF), (0xFE00, 0xFE0D), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB),  # private, selectors, BOM, annotations
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A),  # shorthand and musical format controls
    (0xE0000, 0xE0FFF), (0xF0000, 0x10FFFF),  # tags and more variation selectors, private planes
)  # fmt: skip
# Letters that are joined or kept apart by a character of no width: Arabic and its neighbors, Indic, Khmer, Mongolian.
_JOINING = "\u0600-\u0dff\u0f00-\u109f\u1780-\u18af\ua840-\ua8ff\ufb50-\ufdff\ufe70-\ufefc"
_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_INVISIBLE = re.compile(
    rf"""[{"".join(f"{chr(a)}-{chr(b)}" for a, b in _INVISIBLE_RANGES)}]+
    | [\u200c\u200d](?!(?<=[{_JOINING}].)[{_JOINING}]|(?:(?<=[{_EMOJI}]\u200d)|(?<=[{_EMOJI}]\ufe0f\u200d))[{_EMOJI}])
    | [\ufe0e\ufe0f](?<![{_EMOJI}].)(?!(?<=[#*0-9].)\u20e3)""",
    re.VERBOSE,
)
# A suspect may be one of those, or stands beyond the first plane, which a pattern is slow to look at. Few texts hold
# any, and this check is five times as fast as the pattern.
_SUSPECT = re.compile(
    f"[{''.join(f'{chr(a)}-{chr(b)}' for a, b in _INVISIBLE_RANGES if b < 0x10000)}"
    "\u200c\u200d\ufe0e\ufe0f\ud800-\udfff\U00010000-\U0010ffff]"
)

# Python refuses to convert integers of more than 4,300 digits; no character has a number of 16.
_HUGE_REFERENCE = re.compile("&#[0-9]{16,}+;?")


def strip_invisible(text: str) -> str:
    """Return `text` without the characters that show nothing; a lone surrogate becomes U+FFFD."""
    if (text.isascii() and text.isprintable()) or not _SUSPECT.search(text):
        return text
    return SURROGATE.sub("\ufffd", _INVISIBLE.sub("", text))


def unescape(text: str) -> str:
    """Return `text` with its HTML character references resolved."""
    if "&" not in text:
        return text
    return html.unescape(_HUGE_REFERENCE.sub("\ufffd", text))


def collapse(text: str) -> str:
    """Return `text` with every run of whitespace as one space and none at its ends."""
    return " ".join(text.split())
