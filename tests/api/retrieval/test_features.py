from __future__ import annotations

import pytest

from chapterverse.model import Chunk
from chapterverse.text import lexical
from chapterverse_api.retrieval.features import QueryFeatures, code_share, find_names
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
    return QueryFeatures(question, language, dict.fromkeys(lexical.terms_of(lexical.words(question, language)), 2.0))


def features(question: str, of: Chunk) -> dict[str, float]:
    vector = lexical.document_vector(of.heading_path, of.text, of.language)
    asked = wanted(question, of.language)
    found = asked.features(of, vector.among(asked.terms).keys())
    assert set(found) == {"title", "heading", "file", "phrase", "code", "defines", "kind"}
    assert all(0 <= value <= 1 for value in found.values())
    return found


def test_shares_are_of_what_the_place_is_called() -> None:
    found = features("How do I clear the cache?", chunk("Run it."))
    assert (found["title"], found["heading"], found["file"]) == (1.0, 1.0, 0.5)
    assert features("clear", chunk("Run it."))["heading"] == 0.5
    assert features("zebra", chunk("Run it."))["heading"] == 0.0


def test_an_index_file_is_called_by_its_folder() -> None:
    assert features("cache", chunk("x", file="cache/index.md"))["file"] == 1.0
    assert features("index", chunk("x", file="index.md"))["file"] == 0.0


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Lock the file first.", 1.0),
        ("Locking of files is easy.", 1.0),
        ("A file lock.", 1.0),
        ("A file is what nobody at all ever wants to lock.", 0.0),
        ("Blocks of a profile.", 0.0),
        ("Only a lock.", 0.0),
    ],
)
def test_a_phrase_is_two_words_side_by_side_in_either_order(text: str, phrase: float) -> None:
    assert features("lock file", chunk(text, ("Guide",)))["phrase"] == phrase


def test_words_of_scripts_without_spaces_begin_anywhere() -> None:
    of = chunk("请先清除缓存目录。", ("指南",), language="zh")
    assert features("清除缓存", of)["phrase"] > 0


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("no code", 0.0),
        ("```\ncode\n```", 1.0),
        ("~~~ sh\ncode\n~~~", 1.0),
        ("```\nnever closed", 1.0),
        ("half" * 3 + "\n```\nx\n```", 9 / 22),
        ("only ``` in a line", 0.0),
        ("``````", 0.0),
    ],
)
def test_code_is_what_stands_in_fences(text: str, share: float) -> None:
    assert code_share(text) == pytest.approx(share, abs=1e-3)


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


def test_a_language_that_the_index_does_not_name_has_no_idf_and_no_phrase() -> None:
    of = chunk("Den Cache leeren.", language="de")
    found = QueryFeatures("Cache leeren", "de", {}).features(of, frozenset())
    assert found["phrase"] == 0.0


def test_of_a_question_as_long_as_a_page_the_rarest_pairs_are_looked_for() -> None:
    words = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}x" for n in range(400)]
    idf = {t: float(n) for n, word in enumerate(words) for w in lexical.words(word) for t in w.terms}
    pairs = QueryFeatures(" ".join(words), "en", idf).pairs
    assert len(pairs) == 64
    assert min(pair.weight for pair in pairs) == 399 - 64


@pytest.mark.parametrize("text", ["alpha ", "alpha", "alpha-", "alphab. ", "字alpha", "alpha\n```\n", "`", "   "])
def test_hostile_texts_take_time_in_proportion(text: str) -> None:
    asked = wanted("alpha beta")

    def work(size: int) -> None:
        code_share.cache_clear()
        asked.features(chunk(text * size, ()), asked.terms)
        asked.features(chunk("```" + text * size, ()), asked.terms)

    assert_linear(work, 2_000, 16_000)


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
    asked = QueryFeatures("Pool", "en", {}, defined_subject="Pool")
    assert asked.features(chunk("Extends it.", ("Class: Pool",)), frozenset())["defines"] == 1.0
    assert asked.features(chunk("Extends it.", ("Parameter: PoolOptions",)), frozenset())["defines"] == 0.0


def test_long_headings_have_names_in_linear_time() -> None:
    assert_linear(lambda n: find_names.__wrapped__("a: (b) " * n + "f(" * n), 2_000, 20_000)
