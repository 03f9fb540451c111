from __future__ import annotations

import json
from pathlib import Path

import pytest

from chapterverse.errors import InputError
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_judged, read_questions


def written(tmp_path: Path, content: bytes) -> Path:
    file = tmp_path / "q.jsonl"
    file.write_bytes(content)
    return file


def test_rows_are_read_in_order_and_other_keys_are_free(tmp_path: Path) -> None:
    rows = b'{"id": "b", "question": "Why?", "more": 1}\r\n\n{"id": "a", "question": "\xe2\x80\xa8", "history": [1]}'
    file = written(tmp_path, rows)
    assert read_questions(file) == [
        QuestionRow("b", "Why?", None, f"{file}, line 1"),
        QuestionRow("a", "\u2028", [1], f"{file}, line 3"),
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b'{"id": "1", "question": "a"}\n{oops', ", line 2: this is not JSON."),
        (b"[" * 100_000, ", line 1: this is not JSON."),
        (b"7", ', line 1: a row needs "id" and "question", both strings.'),
        (b'{"id": 1, "question": "a"}', ', line 1: a row needs "id" and "question", both strings.'),
        (b'{"id": "1"}', ', line 1: a row needs "id" and "question", both strings.'),
        (b'{"id": "1", "question": "\\ud800"}', ", line 1: this is not valid Unicode."),
        (b'{"id": "\\udfff", "question": "a"}', ", line 1: this is not valid Unicode."),
        (b"\n \n", " holds no question."),
        (b'{"groups": [{"examples": []}]}', " holds no question."),
        (b'{"groups": [{"examples": ["\\ud800"]}]}', r": '\ud800': this is not valid Unicode."),
        (b"\xff\xfe", " is no text in UTF-8: save it as such."),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, content: bytes, sentence: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(InputError) as error:
        read_questions(file)
    assert str(error.value) == f"{file}{sentence}"


def test_a_report_is_a_file_of_the_questions_that_it_shows(tmp_path: Path) -> None:
    examples = [["How hot?", "Which cup?"], ["How hot?"]]
    report = {"first": "…", "groups": [{"title": "x", "examples": some} for some in examples]}
    file = written(tmp_path, json.dumps(report, indent=2).encode())
    assert [(row.id, row.question) for row in read_questions(file)] == [(q, q) for q in examples[0]]
    with pytest.raises(InputError, match=r"'How hot\?': a row needs an address"):
        read_judged(file)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"can't be read \(No such file or directory\)"):
        read_questions(tmp_path / "none")


def test_a_judged_row_says_what_answers_it(tmp_path: Path) -> None:
    rows = (
        b'{"id": "a", "question": "A?", "expected": ["x/#y", " z/ ", "x/#y"], "history": [1]}\n'
        b'{"id": "b", "question": "B?", "answerable": false}\n'
        b'{"id": "c", "question": "C?", "answerable": false, "expected": []}\n'
        b'{"id": "d", "question": "D?", "answerable": true, "expected": ["x/"], "more": 1}'
    )
    file = written(tmp_path, rows)
    assert read_judged(file) == [
        QuestionRow("a", "A?", [1], f"{file}, line 1", ("x/#y", "z/"), True),
        QuestionRow("b", "B?", None, f"{file}, line 2", (), False),
        QuestionRow("c", "C?", None, f"{file}, line 3", (), False),
        QuestionRow("d", "D?", None, f"{file}, line 4", ("x/",), True),
    ]


A = b'{"id": "a", "question": "A?", "expected": ["x/"]}'


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (b'{"id": "b", "question": "B?"}', 'a row needs an address in "expected", or "answerable": false.'),
        (
            b'{"id": "b", "question": "B?", "expected": []}',
            'a row needs an address in "expected", or "answerable": false.',
        ),
        (b'{"id": "b", "question": "B?", "expected": "x/"}', '"expected" must be a list of addresses.'),
        (b'{"id": "b", "question": "B?", "expected": [1]}', '"expected" must be a list of addresses.'),
        (b'{"id": "b", "question": "B?", "expected": [""]}', '"expected" must be a list of addresses.'),
        (b'{"id": "b", "question": "B?", "expected": null}', '"expected" must be a list of addresses.'),
        (b'{"id": "b", "question": "B?", "expected": ["\\ud800"]}', "this is not valid Unicode."),
        (b'{"id": "b", "question": "B?", "answerable": 0}', '"answerable" must be true or false.'),
        (b'{"id": "b", "question": "B?", "answerable": null}', '"answerable" must be true or false.'),
        (
            b'{"id": "b", "question": "B?", "answerable": false, "expected": ["x/"]}',
            'a row that is not answerable has nothing in "expected".',
        ),
        (A, "the id 'a' is taken already, by {file}, line 1."),
        (b"{oops", "this is not JSON."),
    ],
)
def test_a_row_that_can_not_be_judged_is_named_by_its_line(tmp_path: Path, row: bytes, sentence: str) -> None:
    file = written(tmp_path, A + b"\n\n" + row)
    with pytest.raises(InputError) as error:
        read_judged(file)
    assert str(error.value) == f"{file}, line 3: {sentence.format(file=file)}"


def test_a_judged_row_may_hold_what_its_answer_must_hold(tmp_path: Path) -> None:
    rows = b'{"id": "a", "question": "A?", "expected": ["x/"], "nuggets": ["80", ["port", "/sockets?/"]]}'
    number, either = read_judged(written(tmp_path, rows))[0].nuggets
    assert (number.stands_in("80 degrees"), number.stands_in("8080")) == (True, False)
    assert either.stands_in("two sockets")


@pytest.mark.parametrize(
    ("nuggets", "sentence"),
    [
        ('"nuggets": 7', ': "nuggets" must be a list.'),
        ('"nuggets": ["/[/"]', ": the nugget '/[/' is no regular expression."),
        ('"nuggets": [""]', ': each of "nuggets" must be a text or a list of texts, and none may be empty.'),
    ],
)
def test_bad_nuggets_are_named_by_their_line(tmp_path: Path, nuggets: str, sentence: str) -> None:
    file = written(tmp_path, f'{{"id": "a", "question": "A?", "expected": ["x/"], {nuggets}}}'.encode())
    with pytest.raises(InputError) as error:
        read_judged(file)
    assert str(error.value) == f"{file}, line 1{sentence}"


def test_what_is_not_answered_holds_nothing(tmp_path: Path) -> None:
    file = written(tmp_path, b'{"id": "a", "question": "A?", "answerable": false, "nuggets": ["x"]}')
    with pytest.raises(InputError, match=r'line 1: a row that is not answerable has nothing in "nuggets"\.'):
        read_judged(file)
