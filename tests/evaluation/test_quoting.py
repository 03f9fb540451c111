from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.errors import InputError
from chapterverse_api.ext.evaluation.questions import read_judged
from chapterverse_api.ext.evaluation.quoting import (
    AnswerKey,
    bare,
    cut_in_silence,
    quoted_texts,
    repeats,
)

SECTION = (
    "Set these:\n\n- `one`: first\n- `two`: second\n  - deeper\n- three\n\n"
    "```sh\nrun\nstop\n```\n\n| a | b |\n| - | - |\n| 1 | 2 |\n| 3 | 4 |"
)


def segment(
    text: str, kind: str = "quote", mark: str | None = None, ids: tuple[str, ...] = ("1",)
) -> dict[str, object]:
    return {"text": text, "kind": kind, "mark": mark, "citations": list(ids)}


def test_a_key_is_compared_without_markup_white_space_and_targets_of_links() -> None:
    assert bare("Use [the **`x`**](/y) now.\n  It&nbsp;works") == "usethexnowitworks"
    assert bare("a :class:`~httpx.Client`, :ref:`its pool <pool>`, `a link <https://x>`__: :py:meth:`!x.y`") == (
        "aclientitspoolalinkxy"
    )
    assert bare("{class}`~httpx.Client` and {ref}`its pool <pool>`") == "clientanditspool"
    key = AnswerKey("[`a` field](/x) is set", "Before")
    found = key.figures([segment("Other."), segment("Before. The a field\nis set.", mark="a field\nis set")])
    assert found == {"begins": 1.0, "key": 1.0, "key.first": 0.0, "key.marked": 1.0}
    assert key.figures([]) == {"begins": 0.0, "key": 0.0, "key.first": 0.0, "key.marked": 0.0}


def test_only_the_first_mark_counts() -> None:
    segments = [segment("A b c. D e f.", mark="A b c."), segment("G.", mark="D e f.")]
    assert AnswerKey("D e f").figures(segments)["key.marked"] == 0.0


def test_quotes_of_an_answer_without_any_are_its_runs_of_one_citation() -> None:
    segments = [
        segment("a ", "prose"),
        segment("b", "prose"),
        segment("c", "prose", ids=("2",)),
        segment("d", "framing", ids=()),
    ]
    assert quoted_texts(segments) == ["a b", "c"]
    assert quoted_texts([*segments, segment("q")]) == ["q"]


@pytest.mark.parametrize(
    ("quote", "cuts"),
    [
        (SECTION, 0),
        ("Set these:\n\n- `one`: first", 1),
        ("Set these:\n\n- `one`: first\n\n… 3 more in *X*", 0),
        ("Set these:", 1),
        ("```sh\nrun\n```", 1),
        ("| a | b |\n| - | - |\n| 3 | 4 |", 1),
        ("Nothing of it.", 0),
    ],
)
def test_what_is_cut_in_silence(quote: str, cuts: int) -> None:
    assert cut_in_silence(quote, SECTION) == cuts


def test_lines_that_stand_in_two_quotes() -> None:
    line = "Six words stand in this line."
    assert repeats([f"{line}\nShort one.", f"Short one.\n**{line}**"]) == 1
    assert repeats([f"{line}\n{line}"]) == 0


def rows(tmp_path: Path, line: str) -> Path:
    file = tmp_path / "q.jsonl"
    file.write_text(line)
    return file


def test_rows_state_a_key_and_a_file_in_place_of_an_address(tmp_path: Path) -> None:
    line = (
        '{"id": "a", "question": "A?", "key": "k", "begins": "b", "file": "x.md", "heading": "H", '
        '"history": ["before"]}'
    )
    (row,) = read_judged(rows(tmp_path, line))
    assert (row.key, row.file, row.heading, row.answerable) == (AnswerKey("k", "b"), "x.md", "H", True)
    assert row.history == [{"role": "user", "content": "before"}]
    (none,) = read_judged(rows(tmp_path, '{"id": "a", "question": "A?", "key": null, "file": null}'))
    assert (none.answerable, none.key) == (False, None)


def test_a_key_that_is_no_text_is_named_by_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'line 1: "key" must be a string\.'):
        read_judged(rows(tmp_path, '{"id": "a", "question": "A?", "expected": ["x"], "key": 7}'))
