"""Changes of a site between two deployments: the site before, the site after, and the model of each."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from chapterverse.embedding import Vector
from chapterverse.model import Page, Source
from fakes.docs import CountingEmbedder, page, prose, section, source

Pages = dict[str, Page]


@dataclass(frozen=True, slots=True)
class State:
    """A site at one moment, small enough to be sent to another process.

    Attributes:
        space: the vector space of its embedder.
    """

    pages: tuple[Page, ...]
    space: str = "counting"

    def sources(self) -> list[Source]:
        return [source(p) for p in self.pages]

    def embedder(self, bill: Path) -> Billed:
        return Billed(self.space, bill)


class Billed(CountingEmbedder):
    """An embedder that writes down what it was asked for, so that it is known also of those who were killed."""

    def __init__(self, space: str, bill: Path) -> None:
        super().__init__(space)
        self._bill = bill

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        with self._bill.open("a", encoding="utf-8") as bill:
            bill.writelines(f"{json.dumps(text)}\n" for text in texts)
        return super().embed_documents(texts)


def written(path: str, *seeds: object) -> Page:
    """Return a page with a section of prose for each seed."""
    return page(path, *(section(f"S{i}", prose(seed, 25)) for i, seed in enumerate(seeds)))


def _site(**pages: tuple[object, ...]) -> Pages:
    paths = {name.replace("__", "/") + ".md": seeds for name, seeds in pages.items()}
    return {path: written(path, *seeds) for path, seeds in paths.items()}


def _edit(pages: Pages) -> Pages:
    return {**pages, "guide/a.md": written("guide/a.md", "new", *"12"), "more.md": written("more.md", "more")}


def _rename(pages: Pages) -> Pages:
    moved = {path.replace("guide/", "manual/"): made for path, made in pages.items()}
    return {
        path: replace(made, file_path=path, url=made.url.replace("guide/", "manual/")) for path, made in moved.items()
    }


def _delete(pages: Pages) -> Pages:
    return {path: made for path, made in pages.items() if path != "guide/b.md"}


_BEFORE = _site(index=("welcome",), guide__a=tuple("12"), guide__b=tuple("34"))
_CHANGES: dict[str, Callable[[Pages], Pages]] = {"edit": _edit, "rename": _rename, "delete": _delete}


@dataclass(frozen=True, slots=True)
class Scenario:
    """One deploy: the states that were published before it, oldest first, and the one that it publishes."""

    name: str
    history: tuple[State, ...]
    after: State


def _state(pages: Pages, space: str = "counting") -> State:
    return State(tuple(pages.values()), space)


#: Two generations, so that the deploy has an old one to retire.
_HISTORY = (_state(_site(index=("hello",))), _state(_BEFORE))

SCENARIOS = {
    made.name: made
    for made in (
        Scenario("first build", (), _state(_BEFORE)),
        *(Scenario(name, _HISTORY, _state(change(_BEFORE))) for name, change in _CHANGES.items()),
        Scenario("another embedder", _HISTORY, _state(_BEFORE, "another")),
    )
}
