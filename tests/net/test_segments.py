"""Texts that stay one segment of a path, and spellings of what would not."""

from __future__ import annotations

import itertools
import unicodedata
from urllib.parse import quote

import pytest

from chapterverse.net.fetch import is_below, is_segment

GOOD = [
    "A17", "a-b_c~d", "v1.2.3", ".NET 8", "größe", "gro\u0308ße", "注文", "заказ", "طلب", "naïve café",
    "urn:isbn:0451450523", "me@example.com", "a+b=c", "(x)", "it's", "50,5", "🯰🯱", "Ａ１７",
]  # fmt: skip

#: What separates segments or leads out of a folder, and what stands for it somewhere.
SEPARATORS = ["/", "\\", ";", "%", "?", "#", "..", "\x00", "\n", "\r", "\t", "\x7f", "\x85", "\u2028"]
WIDE = {
    "/": ["\uff0f", "\u2215", "\u2044", "\u29f8"],
    "\\": ["\uff3c", "\u2216", "\u29f5", "\ufe68"], ";": ["\uff1b", "\u037e"],
    "%": ["\uff05", "\ufe6a", "\u066a"], "?": ["\uff1f"], "#": ["\uff03", "\ufe5f"],
    "..": ["\uff0e\uff0e", "\u2025", "\u2024\u2024", "\ufe52\ufe52", ".\u200d.", ".\ufe0f.", ".\u0323.", "\u2026"],
}  # fmt: skip


def overlong(text: str) -> str:
    """Return UTF-8 in more bytes than needed, as characters of Latin-1."""
    return "".join(chr(0xC0 | ord(char) >> 6) + chr(0x80 | ord(char) & 0x3F) for char in text)


def encoded(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


def spellings(text: str) -> set[str]:
    """Return a text, and what a server may take for it."""
    found = {text, overlong(text), encoded(overlong(text)), "%c0" + encoded(text), "%u002f", f"&#{ord(text[0])};"}
    found |= {encoded(text), encoded(text).upper(), encoded(encoded(text)), quote(quote(text, safe=""), safe="")}
    return found | {*WIDE.get(text, ())} | {encoded(wide) for wide in WIDE.get(text, ())}


@pytest.mark.parametrize("text", GOOD)
def test_names_are_segments(text: str) -> None:
    assert is_segment(text)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_no_spelling_of_a_separator_is_in_a_segment(separator: str) -> None:
    around = [("", ""), ("a", ""), ("", "b"), ("a", "b"), ("..", "admin")]
    texts = [
        f"{before}{spelling}{after}" for (before, after), spelling in itertools.product(around, spellings(separator))
    ]
    assert [text for text in texts if is_segment(text)] == []


@pytest.mark.parametrize(
    "text", ["", ".", "..", "...", " ", ". .", "a\u202eb", "\u200f\u200fab", "a\ud800b", "a\u200bb"]
)
def test_dots_alone_and_marks_of_direction_are_no_segment(text: str) -> None:
    assert not is_segment(text)


def test_no_form_of_a_character_separates() -> None:
    # Behind these planes are ideographs, tags and nothing.
    for char in filter(is_segment, map(chr, range(0x20000))):
        forms = [unicodedata.normalize(form, char) for form in ("NFC", "NFD", "NFKC", "NFKD")]
        assert not {*"/\\;%?#"} & {*"".join((*forms, char.casefold(), char.upper()))}, hex(ord(char))


@pytest.mark.parametrize(
    ("path", "below"),
    [
        ("/v1/orders/A17", True), ("/v1/orders/", True), ("/v1/orders", True), ("/v1/orders/A17/items/", True),
        ("/v1/orders/A%2017", True), ("/v1/orders/gr%C3%B6%C3%9Fe", True), ("/v1/orders//A17", True),
        ("/v1", False), ("/v1/ordersX", False), ("/v1/admin", False), ("/", False), ("", False),
        ("/V1/orders/a", False),
        ("/v1/orders/../admin", False), ("/v1/orders/%2e%2e/admin", False), ("/v1/orders/..%2Fadmin", False),
        ("/v1/orders/%252e%252e%252fadmin", False), ("/v1/orders/..;/admin", False), ("/v1/orders/..\\admin", False),
        ("/v1/orders/%5C..%5Cadmin", False), ("/v1/orders/%c0%ae%c0%ae/admin", False), ("/v1/orders/a%00", False),
        ("/v1/orders/.", False), ("/v1/orders/%ef%bc%8e%ef%bc%8e/admin", False),
    ],
)  # fmt: skip
def test_what_is_below_a_folder(path: str, below: bool) -> None:
    assert is_below(path, "/v1/orders/") is below
    assert is_below(path, "/")
