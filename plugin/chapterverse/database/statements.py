"""The protocols of a database: statements in one transaction, and an error for each failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from chapterverse.errors import ChapterVerseError, ConfigurationError

_T = TypeVar("_T")

Row: TypeAlias = tuple[Any, ...]

#: A template of the error for each failure, by the names below. Its message may have {place}, the file; {detail}, the
#: message of SQLite or of the Postgres server; and {state}, the SQLSTATE.
#:
#:     missing, address                      the package is not installed; the address can't be read
#:     unreachable                           no server answers; also the template of the next ones without their own:
#:     user, tls, database, host, option     the server, or libpq, rejects this part of the address
#:     lost                                  the connection broke off; also the template of the next ones:
#:     commit, busy, slow, text              at the commit; others write; too slow; a text can't be stored
#:     unusable, damaged                     the database rejects the statement; it is not ours, or broken
Faults: TypeAlias = Mapping[str, ChapterVerseError]

_BROADER = {
    **dict.fromkeys(("user", "tls", "database", "host", "option"), "unreachable"),
    **dict.fromkeys(("commit", "busy", "slow", "text"), "lost"),
    "damaged": "unusable",
}


def make_fault(faults: Faults, name: str, **values: object) -> ChapterVerseError:
    """Return the error of a failure."""
    template = faults.get(name) or faults[_BROADER[name]]
    # A new error, because an exception keeps the traceback of its last raise.
    return type(template)(str(template).format(**values))


def connection_faults(subject: str, variable: str, error: type[ChapterVerseError]) -> Faults:
    """Return the errors of a connection that is not made.

    Args:
        subject: what is kept there, in small letters.
        variable: the setting with the address.
        error: the type of the errors, but for those of the address.
    """
    title = subject[:1].upper() + subject[1:]
    return {
        "option": ConfigurationError(f"The address of {subject} has an option that is not accepted: correct it."),
        "user": error(f"{title} refuses the user or the password: correct {variable}."),
        "tls": error(f"{title} can't be reached with the TLS that sslmode asks for: correct one of the two."),
        "database": error(f"The server of {subject} has no such database, or keeps it closed: create it first."),
        "host": error(f"The host of {subject} can't be found: correct {variable}."),
        "unreachable": error(f"{title} can't be reached: see that its server runs, and correct {variable}."),
    }


class Statements(Protocol):
    """The statements of a transaction. A `?` stands for a value.

    Attributes:
        identity: the type of a number that grows and is never used again.
        code_points: the clause by which a text is sorted by its code points, as in Python.
        time: the type of a time to the second.
        time_text: an expression for such a time as ISO 8601 UTC, with {} for the column.
        items: a table of the elements of a JSON array, which is a value.
        item: an expression for one field of such an element, itself an array, with {} for the field's index.
        skipping: the clause by which a SELECT skips rows that another transaction is about to remove.
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
        """Yield the rows of a large result, which is never in memory as a whole. The caller reads to its end."""
        ...

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        """Run a statement and return the number of rows that it changed."""
        ...

    def tables(self, *names: str) -> int:
        """Return the number of these tables that exist."""
        ...

    def lock(self, name: str) -> None:
        """Wait until no other transaction holds the lock of this name, and hold it to the end."""
        ...

    def version(self, name: str) -> int:
        """Return the number of the newest migration in the table `name`, 0 before the first."""
        ...

    def record_migration(self, name: str, number: int) -> None:
        """Record in the table `name` that a migration was applied."""
        ...


#: Returns whether the tables exist; makes them if its second argument is true.
Prepare: TypeAlias = Callable[[Statements, bool], bool]


class Database(Protocol):
    """A database whose tables are made at the first write."""

    def run(self, work: Callable[[Statements], _T], *, otherwise: _T | None = None, reading: bool = False) -> _T:
        """Run statements in one transaction. They may be run again from the start.

        Args:
            otherwise: the result if there are no tables yet; None makes them.
            reading: whether they change nothing, so that they need not wait for a writer.

        Raises:
            ChapterVerseError: one of the `Faults`. Nothing was changed.
        """
        ...
