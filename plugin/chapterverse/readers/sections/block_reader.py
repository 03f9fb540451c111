"""Converts HTML elements to blocks of Markdown and headings with their anchors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TypeAlias

from chapterverse.model import Block, BlockKind, Image
from chapterverse.readers.html.dom import HEADINGS, Child, Node, is_excluded
from chapterverse.readers.sections import containers, tables
from chapterverse.readers.sections.containers import (
    definition,
    footnote,
    headline,
    list_item,
    list_marker,
    quote,
    titled_block,
)
from chapterverse.readers.sections.inline import Inline, is_permalink, is_tool, own_anchor
from chapterverse.readers.sections.labels import footnote_labels
from chapterverse.readers.sections.linked_inline import LinkedInline
from chapterverse.readers.sections.outline import Border, Heading, Item, Note

#: Containers nested deeper keep their text and lose their form; each level would be written out in every line.
_MAX_NESTING = 12

#: Characters of a table's caption that name it.
_MAX_CAPTION_CHARS = 500

#: Terms of a group that each own its definition; of more, only the last does.
_MAX_TERMS = 16

Wrap: TypeAlias = Callable[[tuple[Block, ...]], Block | None]


class BlockReader:
    """Reads one tree: `items` in document order, and `notes`, its footnotes by id.

    Args:
        footnotes: the element of each footnote by id (see `find_footnotes`).
        anchors: whether the page has an id.
        tabs: the label of each tab panel (see `labels.move_tabs`).
        verbatim: its paragraphs as their Markdown source has them, by index (see `markdown.verbatim`).
        base: address that relative links start from, for links that stay links (see `linked_inline`); "" for the index.
    """

    def __init__(
        self,
        root: Node,
        footnotes: Mapping[str, Node],
        anchors: Callable[[str], bool],
        tabs: Mapping[Node, str],
        verbatim: Sequence[str] = (),
        base: str = "",
    ) -> None:
        self._footnotes = footnotes
        self._anchors = anchors
        self._inline = LinkedInline(footnotes, base) if base else Inline(footnotes, verbatim)
        self._labels = footnote_labels(root, footnotes)
        self._tabs = dict(tabs)
        self._nesting = 0
        # The id of an empty place right before what comes next.
        self._place = ""
        # What elements around a code say of it.
        self._code_title = self._language = ""
        self.items: list[Item] = []
        self._flow(root.children, self.items)
        self.notes = {note: self._footnote(note, node) for note, node in footnotes.items()}

    def _flow(self, children: Iterable[Child], out: list[Item]) -> None:
        """Append the content of `children`: runs of inline content as paragraphs, blocks by their kind."""
        run: list[Child] = []
        for child in children:
            if isinstance(child, str):
                # Most text between blocks is blank.
                if run or not child.isspace():
                    run.append(child)
                continue
            if not child.block:
                run.append(child)
                continue
            if run or self._inline.notes or self._inline.images:
                self._paragraph(run, out)
                run = []
            if child in self._tabs:
                self._panel(child, out)
            else:
                _HANDLERS.get(child.name, BlockReader._group)(self, child, out)
        self._paragraph(run, out)

    def _paragraph(self, run: list[Child], out: list[Item]) -> None:
        if run and not all(map(is_tool, run)):
            text = self._inline.markdown(run)
            if text:
                out.append(Block(BlockKind.PARAGRAPH, text))
                self._place = ""
            else:
                anchors = (own_anchor(child) for child in run if isinstance(child, Node))
                self._place = next(filter(None, anchors), self._place)
        self._take_references(out)

    def _take_references(self, out: list[Item]) -> None:
        """Append the footnote references and images that the inline content before held."""
        if self._inline.notes or self._inline.images:
            out += (*map(Note, self._inline.notes), *self._inline.images)
            self._inline.notes, self._inline.images = [], []

    # Elements that mean something by their name

    def _heading(self, node: Node, out: list[Item]) -> None:
        text, anchor = self._inline.heading(node.children), self._anchor(node)
        if text or anchor:
            out.append(Heading(text, int(node.name[1]), anchor, is_excluded(node)))
        self._take_references(out)

    def _anchor(self, node: Node) -> str | None:
        """Return the id that leads to a heading: its own, one in it, else that of an empty place before it."""
        place, self._place = self._place, ""
        node_id = node.get("id")
        if node_id:
            return node_id
        for inner in node.walk():
            linked = inner.target_id if is_permalink(inner) else own_anchor(inner)
            if linked and self._anchors(linked):
                return linked
        return place or None

    def _section(self, node: Node, out: list[Item]) -> None:
        if self._named_section(node, out):
            return
        items: list[Item] = []
        name = node.get("id")
        if node.headed and name:
            self._place = ""
        self._group(node, items)
        # Sphinx writes the id on the section, not on its heading.
        _name_first_heading(items, name)
        # A section that ends with its heading is a header: what follows belongs to that heading.
        is_scope = node.headed and not (items and isinstance(items[-1], Heading))
        out.extend((Border.ENTER, *items, Border.LEAVE) if is_scope else items)

    def _named_section(self, node: Node, out: list[Item]) -> bool:
        """Append a section that a permalink in it names, as pdoc writes them; return whether there is one."""
        name = node.get("id")
        if not name or len(node.children) < 2:
            return False
        at = next((i for i, c in enumerate(node.children) if isinstance(c, Node) and is_permalink(c)), 0)
        link = node.children[at] if at else ""
        # A heading on either side says what the section is.
        if isinstance(link, str) or link.target_id != name or any(map(_is_headed, node.children[: at + 2])):
            return False
        out += (Border.ENTER, Heading(self._inline.heading(node.children[:at]), 0, name))
        self._flow(node.children[at + 1 :], out)
        out.append(Border.LEAVE)
        return True

    def _block(self, node: Node, out: list[Item]) -> None:
        """Read a block that may be only there to be linked to, or to hold what its id leads to."""
        if not node.raw:
            # Most paragraphs say nothing by a class or an id.
            self._flow(node.children, out)
            return
        if name := node.get("id"):
            if self._named_section(node, out):
                return
            first = next((child for child in node.children if not isinstance(child, str) or not child.isspace()), None)
            if first is None or (isinstance(first, Node) and first.name in HEADINGS):
                self._place = name
        self._group(node, out)

    def _pre(self, node: Node, out: list[Item]) -> None:
        marks = containers.line_marks(node)
        text = containers.code_text(node, marks)
        if text.strip():
            language = "diff" if marks else containers.pre_language(node) or self._language
            out.append(containers.fence(text, language, self._code_title))
            self._code_title = self._place = ""

    def _table(self, node: Node, out: list[Item]) -> None:
        if node.headed or tables.is_layout(node):
            self._flow(node.children, out)
            return
        self._flow(tables.outside(node, tables.ROWS, tables.CELLS), out)
        if tables.holds_code(node):
            for label, cell in tables.labeled_cells(node, self._inline):
                self._contain(cell.children, out, partial(titled_block, BlockKind.TAB, headline("", label)))
            return
        caption = next((child for child in node.elements() if child.name == "caption"), None)
        block = tables.table_block(node, self._inline)
        if block and caption:
            block = replace(block, caption=self._inline.one_line(caption.children)[:_MAX_CAPTION_CHARS])
        _append(out, block)
        self._place = ""
        self._take_references(out)

    def _list(self, node: Node, out: list[Item]) -> None:
        number = node.integer("start", 1)
        for child in node.children:
            if isinstance(child, str) or child.name != "li":
                self._flow([child], out)
                continue
            if child.get("id") in self._footnotes:
                self._group(child, out)
                continue
            number = child.integer("value", number)
            marker = list_marker(child, number if node.name == "ol" else None)
            self._contain(child.children, out, partial(list_item, marker), repeat=False)
            number += 1

    def _quote(self, node: Node, out: list[Item]) -> None:
        self._contain(node.children, out, quote)

    def _definitions(self, node: Node, out: list[Item]) -> None:
        items: list[Item] = []
        self._flow(tables.outside(node, ("div",), ("dt", "dd")), items)
        for terms, meanings in tables.definition_groups(node):
            contents = [self._collect(meaning.children) for meaning in meanings]
            content = [item for content in contents for item in content]
            if any(term.headed or _is_documented_name(term) for term in terms):
                self._documented_names(terms, content, items)
                continue
            names = [self._inline.title(term.children) for term in terms]
            self._take_references(items)
            headed = any(map(_is_heading, content))
            _append(items, definition(names, () if headed else _blocks(content)))
            items += [item for item in content if headed or isinstance(item, Note | Image)]
        headed = any(map(_is_heading, items))
        out.extend((Border.ENTER, *items, Border.LEAVE) if headed else items)

    def _documented_names(self, terms: list[Node], content: list[Item], out: list[Item]) -> None:
        """Append the names of a reference, each above what it means."""
        # A term that nothing leads to, as of a further signature, stands with the one above.
        owners = [term for term in terms if term.headed or term.get("id")] or terms
        is_shared = len(owners) <= _MAX_TERMS and not any(map(_is_heading, content))
        for term, after in zip_longest(terms, terms[1:]):
            if term.headed:
                self._flow(term.children, out)
            elif term in owners and _is_documented_name(term):
                out.append(Heading(self._inline.heading(term.children), 0, term.get("id")))
            else:
                self._paragraph(term.children, out)
            if after is None or (is_shared and after in owners):
                out += content

    def _link(self, node: Node, out: list[Item]) -> None:
        """Append the content of a link around blocks, such as a card, and then its address."""
        self._group(node, out)
        if isinstance(self._inline, LinkedInline) and (address := self._inline.address(node)):
            out.append(Block(BlockKind.PARAGRAPH, f"<{address}>"))

    # Elements that mean something by their class

    def _group(self, node: Node, out: list[Item]) -> None:
        if containers.is_callout(node):
            self._callout(node, out)
        elif node.get("id") in self._footnotes:
            # The page prints it here.
            out.append(Note(node.get("id") or "", home=True))
        elif containers.is_wrapper(node):
            self._code(node, out)
        else:
            self._flow(node.children, out)

    def _callout(self, node: Node, out: list[Item]) -> None:
        title = containers.title_of(node)
        text = self._inline.title(title.children) if title and not title.headed else ""
        if containers.is_source_dump(node, text):
            return
        children = [c for c in node.children if not text or c is not title]
        head = headline(containers.kind_of(node), text)
        self._contain(children, out, partial(titled_block, BlockKind.ADMONITION, head))

    def _panel(self, node: Node, out: list[Item]) -> None:
        label = self._tabs.pop(node)
        node.children = node.children[2:] if label else node.children
        self._contain([node], out, partial(titled_block, BlockKind.TAB, headline("", label)))

    def _code(self, node: Node, out: list[Item]) -> None:
        title = containers.take_title(node)
        self._code_title = ": ".join(filter(None, (self._code_title, title)))
        before, at = self._language, len(out)
        self._language = containers.code_language(node) or before
        self._flow(node.children, out)
        self._language = before
        # No code took the title, so it was text.
        if title and self._code_title:
            out.insert(at, Block(BlockKind.PARAGRAPH, self._code_title))
            self._code_title = ""

    def _footnote(self, note: str, node: Node) -> Block:
        labels = {c for c in node.elements() if any(name.endswith("label") for name in c.classes)}
        blocks = _blocks(self._collect(c for c in node.children if isinstance(c, str) or c not in labels))
        # Pages for agents keep the marks, by which Markdown finds the note.
        label = self._labels.get(note, note) if isinstance(self._inline, LinkedInline) else ""
        return footnote(label, blocks)

    # Containers and their content

    def _collect(self, children: Iterable[Child]) -> list[Item]:
        items: list[Item] = []
        self._nesting += 1
        self._flow(children, items)
        self._nesting -= 1
        return items

    def _contain(self, children: Iterable[Child], out: list[Item], wrap: Wrap, *, repeat: bool = True) -> None:
        """Append the content wrapped into one block; where headings cut it, each piece between them.

        Args:
            repeat: whether pieces behind a heading are wrapped like the first; else they stand as they are.
        """
        items = self._collect(children)
        if not any(map(_is_heading, items)):
            self._wrap(items, out, wrap)
            return
        out.append(Border.ENTER)
        if not _blocks(items):
            _append(out, wrap(()))
        piece: list[Item] = []
        for item in (*items, Border.LEAVE):
            if isinstance(item, Block | Note | Image):
                piece.append(item)
                continue
            if piece:
                self._wrap(piece, out, wrap)
                piece = []
            if isinstance(item, Heading) and not repeat:
                wrap = _unwrapped
            out.append(item)

    def _wrap(self, items: list[Item], out: list[Item], wrap: Wrap) -> None:
        blocks = _blocks(items)
        if self._nesting >= _MAX_NESTING or wrap is _unwrapped:
            _append(out, wrap(()))
            out.extend(blocks)
        else:
            _append(out, wrap(blocks))
        out.extend(item for item in items if isinstance(item, Note | Image))


def _is_headed(child: Child) -> bool:
    return isinstance(child, Node) and child.headed


def _is_heading(item: Item) -> bool:
    return isinstance(item, Heading)


def _name_first_heading(items: list[Item], name: str | None) -> None:
    """Give the first heading of a section the section's id, unless it has one or is that of an inner section."""
    at = next((i for i, item in enumerate(items) if isinstance(item, Heading | Border)), None)
    first = items[at] if at is not None else None
    if name and at is not None and isinstance(first, Heading):
        items[at] = replace(first, anchor=first.anchor or name)


def _blocks(items: Iterable[Item]) -> tuple[Block, ...]:
    return tuple(item for item in items if isinstance(item, Block))


def _unwrapped(_blocks: tuple[Block, ...]) -> Block | None:
    return None


def _append(out: list[Item], block: Block | None) -> None:
    if block:
        out.append(block)


def _is_documented_name(term: Node) -> bool:
    """Return whether a term is a name of code that links lead to, as in a generated reference."""
    return "sig" in term.classes or (bool(term.get("id")) and any(map(is_permalink, term.walk())))


_HANDLERS: dict[str, Callable[[BlockReader, Node, list[Item]], None]] = {
    **dict.fromkeys(HEADINGS, BlockReader._heading),
    **dict.fromkeys(("section", "article"), BlockReader._section),
    **dict.fromkeys(("p", "div"), BlockReader._block),
    **dict.fromkeys(("ul", "ol", "menu", "dir"), BlockReader._list),
    "a": BlockReader._link,
    "blockquote": BlockReader._quote,
    "dl": BlockReader._definitions,
    "pre": BlockReader._pre,
    "table": BlockReader._table,
}
