"""Tables as Markdown."""

from __future__ import annotations

import pytest

from chapterverse.model import Block, BlockKind
from chapterverse.readers.html.parser import parse_html
from chapterverse.readers.sections.inline import Inline
from chapterverse.readers.sections.tables import table_block


def read(html: str) -> Block | None:
    return table_block(parse_html(f"<table>{html}</table>").elements()[0], Inline())


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        (
            "<thead><tr><th>A<th>B</thead><tbody><tr><td>1<td>x|y</tbody>",
            ["| A | B |", "| --- | --- |", "| 1 | x\\|y |"],
        ),
        ("<tr><th>A<tr><td><code>a|b</code>", ["| A |", "| --- |", "| `a\\|b` |"]),
        ("<tr><td>1<td>2", ["|  |  |", "| --- | --- |", "| 1 | 2 |"]),
        ("<tr><th>Name<td>x<tr><th>Age<td>y", ["|  |  |", "| --- | --- |", "| Name | x |", "| Age | y |"]),
        ("<tr><th>A<th>B<tr><td colspan=2>wide", ["| A | B |", "| --- | --- |", "| wide |  |"]),
        ("<tr><th>A<th>B<tr><td rowspan=2>a<td>1<tr><td>2", ["| A | B |", "| --- | --- |", "| a | 1 |", "| a | 2 |"]),
        ("<tr><th>A<tr><td>1<td>2", ["| A |  |", "| --- | --- |", "| 1 | 2 |"]),
        ("<tr><th>A<tr><td>a<br>b<p>c</p>", ["| A |", "| --- |", "| a b c |"]),
        ("<tr><th>A<tr><td><table><tr><td>in<td>ner</table>", ["| A |", "| --- |", "| in ner |"]),
        ("<tr><td></td></tr><tr><th>A<tr><td>1", ["| A |", "| --- |", "| 1 |"]),
    ],
)
def test_rows(html: str, expected: list[str]) -> None:
    block = read(html)
    assert block is not None
    assert block.text.split("\n") == expected
    assert block.head == "\n".join(expected[:2])
    assert block.kind is BlockKind.TABLE


def test_an_empty_table_is_nothing() -> None:
    assert read("<tr><td> </td></tr>") is None


def test_spans_without_end_are_bounded() -> None:
    block = read("<tr><td colspan=99999999 rowspan=-1>x<tr><td rowspan=abc>y")
    assert block is not None
    assert len(block.text) < 2000
