"""Groups the headings and blocks of a page into sections, and titles a page by its path.

A reader yields *items* in document order: blocks, headings, footnote references, and the borders of *scopes*. A scope
is an element that ends (a tab, an admonition, a list item): a heading inside it rules only what follows inside it, and
what stands behind the scope belongs to the heading that stood before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TypeAlias

from chapterverse.model import Block, Image, Section
from chapterverse.readers.html.visible_text import collapse, strip_invisible


@dataclass(frozen=True, slots=True)
class Heading:
    """A rendered heading.

    Attributes:
        text: "" where it shows nothing that could be read, as an image without a description: its section has the name
            of the one above.
        level: 1 to 6; 0 for one that ranks right below the heading of the scope it stands in.
        excluded: its author took it and all below it out of search.
    """

    text: str
    level: int
    anchor: str | None = None
    excluded: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """A reference to the footnote of that id; `home` marks where the page itself prints the footnote."""

    id: str
    home: bool = False


class Border(Enum):
    """Where a scope begins and ends."""

    ENTER = auto()
    LEAVE = auto()


Item: TypeAlias = Block | Heading | Note | Image | Border

#: Most images of a section; the others of a gallery are left out.
_MAX_IMAGES = 50


@dataclass(slots=True)
class _Draft:
    heading: Heading
    path: tuple[str, ...]
    blocks: list[Block] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    images: list[Image] = field(default_factory=list)


@dataclass(slots=True)
class _Position:
    """Where in the outline the next item goes: the section, and the open headings above it by rank."""

    draft: _Draft
    ranks: tuple[tuple[float, tuple[str, ...]], ...]
    excluded_at: float = math.inf
    base: float = 0


def title_from_path(file_path: str) -> str:
    """Return a title made from a path: "guide/first-steps.md" is "First steps", "guide/index.md" "Guide"."""
    folders, _, name = file_path.rpartition("/")
    stem = name.rpartition(".")[0] or name
    if stem.lower() in ("index", "readme") and folders:
        stem = folders.rpartition("/")[2]
    words = collapse(re.sub(r"[-_]+", " ", stem))
    return strip_invisible(words[:1].upper() + words[1:]) or file_path


def build_sections(items: Iterable[Item], title: str, notes: Mapping[str, Block]) -> tuple[Section, ...]:
    """Return the sections of a page in the order of their headings.

    Args:
        title: first in every heading path; a first-level heading that says the same isn't repeated.
        notes: footnotes by id; each goes to the end of every section that refers to it, or stays where it is printed.
    """
    outline = _Outline(title)
    for item in items:
        outline.add(item)
    return outline.sections(notes)


class _Outline:
    def __init__(self, title: str) -> None:
        self.title = title
        preamble = _Draft(Heading("", 0), (title,))
        self.drafts = [preamble]
        self.position = _Position(preamble, ())
        self.scopes: list[_Position] = []
        self.homes: list[tuple[str, _Draft]] = []
        self.referred: set[str] = set()

    def add(self, item: Item) -> None:
        if item is Border.ENTER:
            self._enter()
        elif item is Border.LEAVE:
            self.position = self.scopes.pop()
        elif isinstance(item, Heading):
            self._open(item)
        elif isinstance(item, Note):
            self._note(item)
        elif self.position.excluded_at < math.inf:
            return
        elif isinstance(item, Image):
            if len(self.position.draft.images) < _MAX_IMAGES:
                self.position.draft.images.append(item)
        else:
            self.position.draft.blocks.append(item)

    def sections(self, notes: Mapping[str, Block]) -> tuple[Section, ...]:
        for note, draft in self.homes:
            if note not in self.referred:
                draft.notes[note] = None
        return tuple(
            _section(draft, notes) for draft in self.drafts if draft.heading.text or draft.blocks or draft.notes
        )

    def _enter(self) -> None:
        position = self.position
        self.scopes.append(position)
        rank = position.ranks[-1][0] if position.ranks else 0
        self.position = _Position(position.draft, position.ranks, position.excluded_at, rank)

    def _note(self, note: Note) -> None:
        if note.home:
            self.homes.append((note.id, self.position.draft))
            return
        # A footnote of an excluded section is excluded with it.
        self.referred.add(note.id)
        if self.position.excluded_at == math.inf:
            self.position.draft.notes[note.id] = None

    def _open(self, heading: Heading) -> None:
        position = self.position
        rank = heading.level or position.base + 1
        if rank > position.excluded_at:
            return
        position.excluded_at = rank if heading.excluded else math.inf
        ranks = tuple(r for r in position.ranks if r[0] < rank)
        above = ranks[-1][1] if ranks else (self.title,)
        repeats = above == (self.title,) and heading.text == collapse(self.title)
        path = above if repeats or not heading.text else (*above, heading.text)
        position.ranks = (*ranks, (rank, path))
        if not heading.excluded:
            text = heading.text or above[-1] or heading.anchor or ""
            position.draft = _Draft(Heading(text, min(6, int(rank)), heading.anchor), path)
            self.drafts.append(position.draft)


def _section(draft: _Draft, notes: Mapping[str, Block]) -> Section:
    blocks = (*draft.blocks, *(notes[note] for note in draft.notes if note in notes))
    heading = draft.heading
    images = tuple(dict.fromkeys(draft.images))
    return Section(heading.text or None, heading.level, heading.anchor, draft.path, blocks, images=images)
