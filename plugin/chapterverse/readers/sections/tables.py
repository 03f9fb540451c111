"""Reads tables, as GitHub-flavored Markdown of one line a row, and what belongs together in definition lists."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import zip_longest

from chapterverse.model import Block, BlockKind
from chapterverse.readers.html.dom import Child, Node
from chapterverse.readers.sections.inline import Inline

#: A cell may claim to span millions of columns; no real one spans more than these.
_MAX_SPAN = 50

#: Elements of a table that hold cells, and its cells.
ROWS = ("thead", "tbody", "tfoot", "tr")
CELLS = ("td", "th")
#: Blocks that a row of data doesn't hold alone.
_SET_OUT = frozenset("blockquote dl ol pre table ul".split())


def table_block(table: Node, inline: Inline) -> Block | None:
    """Return the table, None if it shows nothing; a table without a header row gets an empty one.

    A cell that spans columns is followed by empty ones; one that spans rows is repeated, so that each row says what it
    is about when rows are cut apart.
    """
    rows = [(is_header, cells) for is_header, cells in _grid(table, inline) if any(cells)]
    if not rows:
        return None
    headed = rows[0][0]
    width = max(len(cells) for _, cells in rows)
    head = "\n".join((_row(rows[0][1] if headed else [], width), _row(["---"] * width, width)))
    body = (_row(cells, width) for _, cells in rows[headed:])
    return Block(BlockKind.TABLE, "\n".join((head, *body)), head=head)


def is_layout(table: Node) -> bool:
    """Return whether a table only sets content out: lines and their numbers, an icon and its box, a single cell."""
    if table.get("role") in ("presentation", "none"):
        return True
    rows = [[cell for cell in cells if cell.text().strip()] for _, cells in _rows_of(table)]
    filled = [cells for cells in rows if cells]
    if len(filled) != 1 or any(cell.name == "th" for cell in filled[0]):
        return False
    return any(inner.name in _SET_OUT for cell in filled[0] for inner in cell.walk())


def holds_code(table: Node) -> bool:
    """Return whether a cell holds lines of code, which one line can't hold."""
    return any(inner.name == "pre" and "\n" in inner.text().strip() for inner in table.walk())


def labeled_cells(table: Node, inline: Inline) -> Iterator[tuple[str, Node]]:
    """Yield the cells of a table in order, each with the header of its column."""
    header: list[str] = []
    for i, (is_header, cells) in enumerate(_rows_of(table)):
        if is_header and i == 0:
            header = [inline.title(cell.children) for cell in cells]
        else:
            yield from zip_longest(header[: len(cells)], cells, fillvalue="")


def _rows_of(table: Node) -> Iterator[tuple[bool, list[Node]]]:
    """Yield the cells of each row of this table, not of one inside it, and whether the row is a header."""
    for child in table.elements():
        rows = [child] if child.name == "tr" else child.elements() if child.name in ROWS else []
        for row in rows:
            cells = [cell for cell in row.elements() if cell.name in CELLS]
            yield child.name == "thead" or all(cell.name == "th" for cell in cells), cells


def outside(node: Node, groups: Collection[str], cells: Collection[str]) -> list[Child]:
    """Return what of a table or a list stands beside its cells: a caption, and misplaced text that browsers show above.

    Args:
        groups: names of the elements that may be around cells.
    """
    found: list[Child] = []
    for child in node.children:
        if isinstance(child, Node) and child.name in groups:
            found += outside(child, groups, cells)
        elif isinstance(child, str) or child.name not in cells:
            found.append(child)
    return found


def definition_groups(node: Node) -> Iterator[tuple[list[Node], list[Node]]]:
    """Yield the terms and the meanings that belong together; pages may put each group into a `div`."""
    terms: list[Node] = []
    meanings: list[Node] = []
    for child in node.elements():
        if (terms and child.name == "div") or (meanings and child.name != "dd"):
            yield terms, meanings
            terms, meanings = [], []
        if child.name == "div":
            yield from definition_groups(child)
        elif child.name in ("dt", "dd"):
            (terms if child.name == "dt" else meanings).append(child)
    if terms or meanings:
        yield terms, meanings


def _grid(table: Node, inline: Inline) -> Iterator[tuple[bool, list[str]]]:
    """Yield whether each row is a header, and the Markdown of its cells, spans filled in."""
    # The rows that a cell still spans, and its text, by column.
    spanning: dict[int, tuple[int, str]] = {}
    for is_header, cells in _rows_of(table):
        line: list[str] = []
        for cell in cells:
            _fill_spanned(line, spanning)
            text = inline.one_line(cell.children).replace("|", "\\|")
            rows, columns = (min(cell.integer(span, 1) or 1, _MAX_SPAN) for span in ("rowspan", "colspan"))
            for cell_text in (text, *[""] * (columns - 1)):
                if rows > 1:
                    spanning[len(line)] = (rows - 1, cell_text)
                line.append(cell_text)
        _fill_spanned(line, spanning)
        yield is_header, line


def _fill_spanned(line: list[str], spanning: dict[int, tuple[int, str]]) -> None:
    """Fill in the cells that reach down from rows above."""
    while len(line) in spanning:
        column = len(line)
        rows, text = spanning.pop(column)
        if rows > 1:
            spanning[column] = (rows - 1, text)
        line.append(text)


def _row(cells: list[str], width: int) -> str:
    return "| " + " | ".join([*cells, *[""] * (width - len(cells))]) + " |"
