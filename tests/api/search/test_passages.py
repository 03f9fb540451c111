from __future__ import annotations

from dataclasses import replace

import pytest

from chapterverse.calibration import WeightedQuestion
from chapterverse.model import Chunk, SparseVector
from chapterverse.text import lexical
from chapterverse_api.search.passages import (
    MAX_PASSAGES_TOKENS,
    MAX_SECTION_TOKENS,
    MAX_SECTIONS,
    MIN_SECTIONS,
    WIDENED_SECTIONS,
    choose,
    drop_irrelevant,
    explain_omissions,
    make_passages,
)
from chapterverse_api.search.ranking import Candidate

#: Bytes that count as 100 tokens.
HUNDRED = 360


def chunk(name: str, index: int, tokens: int = 100, page: str = "a.md") -> Chunk:
    text = f"{name}{index} ".ljust(round(tokens / 100 * HUNDRED), "x")
    url = f"https://docs.example.com/{page}#{name}"
    return Chunk(f"{page}{name}{index}", "", text, "Guide", name, ("Guide", name), index, page, url, True, "")


def candidate(of: Chunk, rank: float = 0.5) -> Candidate:
    return Candidate(of, SparseVector((1,), (1.0,)), rank, 0.9, {}, None)


def made(kept: list[Chunk], page: list[Chunk]) -> list[list[str]]:
    """Return the first words of the chunks in each passage's section."""
    pages = {c.source_file_path: [p for p in page if p.source_file_path == c.source_file_path] for c in kept}
    found = make_passages([candidate(c) for c in kept], lambda chunk: chunk.url, pages)
    assert [p.id for p in found] == [str(n) for n in range(1, len(found) + 1)]
    for passage, of in zip(found, kept, strict=False):
        assert (passage.chunk_id, passage.url, passage.path) == (of.chunk_id, of.url, of.heading_path)
        assert passage.text in passage.section
    return [[part.split()[0] for part in p.section.split("\n\n")] for p in found]


def test_a_section_is_chosen_once_by_its_best_chunk() -> None:
    page = [chunk("one", 0), chunk("one", 1), chunk("two", 2)]
    kept = choose([candidate(page[1], 0.9), candidate(page[0], 0.8), candidate(page[2], 0.7)], None)
    assert [c.chunk.chunk_id for c in kept] == ["a.mdone1", "a.mdtwo2"]


@pytest.mark.parametrize(("top_k", "count"), [(None, MAX_SECTIONS), (1, 1), (20, 12)])
def test_as_many_sections_as_are_wanted(top_k: int | None, count: int) -> None:
    assert len(choose([candidate(chunk(f"s{n}", n)) for n in range(12)], top_k)) == count
    assert choose([], top_k) == []


def test_neighbors_are_of_the_same_section_and_in_order() -> None:
    page = [chunk("one", 0), chunk("two", 1), chunk("two", 2), chunk("two", 3), chunk("three", 4)]
    assert made([page[2]], page) == [["two1", "two2", "two3"]]


def test_a_section_is_widened_from_the_middle_as_far_as_one_may_be() -> None:
    page = [chunk("one", n) for n in range(40)]
    (around,) = made([page[20]], page)
    assert around == [f"one{n}" for n in range(15, 25)]
    assert len(around) * 100 <= MAX_SECTION_TOKENS


def test_a_widened_section_leaves_room_for_those_after_it() -> None:
    page = [chunk(name, n, 500) for n, name in enumerate("abcde" * 3)]
    kept = [c for c in page if c.chunk_index in (5, 6, 7, 8, 9)]
    found = made(kept, sorted(page, key=lambda c: c.section_heading or ""))
    assert [len(around) for around in found] == [1] * 5


def test_what_is_left_goes_to_more_sections_unwidened() -> None:
    page = [chunk(f"s{n // 3}", n) for n in range(36)]
    found = made([page[n * 3 + 1] for n in range(12)], page)
    assert [len(around) for around in found[:WIDENED_SECTIONS]] == [3] * WIDENED_SECTIONS
    assert {len(around) for around in found[WIDENED_SECTIONS:]} == {1}
    assert sum(map(len, found)) * 100 <= MAX_PASSAGES_TOKENS


def test_a_full_budget_ends_the_passages_after_those_that_are_widened() -> None:
    page = [chunk(f"s{n}", n, 512) for n in range(8)]
    assert len(made(page, page)) == WIDENED_SECTIONS


def test_a_page_of_the_same_words_elsewhere_is_no_neighbor() -> None:
    here, there = chunk("one", 0), chunk("one", 1, page="b.md")
    assert made([here], [here, there]) == [["one0"]]


def test_no_text_is_handed_on_twice() -> None:
    page = [chunk("one", 0), chunk("two", 1), chunk("two", 2), chunk("three", 3)]
    same = [replace(page[3], text=page[0].text), replace(page[1], text=page[0].text)]
    assert [c.chunk for c in choose([candidate(page[0]), candidate(same[0])], None)] == [page[0]]
    assert made([page[0], page[2]], [page[0], same[1], page[2]]) == [["one0"], ["two2"]]


def test_what_says_hardly_anything_of_the_question_is_left_out_behind_the_best() -> None:
    texts = ["The teapot sings.", *["Kettles whistle."] * 5, "A teapot sings, too."]
    kept = [
        candidate(chunk(f"s{n}", n))._replace(lexical=lexical.document_vector((), text)) for n, text in enumerate(texts)
    ]
    words = tuple((w.terms,) for w in lexical.words("teapot sings"))
    found = drop_irrelevant(kept, WeightedQuestion(words, (1.0,) * len(words)))
    assert [c.chunk.chunk_index for c in found] == [*range(MIN_SECTIONS), 6]
    assert drop_irrelevant([], WeightedQuestion()) == []


def test_each_candidate_is_left_out_by_the_first_stage_that_it_does_not_pass() -> None:
    first, second, third = (candidate(chunk(f"s{n}", n)) for n in range(3))
    found = explain_omissions(
        [first, second, third], ("evidence", [first, second]), ("section", [first]), ("budget", [first])
    )
    assert found == {
        second.chunk.chunk_id: "section",
        third.chunk.chunk_id: "evidence",
    }


def test_a_passage_knows_the_sections_directly_below_its_own() -> None:
    page = [chunk("one", 0)]
    below = [("A", "#1"), ("A", "#1"), ("A", "Deep", "#2"), ("A", "#3"), ("B", "Deep", "#4"), ("C", "#5")]
    for n, (*path, anchor) in enumerate(below, 1):
        url = f"https://docs.example.com/{anchor}"
        page.append(replace(chunk("x", n), heading_path=("Guide", "one", *path), url=url))
    # Another section with the same heading has its own.
    page += [replace(chunk("one", 7), url="https://docs.example.com/#one-2"), page[1], chunk("two", 8)]
    (found,) = make_passages([candidate(page[0])], lambda chunk: chunk.url, {"a.md": page})
    assert found.subsections == (
        ("A", "https://docs.example.com/#1"),
        ("A", "https://docs.example.com/#3"),
        ("B", ""),
        ("C", "https://docs.example.com/#5"),
    )
    (found,) = make_passages([candidate(page[-1])], lambda chunk: chunk.url, {"a.md": page})
    assert found.subsections == ()
