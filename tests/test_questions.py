from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.errors import InputError
from chapterverse.questions import Asked, read_questions


def written(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "q.jsonl"
    file.write_bytes(content)
    return file


def test_rows_are_read_in_order_and_other_keys_are_free(tmp_path: Path) -> None:
    rows = b'{"id": "b", "question": "Why?", "more": 1}\r\n\n{"id": "a", "question": "\xe2\x80\xa8", "history": [1]}'
    file = written(tmp_path, rows)
    assert read_questions(file) == [
        Asked("b", "Why?", None, f"{file}, line 1"),
        Asked("a", "\u2028", [1], f"{file}, line 3"),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"id": "1", "question": "a"}\n{oops', ", line 2: this is not JSON."),
        (b"[" * 100_000, ", line 1: this is not JSON."),
        (b"7", ', line 1: a row needs "id" and "question", both strings.'),
        (b'{"id": 1, "question": "a"}', ', line 1: a row needs "id" and "question", both strings.'),
        (b'{"id": "1"}', ', line 1: a row needs "id" and "question", both strings.'),
        (b"\n \n", " holds no question."),
        (b"\xff\xfe", " can't be read as UTF-8 text (UnicodeDecodeError)."),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(InputError) as error:
        read_questions(file)
    assert str(error.value) == f"{file}{sentence}"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"can't be read as UTF-8 text \(FileNotFoundError\)"):
        read_questions(tmp_path / "none")
