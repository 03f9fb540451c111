"""Decodes pages: by UTF-8, or by the encoding that an HTML page or its server states."""

from __future__ import annotations

import codecs
import contextlib
import re

from chapterverse.errors import UnreadablePage

_DECLARED = re.compile(rb"""<meta\b[^>]{0,500}?\bcharset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
#: Bytes within which the HTML standard wants the declaration.
_PROLOG_BYTES = 1024

#: Encodings of the web (WHATWG) by Python's names; Python has others, which a browser would not take from a page.
_WEB_ENCODINGS = frozenset(
    "big5 cp866 cp874 cp932 cp949 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 euc_jp euc_kr gb18030"
    " gb2312 gbk iso2022_jp iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13"
    " iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman shift_jis".split()
)
#: Browsers read these as their larger relatives.
_RELATIVES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gbk", "shift_jis": "cp932", "euc_kr": "cp949"}
#: A text has fewer than one NUL in so many bytes.
_NUL_RATIO = 20


def declared_charset(content: bytes) -> str:
    """Return Python's name of the encoding that a page declares; "" if it declares none that browsers know."""
    match = _DECLARED.search(content[:_PROLOG_BYTES])
    return web_charset(match.group(1).decode()) if match else ""


def web_charset(label: str) -> str:
    """Return Python's name of an encoding by its label; "" for UTF-8 and for one that browsers don't know."""
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    name = _RELATIVES.get(name, name)
    return name if name in _WEB_ENCODINGS else ""


def decode_page(path: str, content: bytes) -> str:
    """Return a page's text, decoded from UTF-8 or from the encoding that an HTML page declares.

    A NUL byte becomes U+FFFD, as in CommonMark (see `nul_warning`).

    Raises:
        UnreadablePage: it is binary, or encoded in neither.
    """
    if is_binary(content):
        raise UnreadablePage(f"{path} is not a text file.")
    return _decode(path, content).replace("\0", "\ufffd")


def is_binary(content: bytes) -> bool:
    """Whether a file is no text: more than one byte in twenty is NUL. A text has a few of them by mistake."""
    return 0 in content and content.count(0) * _NUL_RATIO > len(content)


def nul_warning(path: str, content: bytes) -> str:
    """Return a sentence about the NUL bytes of a text, "" if it has none."""
    if 0 not in content:
        return ""
    return f"{path} holds {content.count(0):,} NUL bytes, which are read as U+FFFD: remove them."


def _decode(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        declared = declared_charset(content) if path.lower().endswith((".html", ".htm")) else ""
    try:
        if declared:
            return content.decode(declared)
    except UnicodeDecodeError:
        raise UnreadablePage(f"{path} is encoded neither in UTF-8 nor in {declared}, as it says.") from None
    raise UnreadablePage(f"{path} is not encoded in UTF-8.")


def decode_leniently(content: bytes, charset: str) -> str:
    """Return a text by Python's name of its encoding, "" for UTF-8 or else Windows-1252; wrong bytes become U+FFFD."""
    with contextlib.suppress(UnicodeDecodeError):
        return content.decode(charset or "utf-8-sig")
    return content.decode(charset or "cp1252", "replace")
