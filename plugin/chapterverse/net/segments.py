"""Segments of a path in an address: which texts stay one, however a server reads the address.

A server in front decodes `%2F` once and asks the next one, which may decode again, drop what stands behind ";", fold
wide letters, or take "\\" for "/". Encoding protects from none of that, so a text that could become more than one
segment is none.
"""

from __future__ import annotations

import unicodedata
from urllib.parse import unquote

#: What RFC 3986 allows in a segment besides letters and digits, without ";", which separates parameters; and the space.
_PUNCTUATION = frozenset("-._~!$&'()*+,=:@ ")


def is_segment(text: str) -> bool:
    """Return whether a text stays one segment of a path: no separator, control character, "%" or ".." in any form."""
    return all(map(_is_plain, (text, unicodedata.normalize("NFKC", text))))


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder, which ends in a slash, or leads into it."""
    inside = path[len(folder) :].split("/")
    return folder == "/" or (
        f"{path}/".startswith(folder) and all(not part or is_segment(unquote(part)) for part in inside)
    )


def has_dots(text: str) -> bool:
    """Return whether a text is a dot, or holds two in a row, as what leads out of a folder does."""
    # Marks of a letter, which a server may leave out.
    bare = "".join(char for char in text if unicodedata.category(char)[0] != "M")
    return ".." in bare or not bare.strip(". ")


def _is_plain(text: str) -> bool:
    return not has_dots(text) and all(c in _PUNCTUATION or unicodedata.category(c)[0] in "LMN" for c in text)
