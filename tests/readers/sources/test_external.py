"""What a server's label says of a document."""

from __future__ import annotations

import pytest

from chapterverse.ext.sources.external import Media
from growth import assert_linear


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("text/html; charset=windows-1251", "Д"),
        ('TEXT/HTML;boundary=x; Charset = "Windows-1251"', "Д"),
        ("text/html; charset='windows-1251'", "Д"),
        ("text/html; charset=windows-1251; charset=utf-8", "Д"),
        ("text/html; charset=none", "Ä"),
        ("text/html", "Ä"),
    ],
)
def test_the_encoding_that_a_server_names_counts(label: str, text: str) -> None:
    assert Media.of(label, "https://a.example/", b"\xc4").decode(b"\xc4") == text


@pytest.mark.parametrize("piece", [";", '";', '\\";', "a*1*=x;"])
def test_a_label_takes_linear_time(piece: str) -> None:
    assert_linear(lambda size: Media.of(f'text/html;"{piece * size}', "https://a.example/", b""), 2_000, 20_000)
