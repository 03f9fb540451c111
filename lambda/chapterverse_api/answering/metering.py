"""Each call of a model behind its circuit breaker, with its cost counted against the turn's budget."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from chapterverse.embedding import Embedder, LazySize, Vector
from chapterverse.errors import ProviderError
from chapterverse.model import EmbedderCard
from chapterverse.text.utf8 import BILLED_TOKEN_BYTES
from chapterverse_api.answering.request_size import (
    BILLED_TEXT_CHARS,
    CHECK_RULES_BYTES,
    VERDICT_TOKENS,
    WRITER_BYTES,
    billed_searches,
    estimated_tokens,
)
from chapterverse_api.budget.daily_budget import TurnBudget
from chapterverse_api.budget.prices import FREE, Price
from chapterverse_api.circuit_breaker import CircuitBreaker
from chapterverse_api.generation import prompts
from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.protocols import AnswerGenerator, DataWriter, Writer
from chapterverse_api.generation.requests import (
    ChatMessage,
    GenerationRequest,
    ModelRequest,
    ResponseSchema,
    ToolCall,
)
from chapterverse_api.retrieval.rerankers.protocols import Reranker

if TYPE_CHECKING:
    from chapterverse_api.grounding.checkers.protocols import Checker, CheckRequest

#: Replaces the middle of a message that is too long.
_ELLIPSIS = " … "


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What surrounds each call of a model: its circuit breaker, and its price in the budget of a turn.

    Attributes:
        price: `FREE` outside a turn.
        reasoning_tokens: tokens of reasoning that a generator may add to its output, at most.
    """

    circuit: CircuitBreaker
    price: Price = FREE
    turn_budget: TurnBudget = field(default_factory=TurnBudget)
    reasoning_tokens: int = 0

    @contextmanager
    def charging(self, *, input_tokens: float = 0.0, searches: int = 0) -> Iterator[None]:
        """Run a block that calls the model, unless its circuit is open; count the cost of the call.

        Raises:
            CircuitOpen: the block did not run, and nothing is counted.
        """
        with (
            _charging_afterwards(
                lambda: self.turn_budget.add(self.price, input_tokens=input_tokens, searches=searches)
            ),
            self.circuit.calling(),
        ):
            yield

    @contextmanager
    def charging_request(self, request: ModelRequest, *more: str) -> Iterator[None]:
        """Run a block that sends this request, with `more` texts beside its messages; count its tokens."""
        read = estimated_tokens(request.instructions, *more, *(message.content for message in request.messages))
        written = request.max_tokens + self.reasoning_tokens
        with _charging_afterwards(lambda: self.turn_budget.add_generated(self.price, read, written)):
            yield


@dataclass(frozen=True, slots=True)
class MeteredEmbedder:
    """An embedder whose questions are guarded and counted. Implements `chapterverse.embedding.Embedder`."""

    embedder: Embedder
    call: ModelCall

    @property
    def card(self) -> EmbedderCard:
        with self.call.circuit.calling():
            return self.embedder.card

    def beside(self, indexed: EmbedderCard) -> EmbedderCard:
        """Return the card beside an index's. Never asks the model, because no budget is reserved for that."""
        return self.embedder.beside(indexed) if isinstance(self.embedder, LazySize) else self.card

    @property
    def price(self) -> float:
        return self.embedder.price

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return self.embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        with self.call.charging(input_tokens=estimated_tokens(text)):
            return self.embedder.embed_query(text)


@dataclass(frozen=True, slots=True)
class MeteredReranker:
    """A reranker whose searches are guarded and counted. Implements `Reranker`."""

    reranker: Reranker
    call: ModelCall

    @property
    def name(self) -> str:
        return self.reranker.name

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        with self.call.charging(searches=billed_searches(question, texts)):
            return self.reranker.rerank(question, texts)


