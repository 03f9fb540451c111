"""What a command says on standard error: all of it, only errors after `-q`, and details too after `-v`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import IntEnum
from typing import Annotated, Any

import typer

from chapterverse import progress


class Level(IntEnum):
    """How much is said."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_level = Level.NORMAL


def choose(level: Level) -> None:
    global _level
    _level = level


def _choice(level: Level, short: str, text: str) -> Any:
    def take(value: bool) -> None:
        if value:
            choose(level)

    name = f"--{level.name.lower()}"
    return typer.Option(short, name, help=text, callback=take, expose_value=False, is_eager=True)


#: Options of every command, before its name and after it. Their callbacks take the values.
Quiet = Annotated[bool, _choice(Level.QUIET, "-q", "Print only results and errors.")]
Verbose = Annotated[bool, _choice(Level.VERBOSE, "-v", "Print details too, such as where each setting is from.")]


def error(sentence: object) -> None:
    typer.echo(f"Error: {sentence}", err=True)


def warn(sentence: object) -> None:
    note(f"Warning: {sentence}")


def note(sentence: object) -> None:
    if _level >= Level.NORMAL:
        typer.echo(sentence, err=True)


def detail(sentence: object) -> None:
    if _level >= Level.VERBOSE:
        typer.echo(sentence, err=True)


@contextlib.contextmanager
def progress_bar() -> Iterator[progress.Progress]:
    """Yield a progress callback that draws bars on a terminal, if anything is to be said."""
    if _level < Level.NORMAL:
        yield lambda *_: None
        return
    with progress.bar() as report:
        yield report


class _Log:
    """The messages of an index run, for what writes them to a generator's log too."""

    info, warning = staticmethod(note), staticmethod(warn)

    def debug(self, message: object, *, exc_info: bool) -> None:
        """Leave out what only the log of a generator written in Python has room for."""


LOG = _Log()
