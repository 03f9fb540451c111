"""The service's interface for the command line. The service is another package, which is never imported from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, BinaryIO, Literal, Protocol, TypeAlias, TypedDict

from chapterverse.settings import Settings
from chapterverse.store.protocols import Snapshot

#: Earlier messages of a conversation, as in `ChatQuery.conversation_history`.
History = list[dict[str, str]] | None
AnswerStatus: TypeAlias = Literal["answered", "partial", "not_in_docs", "degraded"]


class SearchRow(TypedDict):
    """A chunk that a search found. `score` is its evidence, `url` the address for readers."""

    rank: int
    score: float
    url: str
    chapter: str
    section: str | None
    heading_path: list[str]
    source_file_path: str
    chunk_id: str
    text: str


class Examination(TypedDict):
    """The results of a search and its figures.

    Attributes:
        evidence: the strongest evidence of a result, 0 to 1.
        floor: the least evidence that is answered from, 0 to 1.
        refused: whether there is no answer, or only one with a reservation.
        seconds: the seconds of each stage, and a `total` without the opening of the index.
        degraded: the reason why a part did not work as configured, or None.
        generation: the generation of the index.
    """

    results: list[SearchRow]
    evidence: float
    floor: float
    refused: bool
    seconds: dict[str, float]
    degraded: str | None
    generation: int


class WeightTrial(TypedDict):
    """The `calibration.ChunkFeatures` of every candidate, and the addresses of the ten best by fusion weight."""

    features: list[Any]
    urls: dict[float, list[str]]


class CitedClaim(TypedDict):
    """A sentence, and the section that it cites."""

    text: str
    url: str
    chunk_id: str


class AnswerCounts(TypedDict):
    """What the verifier keeps of an answer when it reads the cited sections again.

    Attributes:
        citations, valid: the citations of all segments, and those that name exactly one source that is in the index
            and verified again.
        sentences, carried: the sentences with a claim, and those with a citation that the verifier keeps.
        pairs, precise: the pairs of a sentence and its citation, and those that the verifier keeps.
        claims: the sentences that exactly one section supports.
        segments: the segments of the response as JSON.
        quotes: the text of each quote and its whole section.
    """

    citations: int
    valid: int
    sentences: int
    carried: int
    pairs: int
    precise: int
    claims: list[CitedClaim]
    segments: list[dict[str, Any]]
    quotes: list[tuple[str, str]]


class AnswerJudgement(AnswerCounts):
    """An answer with its counts.

    Attributes:
        status, confidence, text: the response's `status`, `grounding_confidence` and `response`.
        cited: the addresses of the cited sources.
        seconds: the seconds until the sources (`retrieve`), the first words (`first`) and the end (`total`), without
            the opening of the index.
        degraded: the reason why a part did not work as configured, or None.
        generation: the generation of the index.
    """

    status: AnswerStatus
    confidence: float
    text: str
    cited: Sequence[str]
    seconds: dict[str, float]
    degraded: str | None
    generation: int


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
        """Return the US dollars of so many tokens by the list price. Unknown models cost as the most expensive one."""
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
        """Answer a question as `answer` does, and return the document of `trace --json`.

        query_id, question, state, attempts, created_at, processed_at, model, generator
        states       each state with the seconds until it
        faq          the entry that answered, or None
        nearest_faq  the likeliest entry if none answered, with the `least` probability of an answer, or None
        memories     the memories that informed a model
        retrieval    None without a search, else searched, subject, unknown_words, synonyms by words, algorithm,
                     verdict, answerability, evidence, floor, failures, timings, total, and the candidates, each
                     with its `source` id or the stage that `omitted` it
        sentences    each sentence with its `check`
        response     the `ChatResponse`
        """
        ...

    def search(self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None) -> list[SearchRow]:
        """Return the rows of `search --json`: chunks unexpanded, best first."""
        ...

    def examine(self, question: str, history: History, top_k: int) -> Examination:
        """Return the results of `search` and their figures."""
        ...

    def weigh(self, question: str, history: History, weights: Sequence[float]) -> WeightTrial:
        """Search with each fusion weight, and return the candidates.

        Raises:
            ProviderError: the embedder failed.
        """
        ...

    def judge_answer(self, question: str, history: History) -> AnswerJudgement:
        """Answer a question, and check its citations, sentences and claims again in the index."""
        ...

    def serve_mcp(self, read: BinaryIO, write: BinaryIO) -> None:
        """Answer messages of the Model Context Protocol, a line each, until the input ends."""
        ...

    def holds(self, claims: Sequence[CitedClaim]) -> list[bool]:
        """Return for each claim whether its section supports it."""
        ...
