"""Characters that show nothing: they can hide words from a reader, or split a word that a filter looks for."""

from __future__ import annotations

#: The characters, as ranges for a class of a regular expression: soft hyphen, fillers, those of no width, directions,
#: operators, byte order mark, tags. Letters of some scripts are written with the joiners U+200C and U+200D, and emoji
#: with the selectors U+FE00 to U+FE0F, so that each filter decides on these itself.
INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\U000e0000-\U000e0fff"
)
