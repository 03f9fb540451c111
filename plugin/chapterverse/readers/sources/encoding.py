"""Finds the encoding that an HTML page declares."""

from __future__ import annotations

import codecs
import re

_DECLARED = re.compile(rb"""<meta\b[^>]{0,500}?\bcharset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
#: Bytes within which the HTML standard wants the declaration.
_PROLOG = 1024

#: Encodings of the web (WHATWG) by Python's names; Python has others, which a browser would not take from a page.
_KNOWN = frozenset(
    "big5 cp866 cp874 cp932 cp949 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 euc_jp euc_kr gb18030"
    " gb2312 gbk iso2022_jp iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13"
    " iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman shift_jis".split()
)
#: Browsers read these as their larger relatives.
_RELATIVES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gbk", "shift_jis": "cp932", "euc_kr": "cp949"}


def declared_charset(content: bytes) -> str:
    """Return Python's name of the encoding that a page declares; "" if it declares none that browsers know."""
    match = _DECLARED.search(content[:_PROLOG])
    return web_charset(match.group(1).decode()) if match else ""


def web_charset(label: str) -> str:
    """Return Python's name of an encoding by its label; "" for UTF-8 and for one that browsers don't know."""
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    name = _RELATIVES.get(name, name)
    return name if name in _KNOWN else ""
