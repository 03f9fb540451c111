"""Items to sections."""

from __future__ import annotations

from chapterverse.model import Block, BlockKind
from chapterverse.readers.sections.outline import Border, Heading, Item, Note, build_sections, title_from_path

A, B, C = (Block(BlockKind.PARAGRAPH, text) for text in "abc")
NOTE = Block(BlockKind.FOOTNOTE, "[^1]: n")


def sections(*items: Item, title: str = "T") -> list[tuple[str | None, int, tuple[str, ...], str]]:
    built = build_sections(items, title, {"n": NOTE})
    return [(s.heading, s.level, s.path, "".join(b.text for b in s.blocks)) for s in built]


def test_text_before_the_first_heading() -> None:
    assert sections(A, Heading("H", 2), B) == [(None, 0, ("T",), "a"), ("H", 2, ("T", "H"), "b")]


def test_nothing_at_all() -> None:
    assert sections() == []


def test_paths_follow_levels_and_skip_missing_ones() -> None:
    found = sections(
        Heading("A", 1), Heading("B", 2), Heading("C", 4), Heading("D", 3), Heading("E", 2), Heading("F", 1)
    )
    assert [path for _, _, path, _ in found] == [
        ("T", "A"), ("T", "A", "B"), ("T", "A", "B", "C"), ("T", "A", "B", "D"), ("T", "A", "E"), ("T", "F"),
    ]  # fmt: skip


def test_a_first_heading_that_is_the_title_is_not_repeated() -> None:
    found = sections(Heading("My  title".replace("  ", " "), 1), Heading("B", 2), title=" My  title ")
    assert [path for _, _, path, _ in found] == [(" My  title ",), (" My  title ", "B")]


def test_headings_with_one_text_stay_apart() -> None:
    assert [text for *_, text in sections(Heading("H", 2, "h"), A, Heading("H", 2, "h_1"), B)] == ["a", "b"]


def test_what_follows_a_scope_belongs_to_the_heading_before_it() -> None:
    found = sections(Heading("H", 2), A, Border.ENTER, Heading("I", 3), B, Border.LEAVE, C, Heading("J", 3))
    assert found == [
        ("H", 2, ("T", "H"), "ac"), ("I", 3, ("T", "H", "I"), "b"), ("J", 3, ("T", "H", "J"), ""),
    ]  # fmt: skip


def test_a_relative_heading_ranks_below_its_scope() -> None:
    found = sections(
        Heading("H", 2), Border.ENTER, Heading("x", 0), A, Border.ENTER, Heading("y", 0), B, Heading("z", 0),
        Border.LEAVE, Border.LEAVE, Heading("I", 2),
    )  # fmt: skip
    assert [(h, level, path[1:]) for h, level, path, _ in found] == [
        ("H", 2, ("H",)), ("x", 3, ("H", "x")), ("y", 4, ("H", "x", "y")), ("z", 4, ("H", "x", "z")), ("I", 2, ("I",)),
    ]  # fmt: skip


def test_levels_end_at_six_and_paths_do_not() -> None:
    items: list[Item] = [Heading("H", 6)]
    for name in "abc":
        items += [Border.ENTER, Heading(name, 0)]
    assert sections(*items)[-1][1:3] == (6, ("T", "H", "a", "b", "c"))


def test_an_excluded_heading_takes_its_section_with_it() -> None:
    found = sections(
        Heading("H", 2), A, Heading("X", 2, excluded=True), B, Heading("Y", 3), C, Note("n"), Heading("I", 2), C,
        Note("n", home=True),
    )  # fmt: skip
    assert [(h, text) for h, _, _, text in found] == [("H", "a"), ("I", "c")]


def test_an_excluded_heading_in_a_scope_ends_with_it() -> None:
    found = sections(Heading("H", 2), Border.ENTER, Heading("X", 3, excluded=True), A, Border.LEAVE, B)
    assert [(h, text) for h, _, _, text in found] == [("H", "b")]


def test_footnotes_go_where_they_are_referred_to_once() -> None:
    found = sections(A, Note("n"), B, Note("n"), Heading("H", 2), Note("n"), Note("n", home=True))
    assert [text for *_, text in found] == ["ab[^1]: n", "[^1]: n"]


def test_a_name_for_every_path() -> None:
    assert (title_from_path("a/b_c.html"), title_from_path("index.html"), title_from_path("-.md")) == (
        "B c",
        "Index",
        "-.md",
    )
