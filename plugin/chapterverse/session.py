"""The service's interface for the command line. The service is another package, which is never imported from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Protocol, TypeAlias

from chapterverse.settings import Settings
from chapterverse.store.protocols import Snapshot

History = list[dict[str, str]] | None


class KeptTurn(Protocol):
    """The stored part of a question and its answer."""

    @property
    def question(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def cited(self) -> Sequence[Any]:
        """Frozen dataclasses with the `title` and `url` of each cited place."""
        ...


class KeptRating(Protocol):
    """A reader's rating of an answer. `reason` and `comment` may be empty; `at` is ISO 8601 UTC."""

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
    """The stored conversations. Every method raises `ChapterVerseError` if the database can't be used."""

    def forget(self, thread_id: str) -> bool:
        """Remove a thread; return whether there was one."""
        ...

    def expire(self, days: int) -> int:
        """Remove older rows of all threads; return the number of removed turns, summaries and ratings."""
        ...

    def matched_entries(self) -> frozenset[str]:
        """Return the ids of the FAQ entries that answered in the last 30 days; see `knowledge.questions.entry_id`."""
        ...

    def ratings(self, limit: int) -> Sequence[KeptRating]:
        """Return readers' ratings, newest first."""
        ...


#: Gives the idf of each term of a text.
Weigh: TypeAlias = Callable[[str], Mapping[int, float]]


class Enricher(Protocol):
    """A language model of the service, and the check of citations. Safe to share between threads."""

    def write(self, instructions: str, text: str, schema: Mapping[str, Any], tokens: int) -> str:
        """Return the model's reply, of at most so many tokens, which should be JSON that fits the schema.

        Raises:
            ProviderError: the model could not be reached, refused, or broke off.
        """
        ...

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """Return the US dollars of so many tokens by the list price; an unknown model is the most expensive one."""
        ...

    def carries(self, question: str, path: Sequence[str], text: str, language: str, weigh: Weigh) -> bool:
        """Return whether a section, as the source of an answer, carries what a question names."""
        ...


class Session(Protocol):
    """One open service, for its owner: calls don't count against the public budget.

    Every method raises `InputError` for an invalid question and `IndexFault` if no index can be read.
    """

    @property
    def settings(self) -> Settings: ...

    def enricher(self) -> Enricher:
        """Return the settings' generator as the enricher of a build. Opens no index."""
        ...

    @property
    def threads(self) -> KeptThreads | None:
        """Stored conversations, None without a database."""
        ...

    def snapshot(self) -> Snapshot:
        """Return the generation that answers now."""
        ...

    def answer(self, **fields: Any) -> dict[str, Any]:
        """Return a `ChatResponse` as JSON for the fields of a `ChatQuery`; fields that are None are left out."""
        ...

    def plan(self, **fields: Any) -> dict[str, Any]:
        """Return a `PlanResponse` as JSON for the fields of a `PlanRequest`: a question, or a state and an input."""
        ...

    def trace(self, **fields: Any) -> dict[str, Any]:
        """Answer a question as `answer` does, and return how.

        `query_id`, `question`, `state`, `states` with the seconds until each, `attempts`, `created_at`, `processed_at`,
        `model` and `generator`; in `faq` the entry that answered, else in `nearest_faq` the likeliest with the `least`
        probability of an answer; the `memories` that informed a model; in `retrieval`, None where nothing was searched,
        `searched`, its `subject`, `unknown_words`, `synonyms` by words, `algorithm`, `verdict`, `answerability`,
        `evidence`, `floor`, `failures`, `timings`, `total` and the `candidates`, each with its `source` id or the stage
        that `omitted` it; `sentences`, each with its `check`; and the `response`.
        """
        ...

    def search(
        self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None
    ) -> list[dict[str, Any]]:
        """Return the rows of `search --json`: chunks unexpanded, best first."""
        ...

    def examine(self, question: str, history: History, top_k: int) -> dict[str, Any]:
        """Return the `results` of `search` and their figures.

        `evidence` is the strongest found and `floor` the least that is answered from, both 0 to 1; `refused` whether
        there is no answer, or only one with a reservation; `seconds` by stage, with a `total` without the opening of
        the index; `degraded` the reason why a part did not work as configured, or None; `generation` that of the index.
        """
        ...

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> dict[str, Any]:
        """Return the `features` of every candidate, and the `urls` of the ten best for each fusion weight.

        Raises:
            ProviderError: the embedder failed.
        """
        ...

    def judge_answer(self, question: str, history: History) -> dict[str, Any]:
        """Answer a question and return counts of its citations, sentences and claims, checked again in the index."""
        ...

    def serve_mcp(self, read: BinaryIO, write: BinaryIO) -> None:
        """Answer messages of the Model Context Protocol, a line each, until the input ends."""
        ...

    def holds(self, claims: Sequence[Mapping[str, str]]) -> list[bool]:
        """Return for each claim (`text`, and `url` and `chunk_id` of a section) whether the section supports it."""
        ...
