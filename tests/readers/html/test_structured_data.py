"""JSON-LD: the five types, pruned to a bounded size; bombs and wrong types are left out."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from chapterverse.readers.html.metadata import read_structured_data
from chapterverse.readers.sections.html_page import read_document


def script(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return f'<script type="application/ld+json">{text}</script>'


@pytest.mark.parametrize("kind", ["Product", "Service", "FAQPage", "HowTo", "BreadcrumbList"])
def test_the_five_types_are_read_from_the_head(kind: str) -> None:
    stated = {"@context": "https://schema.org", "@type": kind, "name": "Oven"}
    page = read_document(f"<html><head>{script(stated)}</head><body><main><p>Text.</p></main></body></html>")
    assert page.structured_data == (stated,)


@pytest.mark.parametrize(
    "value",
    [
        {"@graph": [{"@type": "WebSite"}, {"@type": ["Thing", "Product"], "name": "Oven"}]},
        [{"@type": "WebPage", "mainEntity": {"@type": "https://schema.org/Product", "name": "Oven"}}],
        {"@type": "schema:Product", "name": "<b>Oven</b>\n"},
    ],
)
def test_an_object_is_found_in_graphs_lists_and_other_objects(value: Any) -> None:
    (found,) = read_structured_data(script(value))
    assert found["name"] == "Oven"


@pytest.mark.parametrize(
    "html",
    [
        script("{"),
        script('"text"'),
        script("[" * 100_000),
        script('{"@type":' * 50_000),
        script('{"@type": "Product", "n": ' + "9" * 5_000 + "}"),
        script({"@type": {"@type": 3}}),
        script({"@type": 7, "name": "Oven"}),
        script({"@type": "Article", "name": "Oven"}),
        script({"@type": "Product", "description": "x" * 300_000}),
        f"<!-- {script({'@type': 'Product'})} -->",
        f"<script>{json.dumps({'@type': 'Product'})}</script><!-- ld+json -->",
        '<script type="application/ld+json"',
    ],
)
def test_what_is_none_is_left_out(html: str) -> None:
    assert read_structured_data(html) == ()


def test_an_object_is_cut_to_size_and_references_are_not_followed() -> None:
    deep: Any = "end"
    for _ in range(100):
        deep = {"isRelatedTo": deep}
    value = {
        "@type": "Product", "@id": "#me", "isVariantOf": {"@id": "#me"}, "deep": deep, "weight": float("inf"),
        "many": list(range(10_000)), "size": 2**70, "description": "word " * 1_000,
    }  # fmt: skip
    (found,) = read_structured_data(script(value).replace("Infinity", "1e999"))
    assert found["isVariantOf"] == {"@id": "#me"}
    assert len(found["many"]) == 50
    assert found["size"] is None
    assert len(found["description"]) == 500
    assert len(json.dumps(found)) < 4_000
    assert found["weight"] is None


def test_a_page_of_many_objects_keeps_the_first_that_fit() -> None:
    html = "".join(script({"@type": "Product", "name": f"{n}", "description": "y" * 450}) for n in range(1_000))
    found = read_structured_data(html)
    assert [one["name"] for one in found] == [str(n) for n in range(len(found))]
    assert 5 < len(found) <= 10
    assert len(json.dumps(found)) < 4_200


def test_a_hostile_page_takes_no_longer_than_its_length() -> None:
    begin = time.process_time()
    read_structured_data("<script type=ld+json" * 20_000 + "<!--" * 20_000 + "<script ld+json>" * 20_000)
    assert time.process_time() - begin < 2


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (
            "Der Ofen ist das beste Gerät für die Küche, und er wird mit einem Schalter an der Seite eingeschaltet. "
            * 2,
            "de",
        ),
        ("This oven is the best appliance that there is in the kitchen, and it is switched on at its side. " * 2, "en"),
        ("烤箱是厨房里最好的设备，您可以通过侧面的开关将其打开。如果不行，请先将其连接到墙上的电源插座上。" * 4, "zh"),
        ("pip install x", "en"),
    ],
)
def test_a_page_that_states_no_language_has_that_of_its_text(text: str, language: str) -> None:
    assert (
        read_document(f"<html><body><main><p>{text}</p><pre>if not is on</pre></main></body></html>").language
        == language
    )
    assert read_document(f'<html lang="fr"><body><main><p>{text}</p></main></body></html>').language == "fr"
