"""What a table needs of the database that holds it: statements in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

Row = tuple[Any, ...]


class Statements(Protocol):
    """What a transaction can do."""

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]: ...

    def change(self, sql: str, values: Sequence[object] = ()) -> int:
        """Return how many rows were changed."""
        ...


class Database(Protocol):
    """A database that has the tables, or makes them when it is first written to.

    Attributes:
        skipping: what lets a SELECT pass over the rows that another transaction is about to remove.
    """

    skipping: str

    def run(self, work: Callable[[Statements], T], *, otherwise: T | None = None) -> T:
        """Run statements in one transaction; they may be run again from the start.

        Args:
            otherwise: is returned where there are no tables yet; None makes them.

        Raises:
            RecordsFault: it can't be reached or used; nothing was changed.
        """
        ...
