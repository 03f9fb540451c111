"""Reads words as renderers, browsers and shells do, where that differs from how they are written."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from urllib.parse import unquote

from chapterverse.text.utf8 import INVISIBLE
from chapterverse_api.grounding.links.host_names import strip_marks

# Invisible characters may split a word that readers see as one, and so may selectors of glyphs, but for those of emoji.
_SPLITTING = re.compile(f"[{INVISIBLE}]|(?<![\u2000-\u3fff\U0001f000-\U0001faff])[\ufe00-\ufe0f](?!\u20e3)")
# Letters of some scripts are written with the joiners too; in an address all of them only hide it.
_JOINERS = re.compile(f"[{INVISIBLE}\u200c\u200d\ufe00-\ufe0f]")
_EDGES = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
# What renderers remove: the escapes, and the marks of emphasis, code, links and HTML.
_ESCAPED = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_TAG = re.compile(r"<[^<>\d][^<>]*>")
_MARKS = re.compile(r"\]\([^()]*\)|==|\+\+|[*`~\[\](){}^$|]")
# What shells remove.
_QUOTING = re.compile(r"\\\n|[\\'\"^`{}$*]")


def strip_invisible(text: str) -> str:
    """Return a text without characters that show nothing."""
    return text if text.isascii() else _SPLITTING.sub("", text)


def read_code(text: str, *, in_shell: bool) -> Iterator[str]:
    """Yield code as a browser or a shell may come to read it, where that differs."""
    plain = _decode(text)
    yield from {plain, _QUOTING.sub("", plain) if in_shell else plain, plain.replace("\\\n", "")} - {text}


def read_prose(word: str) -> Iterator[str]:
    """Yield a word as a renderer or a browser may come to read it."""
    plain = re.sub(r"\\(?=[\n\"'])|(?<=\\)\n", "", _decode(word))
    rendered = _ESCAPED.sub("", plain)
    readings = (plain, rendered, plain.replace("\\", ""), plain.replace("\\", "/"), rendered.replace("\\", "/"))
    for reading in dict.fromkeys(readings):
        for visible in dict.fromkeys((reading, _MARKS.sub("", reading), _MARKS.sub("", _TAG.sub("", reading)))):
            yield _EDGES.sub("", visible)


def _decode(text: str) -> str:
    """Return a text without percent signs, entities, marks on letters and other forms of them."""
    for _ in range(3):
        decoded = unquote(html.unescape(text))
        if decoded == text:
            break
        text = decoded
    if text.isascii():
        return text
    return strip_marks(_JOINERS.sub("", text)).replace("。", ".")
