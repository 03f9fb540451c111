"""Pages read by one process and by several give the same chunks, even if a worker dies."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
from collections.abc import Callable, Generator

import pytest

from chapterverse.errors import UnreadablePage
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.page_chunker import PageChunker, chunk_all
from chapterverse.model import Page, Source
from fakes.docs import SCOPE, page, prose, section

CHUNKER = PageChunker(SCOPE, "none/0", ChunkSizes())


def read(number: int) -> Page:
    if number % 100 == 7:
        raise UnreadablePage(f"{number}.md is not a text file.")
    return page(f"{number}.md", section("S", prose(number)))


def read_or_die(number: int) -> Page:
    """Kill the process that reads page 500, unless it is the first one."""
    if number == 500 and multiprocessing.parent_process():
        os.kill(os.getpid(), signal.SIGKILL)
    return read(number)


def sources(count: int, how: Callable[[int], Page] = read) -> list[Source]:
    return [Source(f"{i}.md", "", "", functools.partial(how, i)) for i in range(count)]


@pytest.mark.parametrize("how", [read, read_or_die])
def test_several_processes_read_what_one_does(how: Callable[[int], Page]) -> None:
    told: list[tuple[int, int]] = []
    several = list(chunk_all(sources(1200, how), CHUNKER, 2, lambda _stage, done, total: told.append((done, total))))
    assert several == list(chunk_all(sources(1200), CHUNKER, 1, lambda *_: None))
    assert several[7] == ("7.md", "7.md is not a text file.")
    assert told[0] == (0, 1200)
    assert told[-1] == (1200, 1200)


def test_what_cannot_travel_is_read_here() -> None:
    # A function of a function can't be pickled.
    made = sources(1000, lambda number: read(number))
    assert len(list(chunk_all(made, CHUNKER, 2, lambda *_: None))) == 1000


def test_a_reader_that_stops_early_leaves_no_process_behind() -> None:
    found = chunk_all(sources(1200), CHUNKER, 2, lambda *_: None)
    next(found)
    assert isinstance(found, Generator)
    found.close()
    assert multiprocessing.active_children() == []
