"""Addresses of tools: each argument in its place, and templates that can't be used."""

from __future__ import annotations

import pytest

from chapterverse.errors import InputError
from chapterverse_api.ext.agents.tools.address_template import AddressTemplate
from chapterverse_api.ext.agents.tools.tool import JsonObject

TEMPLATE = "https://shop.example/v1/{order}/items?lang=en"


def filled(template: str, values: JsonObject) -> str:
    return AddressTemplate.parse(template).fill(values)


def test_values_stay_in_their_place() -> None:
    assert filled(TEMPLATE, {"order": "A 17ö", "page": 2, "all": True, "q": "../a?b#c%2f;d"}) == (
        "https://shop.example/v1/A%2017%C3%B6/items?lang=en&page=2&all=true&q=..%2Fa%3Fb%23c%252f%3Bd"
    )
    assert filled("https://shop.example/s?q={q}&n=1", {"q": "a&b/c"}) == "https://shop.example/s?q=a%26b%2Fc&n=1"
    assert filled("https://shop.example", {"n": -1.5}) == "https://shop.example?n=-1.5"


@pytest.mark.parametrize(
    "value", ["../a", "a/b", "a\\b", "..", ".", "a;b", "%2e%2e", "a%00", "\x00", "．．", "‥", "a?b"]
)
def test_a_value_that_is_no_segment_has_no_place_in_a_path(value: str) -> None:
    with pytest.raises(InputError, match="order can't stand in an address"):
        filled(TEMPLATE, {"order": value})


def test_what_is_harmless_alone_leads_nowhere_together() -> None:
    template = "https://shop.example/v1/{name}.{kind}"
    assert filled(template, {"name": "a.b", "kind": "c"}).endswith("/v1/a.b.c")
    for name, kind in (("a.", "c"), ("a", ".c")):
        with pytest.raises(InputError, match="can't stand"):
            filled(template, {"name": name, "kind": kind})


@pytest.mark.parametrize("value", ["a" * 501, "\u200f\u202e", "a\nb", "", "\ud800"])
@pytest.mark.parametrize("name", ["order", "other"])
def test_no_part_of_an_address_holds_every_text(name: str, value: str) -> None:
    with pytest.raises(InputError, match="can't stand"):
        filled(TEMPLATE, {"order": "A17", name: value})


@pytest.mark.parametrize(
    ("template", "folder"),
    [
        ("https://a.example/v1/orders/{order}", "/v1/orders/"), ("https://a.example/v1/o-{order}/items", "/v1/"),
        ("https://a.example/v1/search?q={q}", "/v1/search/"), ("https://a.example/v1/search/", "/v1/search/"),
        ("https://a.example/{a}/{b}", "/"), ("https://a.example", "/"),
    ],
)  # fmt: skip
def test_the_folder_of_an_address(template: str, folder: str) -> None:
    assert AddressTemplate.parse(template).folder == folder


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("https://{host}/a", "begin with https"), ("//a.example/b", "begin with https"),
        ("ftp://a.example", "begin with"),
        ("https://a.example:x/", "no valid host"), ("https://me:key@a.example/", "password"),
        ("https://a.example/b#{c}", "a # or a brace"), ("https://a.example/{b/c}", "a # or a brace"),
        ("https://a.example/{b", "a # or a brace"), ("https://a.example/b/../{c}", "leads out"),
    ],
)  # fmt: skip
def test_a_template_that_can_not_be_used_says_why(template: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        AddressTemplate.parse(template)
