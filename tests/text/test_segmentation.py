from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.text.segmentation import RUN, bigram_words, seams
from growth import assert_linear

CJK = st.text(st.sampled_from("索引的怎么了解々〇設定をかなーサーバｶﾅ검색을수있는結果"), min_size=1, max_size=60)


def wholes(run: str, language: str) -> list[str]:
    return [word[0] for word in bigram_words(run, language)]


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("怎么重建索引", ["重建", "建索", "索引"]),
        ("索引的大小是多少", ["索引", "大小", "小是"]),
        ("为什么密码忘记了", ["密码", "码忘", "忘记"]),
        ("請問如何備份", ["備份"]),
        ("了解更多", ["了解", "解更", "更多"]),
        ("除了备份", ["除了", "了备", "备份"]),
        ("字", ["字"]),
        ("的", []),
    ],
)
def test_chinese_function_words_part_the_pairs(question: str, kept: list[str]) -> None:
    assert wholes(question, "zh") == kept


def test_only_chinese_is_read_by_chinese_function_words() -> None:
    assert wholes("目的", "zh") == ["目"]
    assert wholes("目的", "ja") == ["目的"]


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("サーバーの設定を変えるにはどうすればいいですか", ["サーバ", "設定", "変"]),
        ("ユーザ", ["ユーザ"]),
        ("キー", ["キー"]),
        ("検索結果", ["検索", "索結", "結果"]),
        ("人々", ["人々"]),
        ("はじめに", ["はじ", "じめ", "めに"]),
    ],
)
def test_japanese_is_read_script_by_script(question: str, kept: list[str]) -> None:
    assert wholes(question, "ja") == kept


def test_a_borrowed_word_is_found_whole_and_in_pairs() -> None:
    assert list(bigram_words("データベース", "ja")) == [("データベース", "デー", "ータ", "タベ", "ベー", "ース")]


@pytest.mark.parametrize(
    ("word", "kept"),
    [
        ("색인을", ["색인"]),
        ("데이터베이스에서는", ["데이터베이스"]),
        ("설치하나요", ["설치"]),
        ("속도", ["속도"]),
        ("어떻게", []),
        ("수", []),
    ],
)
def test_korean_words_lose_their_particles(word: str, kept: list[str]) -> None:
    assert wholes(word, "ko") == kept


@pytest.mark.parametrize(
    ("pairs", "known", "expected"),
    [
        ("重建 建搜 搜索 索索 索引", "重建 搜索 索引", "建搜 索索"),
        ("重建 建披 披萨 萨索 索引", "重建 索引", "披萨 萨索"),
        ("披萨", "", ""),
        ("做披 披萨", "", "披萨"),
        ("连不 不上 上数 数据", "数据", "不上 上数"),
        ("索引 大小", "", ""),
        ("重建 建索 index 索引", "重建 索引", "建索"),
        ("データ タベ", "データ", ""),
        ("", "", ""),
    ],
)
def test_unknown_pairs_between_known_ones_are_seams(pairs: str, known: str, expected: str) -> None:
    assert seams(pairs.split(), set(known.split())) == set(expected.split())


@given(CJK, st.sampled_from(["zh", "ja", "ko", "en"]))
def test_words_are_made_of_what_is_written(text: str, language: str) -> None:
    for run in RUN.findall(text):
        for word in bigram_words(run, language):
            assert all(part and part in run for part in word)
            assert len(set(word)) == len(word)


@given(st.lists(CJK), st.sets(CJK))
def test_what_is_known_is_no_seam(surfaces: list[str], known: set[str]) -> None:
    found = seams(surfaces, known)
    assert found <= set(surfaces) - known


@pytest.mark.parametrize("pattern", ["字", "的", "怎么", "ー", "カー", "かな", "を字", "검색을", "을", "々"])
@pytest.mark.parametrize("language", ["zh", "ja"])
def test_hostile_text_takes_linear_time(pattern: str, language: str) -> None:
    def work(size: int) -> None:
        surfaces = wholes((pattern * size)[:size], language)
        seams(surfaces, set(surfaces[::3]))

    assert_linear(work, 10_000, 100_000)