@dataclass(frozen=True, slots=True)
class MeteredGenerator:
    """A generator whose tokens are counted. Implements `AnswerGenerator`.

    The pipeline holds its circuit breaker, because only the pipeline knows which failures are answers.
    """

    generator: AnswerGenerator
    call: ModelCall

    @property
    def name(self) -> str:
        return self.generator.name

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        # The full length, until the service reports its usage: an interrupted model may write on, and is billed.
        written = float(prompts.MAX_ANSWER_TOKENS + self.call.reasoning_tokens)
        billed = True
        texts: list[str] = []
        try:
            with closing(self.generator.generate(request)) as spans:
                for piece in spans:
                    texts.append(piece.text if isinstance(piece, Span) else piece.arguments)
                    yield piece
            # A service that doesn't report its usage may have billed reasoning besides the draft.
            written = request.usage.output_tokens or estimated_tokens(*texts) + self.call.reasoning_tokens
        except ProviderError as error:
            billed = bool(texts) or not error.unbilled
            raise
        finally:
            if billed:
                self.call.turn_budget.add_generated(
                    self.call.price, request.usage.input_tokens or _estimate_prompt_tokens(request), written
                )


@dataclass(frozen=True, slots=True)
class MeteredWriter:
    """A writer whose tokens are counted, and bounded. Implements `Writer`.

    It is skipped while its generator's circuit is open. Its own failures don't open the circuit: a short text that
    comes too late says nothing about answers.
    """

    writer: Writer
    call: ModelCall

    def write(self, request: ModelRequest) -> str:
        max_bytes = WRITER_BYTES // max(1, len(request.messages))
        messages = (
            ChatMessage(message.role, _without_middle(message.content, max_bytes)) for message in request.messages
        )
        bounded = replace(request, messages=tuple(messages))
        with self.call.charging_request(bounded):
            self.call.circuit.check()
            return self.writer.write(bounded)


@dataclass(frozen=True, slots=True)
class MeteredDataWriter:
    """A writer of data whose tokens are counted. Implements `DataWriter`.

    The pipeline holds its circuit breaker, as it does a generator's. The budget reserves all of its messages.
    """

    writer: DataWriter
    call: ModelCall

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        # A service that takes the schema in a separate field bills it a second time.
        with self.call.charging_request(request, json.dumps(schema.document)):
            return self.writer.write_data(request, schema)


@dataclass(frozen=True, slots=True)
class MeteredChecker:
    """A checker whose requests are guarded and counted. Implements `Checker`."""

    checker: Checker
    call: ModelCall

    @property
    def name(self) -> str:
        return self.checker.name

    def supports(self, request: CheckRequest) -> bool:
        def charge() -> None:
            usage = request.usage
            self.call.turn_budget.add(
                self.call.price,
                input_tokens=usage.input_tokens
                or estimated_tokens(request.document, request.claim) + CHECK_RULES_BYTES / BILLED_TOKEN_BYTES,
                output_tokens=usage.output_tokens or VERDICT_TOKENS + self.call.reasoning_tokens,
                searches=math.ceil(request.characters / BILLED_TEXT_CHARS),
            )

        with _charging_afterwards(charge), self.call.circuit.calling():
            return self.checker.supports(request)


@contextmanager
def _charging_afterwards(charge: Callable[[], None]) -> Iterator[None]:
    """Run a block that sends a request, then charge it unless the service is known to bill nothing for it."""
    billed = True
    try:
        yield
    except ProviderError as error:
        billed = not error.unbilled
        raise
    finally:
        if billed:
            charge()


def _estimate_prompt_tokens(request: GenerationRequest) -> float:
    """Return an upper estimate of the tokens that a generator is sent. A request with documents has no more."""
    return estimated_tokens(
        prompts.instructions(request),
        *(message.content for message in prompts.conversation(request, "nonce")),
        json.dumps([asdict(tool) for tool in request.tools]),
    )


def _without_middle(text: str, max_bytes: int) -> str:
    """Return a text of at most so many bytes: its beginning and its end, in equal parts."""
    data = text.encode(errors="replace")
    half = (max_bytes - len(_ELLIPSIS.encode())) // 2
    if len(data) <= max_bytes:
        return text
    return data[:half].decode(errors="ignore") + _ELLIPSIS + data[-half:].decode(errors="ignore")
