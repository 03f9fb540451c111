"""How a secret may stand in a file: the forms that a value is written in, and the ways in which a text must be read."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterator, Mapping
from urllib.parse import quote

_SECRET_NAME = re.compile(r"API_?KEY|ACCESS_KEY|SIGNING_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD")
_NO_SECRET = re.compile(r"_(?:FILE|PATH|DIR|ARN|URL|URI|ID)$")
_PASSWORD = re.compile(r"[\w+.-]+://[^:/@]*:([^/@]+)@")
_SHORTEST = 12

_ESCAPE = re.compile(
    rb"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|apos|sol|plus|equals|nbsp));"
    rb"|%([0-9a-fA-F]{2})|\\u\{?([0-9a-fA-F]{4})\}?|\\x([0-9a-fA-F]{2})|\\(/)"
)
_NAMED = {
    b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'", b"sol": b"/", b"plus": b"+", b"equals": b"=",
    b"nbsp": b" ",
}  # fmt: skip
_TAG = re.compile(rb"<[^<>]{0,4000}>")
#: From the value of one attribute to that of the next.
_NEXT_ATTRIBUTE = re.compile(rb"[\"']\s{1,20}[\w:.@-]{1,60}\s{0,9}=\s{0,9}[\"']")
#: What may stand between two pieces of a text that was cut: white space, quotes, what joins strings, and the zero
#: bytes of a wider encoding.
_BETWEEN = bytes(range(33)) + b"\"'`+\\,"
_DATA = re.compile(rb";base64,([A-Za-z0-9+/_-]{16,})")


def values(environ: Mapping[str, str], secrets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and values that nobody may read: those of variables that are called so, and passwords in addresses.

    Args:
        secrets: what is secret whatever it is called; of several that commas part, each is one.
    """
    for name, value in sorted({**environ, **secrets}.items()):
        named = _SECRET_NAME.search(name) and not _NO_SECRET.search(name)
        found = [value, *value.split(",")] if named or name in secrets else []
        if password := _PASSWORD.match(value):
            found.append(password[1])
        for one in dict.fromkeys(part.strip() for part in found):
            if len(one) >= _SHORTEST and len(set(one)) >= 5 and not one.startswith("/"):
                yield name, one


def forms(value: str) -> tuple[bytes, ...]:
    """Return a secret as it may stand in a file: as it is, quoted for HTML, JSON or an address, encoded, backwards."""
    raw = value.encode(errors="surrogateescape")
    escaped = [quote(raw, safe="").encode(), html.escape(value).encode(errors="replace")]
    escaped += [json.dumps(value)[1:-1].encode(), json.dumps(value)[1:-1].replace("/", "\\/").encode()]
    return tuple(dict.fromkeys([*plain_forms(value), raw.hex().upper().encode(), *escaped]))


def plain_forms(value: str) -> tuple[bytes, ...]:
    """Return those forms that are left of a secret when a text is read without its escapes."""
    raw = value.encode(errors="surrogateescape")
    found = [raw, raw[::-1], raw.hex().encode()]
    for shift in range(3):
        # At each of the three places that base64 has for a byte, without the characters that its neighbors change.
        coded = base64.b64encode(b"\0" * shift + raw)[(0, 2, 3)[shift] :].rstrip(b"=")[:-1]
        found += [coded, coded.translate(bytes.maketrans(b"+/", b"-_"))]
    return tuple(dict.fromkeys(found))


def readable(content: bytes) -> bytes:
    """Return a text as its reader sees it: without tags, and with the characters that escapes stand for."""
    return _unescaped(_TAG.sub(b"", content) if b"<" in content else content)


def squeezed(content: bytes) -> bytes:
    """Return a text without anything that may stand between two pieces of it."""
    return content.translate(None, _BETWEEN)


def joined(content: bytes) -> bytes:
    """Return a text with the values of neighboring attributes in one piece, and squeezed."""
    return squeezed(_unescaped(_NEXT_ATTRIBUTE.sub(b"", content)))


def embedded(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield what addresses hold in themselves (`data:…;base64,…`), decoded, and where each begins."""
    for match in _DATA.finditer(content):
        coded = match[1].translate(bytes.maketrans(b"-_", b"+/"))
        yield match.start(), base64.b64decode(coded[: len(coded) // 4 * 4])


def _unescaped(content: bytes) -> bytes:
    return _ESCAPE.sub(_character, content)


def _character(match: re.Match[bytes]) -> bytes:
    decimal, hexadecimal, name, percent, unicode, byte, slash = match.groups()
    if name or slash:
        return _NAMED[name] if name else b"/"
    if percent or byte:
        return bytes.fromhex((percent or byte).decode())
    code = int(decimal) if decimal else int(hexadecimal or unicode, 16)
    return chr(code).encode(errors="replace") if code < 0x110000 else b""
