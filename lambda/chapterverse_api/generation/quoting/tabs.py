"""Finds the tabs of a section, and the one that a reader's context names: a system, a package manager, an edition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from chapterverse_api.generation.quoting.blocks import QuotableBlock

#: A tab's label as readers of pages write it, on a line of its own.
LABEL = re.compile(r"^\*\*([^*\n]+)\*\*$", re.MULTILINE)
#: What stands between the names of one label: "macOS / Linux".
_BETWEEN = re.compile(r"[/,&|]| and | or ")
_WORD = re.compile(r"\w+(?:[.-]\w+)*[+#]*")


class TabNames:
    """The names in a reader's context."""

    def __init__(self, context: str) -> None:
        self._places: dict[str, int] = {}
        for place, word in enumerate(_words(context)):
            self._places.setdefault(word, place)

    def choose(self, labels: Iterable[str]) -> str | None:
        """Return the label that is named first; None if there are fewer than two, or none is named."""
        offered = list(dict.fromkeys(labels))
        places = {label: place for label in offered if (place := self._place(label)) is not None}
        return min(places, key=places.__getitem__) if len(offered) > 1 and places else None

    def _place(self, label: str) -> int | None:
        """Return where the context names a label with all words of one of its names; None if it does not."""
        names = (_words(name) for name in _BETWEEN.split(label))
        places_by_name = [[self._places.get(word, -1) for word in name] for name in names if name]
        return min((min(places) for places in places_by_name if min(places) >= 0), default=None)


def read_tabs(text: str, blocks: Sequence[QuotableBlock]) -> list[str | None]:
    """Return for each block of a section the label of the tab that it is in; None outside of tabs.

    Text does not say where the last tab ends, so it is taken to have no more blocks than the longest of the others.
    """
    tabs: list[str | None] = []
    starts: list[int] = []
    for at, block in enumerate(blocks):
        label = LABEL.fullmatch(text[block.start : block.end].strip()) if block.label else None
        starts += [at] if label else []
        tabs.append(label[1] if label else tabs[-1] if tabs else None)
    longest = max((end - start for start, end in pairwise(starts)), default=0)
    return [tab if not starts[1:] or at < starts[-1] + longest else None for at, tab in enumerate(tabs)]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
