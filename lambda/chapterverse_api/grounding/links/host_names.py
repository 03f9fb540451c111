"""Tells the name of a host from those of files, modules and products."""

from __future__ import annotations

import re
import unicodedata
from importlib import resources


def strip_marks(text: str) -> str:
    """Return a text without marks on letters, each character in its usual form."""
    letters = unicodedata.normalize("NFKD", text)
    plain = "".join(c for c in letters if unicodedata.category(c) not in ("Mn", "Me"))
    return unicodedata.normalize("NFC", plain)


_LABELS = resources.files(__package__).joinpath("top_level_domains.txt").read_text("utf-8").split()
#: The last labels of all public suffixes (`scripts/top_level_domains.py`), with and without the marks on their letters.
#: A host elsewhere can't be looked up.
TOP_LEVEL = frozenset((*_LABELS, *(strip_marks(label) for label in _LABELS if not label.isascii())))

#: What labels of hosts are of, as ranges for a class of a regular expression: letters, their marks, and emoji.
LETTERS = (
    "\\w\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u0610-\u061a\u064b-\u0670\u06d6-\u06ed\u0900-\u0963\u0966-\u0dff"
    "\u0e31-\u0e4e\u0eb1-\u0ecd\u1036-\u103e\u17b6-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20f0"
    "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
)
# Words of scripts without spaces, or that words take endings in, may follow a label: "evil.com에서".
_ATTACHED = re.compile(r"[a-z]+(?=[^\x00-\x7f])", re.IGNORECASE)
_ENDLESS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\uac00-\ud7a3]")
_ENDLESS_TOPS = tuple(top for top in TOP_LEVEL if _ENDLESS.match(top))

#: Names that no one can register: RFC 2606, RFC 6761, RFC 6762, and the one that ICANN keeps for private networks.
RESERVED = frozenset({"test", "example", "invalid", "localhost", "local", "internal"})
_RESERVED_DOMAIN = re.compile(r"(?:.*\.)?example\.(?:com|net|org)", re.IGNORECASE)

#: Top-level domains that end the names of source files: before a number they make a line, `main.py:12`.
FILES = frozenset("cc md ml mm pl py rs sh".split())

# Names in programs and of products that sentences hold without marks. It is closed, so nobody can choose one of them.
_PROGRAM = re.compile(r"(?:ASP|ADO|VB|ML)\.NET|System\.IO|os\.name|com\.example\.\w+")

#: Schemes that lead somewhere without a double slash; browsers read the first six with any number of slashes.
SPECIAL_SCHEMES = "https?|wss?|ftps?"
SCHEMES = (
    "javascript|vbscript|livescript|mailto|tel|sms|callto|facetime|skype|magnet|blob|view-source|intent"
    "|data(?=:(?:[\\w.+-]{1,64}/|[;,]))|file(?=:/)"
)


def is_host(name: str) -> bool:
    """Whether a dotted name is one of a host that can be looked up."""
    top = name.rstrip(".").rpartition(".")[2]
    # "org.junit.Test"
    is_class = top.istitle() and name.count(".") > 1
    return is_public_suffix(top) or (top.lower() in RESERVED and not is_class)


def is_public_suffix(label: str) -> bool:
    """Whether a last label is one of public suffixes, or begins with one that a word is attached to."""
    label = label.lower()
    attached = _ATTACHED.match(label)
    return (
        (attached.group() if attached else label) in TOP_LEVEL
        or label in TOP_LEVEL
        or label.startswith(("xn--", *_ENDLESS_TOPS))
    )


def is_program_name(name: str) -> bool:
    """Whether a dotted name is a well-known one of a product or in programs."""
    return _PROGRAM.fullmatch(name) is not None


def is_reserved(name: str) -> bool:
    """Whether a host is reserved, or has no dot: such a name leads to no machine of another network."""
    labels = name.rstrip(".").lower().split(".")
    return len(labels) == 1 or labels[-1] in RESERVED or _RESERVED_DOMAIN.fullmatch(name.rstrip(".")) is not None
