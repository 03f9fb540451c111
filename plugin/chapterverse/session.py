"""What the command line asks of the service, which is another package and is never imported from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from chapterverse.settings import Settings
from chapterverse.store.protocols import Snapshot

History = list[dict[str, str]] | None


class KeptTurn(Protocol):
    """A question and its answer, as far as they are kept."""

    @property
    def question(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def cited(self) -> Sequence[Any]:
        """Frozen dataclasses with the `title` and `url` of each cited place."""
        ...


class KeptRating(Protocol):
    """A reader's rating of an answer; `reason` and `comment` are empty where none was given, `at` is ISO 8601 UTC."""

    @property
    def turn_id(self) -> str: ...

    @property
    def rating(self) -> str: ...

    @property
    def reason(self) -> str: ...

    @property
    def comment(self) -> str: ...

    @property
    def at(self) -> str: ...

    @property
    def turn(self) -> KeptTurn | None: ...


class KeptThreads(Protocol):
    """Conversations that are kept. Every method raises `ChapterVerseError` where the database can't be used."""

    def forget(self, thread_id: str) -> bool:
        """Remove a thread; return whether there was one."""
        ...

    def expire(self, days: int) -> int:
        """Remove what is older in all threads; return how many turns, summaries and ratings it was."""
        ...

    def rated(self, limit: int) -> Sequence[KeptRating]:
        """Return readers' ratings, newest first."""
        ...


class Session(Protocol):
    """One open service, for its owner: nothing counts against the public's budget.

    Every method but `threads` raises `InputError` for a question out of contract and `IndexFault` where no index can
    be read.
    """

    @property
    def settings(self) -> Settings: ...

    @property
    def threads(self) -> KeptThreads | None:
        """Conversations that are kept; None where none are."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the generation that answers now."""
        ...

    def answer(self, **fields: Any) -> dict[str, Any]:
        """Return a `ChatResponse` as JSON for the fields of a `ChatQuery`; those that are None are left out."""
        ...

    def search(
        self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None
    ) -> list[dict[str, Any]]:
        """Return the rows of `search --json`: chunks unexpanded, best first."""
        ...

    def examine(self, question: str, history: History, top_k: int) -> dict[str, Any]:
        """Return the `results` of `search` and how they came about.

        `evidence` is the strongest found and `floor` the least that is answered from, both 0 to 1; `refused` says that
        nothing reaches it; `seconds` by stage, with a `total` that leaves out the opening of the index; `degraded` why
        not all went as configured, or None; `generation` that of the index.
        """
        ...

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> dict[str, Any]:
        """Return the `features` of every candidate, and by each fusion weight the `urls` of the best ten.

        Raises:
            ProviderError: the embedder failed.
        """
        ...

    def judge(self, question: str, history: History) -> dict[str, Any]:
        """Answer a question and return counts of its citations, sentences and claims, checked anew in the index."""
        ...

    def holds(self, claims: Sequence[Mapping[str, str]]) -> list[bool]:
        """Return for each claim (`text`, `url` and `chunk_id` of a section) whether the check lets it stand."""
        ...
