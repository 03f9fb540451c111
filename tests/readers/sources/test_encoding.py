"""Bytes to text."""

from __future__ import annotations

import pytest

from chapterverse.errors import UnreadablePage
from chapterverse.readers.folder import decode_page, nul_warning


def test_decoding() -> None:
    assert decode_page("a.html", "\ufeffä".encode()) == "ä"
    with pytest.raises(UnreadablePage, match=r"^a\.html is not encoded in UTF-8\.$"):
        decode_page("a.html", b"\xe4")
    with pytest.raises(UnreadablePage, match=r"^a\.html is not a text file\.$"):
        decode_page("a.html", b"PK\x03\x04\x00")


def test_a_few_nul_bytes_are_replaced_and_many_are_no_text() -> None:
    assert decode_page("a.html", b"<p>Tea" + b"\0" + b"pot for all of us") == "<p>Tea\ufffdpot for all of us"
    assert nul_warning("a.html", b"a\0b\0") == "a.html holds 2 NUL bytes, which are read as U+FFFD: remove them."
    assert nul_warning("a.html", b"ab") == ""
    with pytest.raises(UnreadablePage, match="is not a text file"):
        decode_page("a.html", "<p>Tea".encode("utf-16"))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (b"<meta charset=iso-8859-1>\xe4\x80", "ä€"),
        (b'<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">\xc4', "Д"),
        ("<meta charset='Shift_JIS'>灯台".encode("cp932"), "灯台"),
        ("<meta charset=utf-8>ä".encode(), "ä"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_declares(html: bytes, text: str) -> None:
    assert decode_page("a.html", html).endswith(f">{text}")


@pytest.mark.parametrize("charset", [b"rot13", b"utf-7", b"idna", b"utf-8", b"nonsense", b"x" * 50, b""])
def test_a_declared_encoding_that_browsers_do_not_know(charset: bytes) -> None:
    with pytest.raises(UnreadablePage, match=r"^a\.html is not encoded in UTF-8\.$"):
        decode_page("a.html", b"<meta charset=" + charset + b">\xe4")


def test_a_declared_encoding_that_the_page_is_not_in() -> None:
    with pytest.raises(UnreadablePage, match=r"^a\.html is encoded neither in UTF-8 nor in cp932, as it says\.$"):
        decode_page("a.html", b"<meta charset=shift_jis>\x81")
    with pytest.raises(UnreadablePage, match="is not encoded in UTF-8"):
        decode_page("a.md", b"<meta charset=iso-8859-1>\xe4")
