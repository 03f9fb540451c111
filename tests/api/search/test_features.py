from __future__ import annotations

import pytest

from chapterverse.model import Chunk
from chapterverse_api.search.ranking import QueryFeatures, find_names
from growth import assert_linear


def chunk(
    text: str,
    path: tuple[str, ...] = ("Caching", "Clearing the cache"),
    file: str = "guide/cache.md",
    language: str = "en",
) -> Chunk:
    title = path[0] if path else ""
    return Chunk("1", "", text, title, path[-1] if path else None, path, 0, file, "", True, "", language=language)


def wanted(question: str, language: str = "en") -> QueryFeatures:
    return QueryFeatures(question, language)


def features(question: str, of: Chunk) -> dict[str, float]:
    found = wanted(question, of.language).features(of)
    assert set(found) == {"title", "heading", "defines", "kind"}
    assert all(0 <= value <= 1 for value in found.values())
    return found


def test_shares_are_of_what_the_place_is_called() -> None:
    found = features("How do I clear the cache?", chunk("Run it."))
    assert (found["title"], found["heading"]) == (1.0, 1.0)
    assert features("clear", chunk("Run it."))["heading"] == 0.5
    assert features("zebra", chunk("Run it."))["heading"] == 0.0


@pytest.mark.parametrize(
    "question",
    [
        "",
        "a",
        "the of and",
        "\x00\x01\x1b",
        "🦄",
        "```\nx = f(a[0])\n```",
        "как очистить кэш",
        "キャッシュを消す",
        "x" * 4000,
    ],
)
def test_any_question_is_compared_with_any_chunk(question: str) -> None:
    for of in (chunk("Clear the cache."), chunk("Clear the cache.", ()), chunk("清除缓存", ("缓存",), "缓存.md", "zh")):
        features(question, of)
    assert features(question, chunk("Clear.", ()))["heading"] == 0.0


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Caching", ["Caching"]),
        ("Class: Pool", ["Class: Pool", "Class", "Pool"]),
        ("Server (blackd)", ["Server (blackd)", "Server", "blackd"]),
        ("Pool.close(error)", ["Pool.close(error)", "Pool.close", "close"]),
        ("`new Pool(url, client)`", ["`new Pool(url, client)`", "new Pool"]),
    ],
)
def test_a_heading_has_the_names_in_it_and_not_those_of_parameters(heading: str, names: list[str]) -> None:
    assert list(find_names(heading)) == names


def test_a_heading_defines_by_each_of_its_names() -> None:
    asked = QueryFeatures("Pool", "en", defined_subject="Pool")
    assert asked.features(chunk("Extends it.", ("Class: Pool",)))["defines"] == 1.0
    assert asked.features(chunk("Extends it.", ("Parameter: PoolOptions",)))["defines"] == 0.0


def test_long_headings_have_names_in_linear_time() -> None:
    assert_linear(lambda n: find_names.__wrapped__("a: (b) " * n + "f(" * n), 2_000, 20_000)
