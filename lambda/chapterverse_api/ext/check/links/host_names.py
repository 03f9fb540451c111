"""Tells hosts, by name or in numbers as browsers and shells read them, from files, modules, products and versions.

Renderers, browsers and shells read some words otherwise than they are written: `read_prose` and `read_code` say how.
"""

from __future__ import annotations

import html
import re
import socket
import unicodedata
from collections.abc import Iterator
from importlib import resources
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import unquote

from chapterverse.text.markdown import INVISIBLE


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
_RESERVED = frozenset({"test", "example", "invalid", "localhost", "local", "internal"})
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

#: Addresses of the reader's own network, or of no machine: a sentence may name them.
_LOCAL = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.168.0.0/16 224.0.0.0/3"
    ).split()
)
#: IPv6 addresses of any other machine; what else reads as one is mostly a name in a program, as "abc::def".
_PUBLIC = (IPv6Network("2000::/3"), IPv6Network("64:ff9b::/96"))
# "10.0.0.0/8", "3.11/3.12": the text behind the slash is another number, and no path.
_NUMERIC_PATH = re.compile(r"/\d[\d./]*")
# A day, and numbers in thousands or thousandths.
_DATE_OR_THOUSANDS = re.compile(r"(?:19|20)\d\d[01]\d[0-3]\d|\d+000|\d{1,3}(?:\.\d{3})+")
#: Characters of the longest number of four parts that is a version, "11.8.172.15", and the greatest that begins one.
_MAX_VERSION_CHARS, _MAX_VERSION_START = 11, 39
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


def is_host(name: str) -> bool:
    """Whether a dotted name is one of a host that can be looked up."""
    top = name.rstrip(".").rpartition(".")[2]
    # "org.junit.Test"
    is_class = top.istitle() and name.count(".") > 1
    return _is_public_suffix(top) or (top.lower() in _RESERVED and not is_class)


def _is_public_suffix(label: str) -> bool:
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


def is_numeric_address(number: str, path: str, *, user: bool, argument: bool) -> bool:
    """Whether a number is the address of a machine.

    Args:
        number: one to four parts, or an IPv6 address; with its brackets if it has some.
        path: the port and path behind the number, "" if none follow.
        user: whether the name of a user precedes it.
        argument: whether a command connects to it.
    """
    address = _read_address(number)
    if address is None:
        return False
    if not (user or argument) and _NUMERIC_PATH.fullmatch(path):
        if _is_network(number + path):
            return False
        path = ""
    if ":" not in number and number.count(".") < 3:
        return int(address) >> 24 > 0 and _is_short(number, int(address), path, user=user, argument=argument)
    if user or (path and (address.version == 4 or "]" in number)):
        return True
    if argument:
        return not (address.is_loopback or address.is_unspecified)
    return _is_public(number, address)


def leads_nowhere(host: str) -> bool:
    """Whether a host is of the reader's own machine or network, or of no machine: reserved, or without a dot."""
    if address := _read_address(host):
        return _is_local(address)
    labels = host.rstrip(".").lower().split(".")
    return len(labels) == 1 or labels[-1] in _RESERVED or _RESERVED_DOMAIN.fullmatch(host.rstrip(".")) is not None


def _is_local(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv4Address):
        return any(address in network for network in _LOCAL)
    return not any(address in network for network in _PUBLIC)


def _is_public(number: str, address: IPv4Address | IPv6Address) -> bool:
    """Whether a number is the address of a machine elsewhere, and neither a version nor a name in a program."""
    if isinstance(address, IPv6Address):
        return not _is_local(address)
    if _is_local(address):
        return False
    return len(number) > _MAX_VERSION_CHARS or "x" in number.lower() or int(address) >> 24 > _MAX_VERSION_START


def _is_short(number: str, address: int, path: str, *, user: bool, argument: bool) -> bool:
    """Whether a number of fewer than four parts is an address: it is too long for a version, and leads somewhere."""
    if max(map(len, number.split("."))) < 3 or _DATE_OR_THOUSANDS.fullmatch(number):
        return argument and bool(path)
    return bool(path) or argument or (user and (number.count(".") < 2 or address >> 24 > _MAX_VERSION_START))


def _read_address(number: str) -> IPv4Address | IPv6Address | None:
    try:
        if ":" in number:
            address = ip_address(number.strip("[].,"))
            return getattr(address, "ipv4_mapped", None) or address
        # The C library reads what shells and browsers read, such as octal numbers and fewer than four parts.
        return IPv4Address(socket.inet_aton(number.rstrip(".")))
    except (OSError, ValueError):
        return None


def _is_network(text: str) -> bool:
    """Whether a text names a range of addresses, as "10.0.0.0/8" does and "10.0.0.1/8" does not."""
    try:
        return ip_network(text).num_addresses > 2
    except ValueError:
        return False


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
