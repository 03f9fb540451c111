"""What a table needs of the database that holds it: statements in one transaction, and a sentence for each failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from chapterverse.errors import ChapterVerseError

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]

#: A model of the error for each failure, by the names below. Its sentence may hold {place}, the file; {detail}, what
#: SQLite or the Postgres server says; and {state}, the SQLSTATE.
#:
#:     missing, address                      the package is not installed; the address can't be read
#:     unreachable                           no server answers; where no sentence of their own says more, also:
#:     user, tls, database, host, option     what a server, or libpq, has against the address
#:     lost                                  the connection broke off; where no sentence of their own says more, also:
#:     commit, busy, slow, text              it did so at the commit; others write; too slow; a text can't be stored
#:     unusable, damaged                     it refuses; it is not ours, or broken
Faults: TypeAlias = Mapping[str, ChapterVerseError]

_BROADER = {
    **dict.fromkeys(("user", "tls", "database", "host", "option"), "unreachable"),
    **dict.fromkeys(("commit", "busy", "slow", "text"), "lost"),
    "damaged": "unusable",
}


def fault(faults: Faults, name: str, **values: object) -> ChapterVerseError:
    """Return the error of a failure."""
    model = faults.get(name) or faults[_BROADER[name]]
    # A fresh one, for an exception carries the traceback of where it was raised.
    return type(model)(str(model).format(**values))


class Statements(Protocol):
    """The statements of a transaction. A `?` is the place of a value.

    Attributes:
        identity: type of a number that grows and is never used again.
        code_points: sorts a text by its code points, as Python does.
        time: type of a time to the second.
        time_text: an expression that gives such a time as ISO 8601 UTC, with {} for the column.
        items: a table of the elements of an array in JSON, which is a value.
        item: an expression that gives one field of such an element, itself an array, with {} for the field's place.
        skipping: what lets a SELECT pass over the rows that another transaction is about to remove.
    """

    identity: str
    code_points: str
    time: str
    time_text: str
    items: str
    item: str
    skipping: str

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]: ...

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Yield the rows of a large result, which is never in memory as a whole; the caller reads to its end."""
        ...

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        """Return how many rows were changed."""
        ...

    def tables(self, *names: str) -> int:
        """Return how many of these tables there are."""
        ...

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds this name; hold it to the end."""
        ...

    def version(self, name: str) -> int:
        """Return the number of the newest migration, 0 before the first; `name` is the table that tells it."""
        ...

    def record_migration(self, name: str, number: int) -> None:
        """Note that a migration was applied."""
        ...


#: Returns whether the tables are there; makes them where its second argument says so.
Prepare: TypeAlias = Callable[[Statements, bool], bool]


class Database(Protocol):
    """A place for tables, which makes them when it is first written to."""

    def run(self, work: Callable[[Statements], T], *, otherwise: T | None = None, reading: bool = False) -> T:
        """Run statements in one transaction; they may be run again from the start.

        Args:
            otherwise: is returned where there are no tables yet; None makes them.
            reading: whether they change nothing: another writer is not waited for then.

        Raises:
            ChapterVerseError: one of its `Faults`; nothing was changed.
        """
        ...
