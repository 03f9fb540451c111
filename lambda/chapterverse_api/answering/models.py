"""The models of the process and of one turn. Each counts its cost and stays within the day's budget."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Generator as Steps
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from chapterverse.embedding import Embedder, LazySize, Vector, open_embedder
from chapterverse.errors import IndexMismatch, ProviderError
from chapterverse.model import EmbedderCard, Head
from chapterverse.settings import Settings
from chapterverse_api.budget.daily_budget import CostCeiling, TurnBudget
from chapterverse_api.budget.prices import FREE, Price, Prices, economy_generator_name
from chapterverse_api.circuit_breaker import CircuitBreaker
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.history import REWRITTEN_LENGTH, REWRITTEN_TOKENS, SUBJECT_MOST
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation import (
    ChatMessage,
    DataWriter,
    GenerationRequest,
    Generator,
    ResponseSchema,
    Span,
    ToolCall,
    ToolCaller,
    ToolSpec,
    Writer,
    open_generator,
    prompts,
)
from chapterverse_api.generation.extractive import Extractive
from chapterverse_api.retrieval.passages import BUDGET, FAQ_BUDGET
from chapterverse_api.retrieval.rerankers import Reranker, open_reranker
from chapterverse_api.retrieval.rerankers.response import MOST_BYTES, MOST_TEXTS
from chapterverse_api.retrieval.spelling import WORDS as CORRECTED_WORDS

if TYPE_CHECKING:
    from chapterverse_api.grounding.checkers import Checker, CheckRequest

#: Bytes of a token when money is counted. A text in English has four, one in Chinese nearly three; fewer count more.
_BYTES = 2.5
#: What surrounds the texts of one request: roles, names of fields, marks.
_FRAME = 200
#: Bytes of our own rules, without the persona, and of the titles of sources.
_RULES = 6000
#: Bytes of 500 tokens, of which a text that is longer, its question included, is read in parts, and each part is paid
#: for like a text: https://docs.cohere.com/docs/rerank-overview
_PART = 1750
#: Bytes of a character.
_WIDEST = 4
#: Bytes that a short text besides the answer is made from: six turns of a conversation, as a rule, or a long question.
#: Whatever is more loses its middle, for it was not set aside.
_TOLD = 16_000
#: Sentences of one answer that a checker is asked about, and bytes of such a request: longer ones are not asked.
MOST_CHECKED, MOST_CHECKED_BYTES = 6, 12_000
#: Bytes of a checker's instructions, tokens of its verdict, and characters that a guardrail bills as one.
_CHECK_RULES, _VERDICT, _TEXT_UNIT = 500, 16, 1_000
#: Stands where it was.
_GAP = " … "
#: Bytes of a schema, and how often at most data that fits it is asked for.
_SCHEMA, DATA_TRIES = 8_000 * _WIDEST, 2
#: Bytes of all tools that are offered; how often a model may ask for calls, and how many calls it gets in all.
TOOLS_BYTES, TOOL_ROUNDS, TOOL_CALLS = 32_000, 2, 3


@dataclass(frozen=True, slots=True)
class ModelCall:
    """What surrounds each call of a model: its circuit breaker, and its price in the budget of a turn.

    Attributes:
        price: nothing is counted outside a turn.
        thoughts: tokens that a generator may think on top of what it writes.
    """

    circuit: CircuitBreaker
    price: Price = FREE
    turn_budget: TurnBudget = field(default_factory=TurnBudget)
    thoughts: int = 0

    @contextmanager
    def charging(self, *, read: float = 0.0, searches: int = 0) -> Iterator[None]:
        """Run a block that asks the model, unless its circuit is open; count what it was asked for.

        Raises:
            CircuitOpen: nothing was asked, and nothing is counted.
        """
        with _counting(lambda: self.turn_budget.add(self.price, read=read, searches=searches)), self.circuit.asking():
            yield


@dataclass(frozen=True, slots=True)
class MeteredEmbedder:
    """An embedder whose questions are guarded and counted. Implements `chapterverse.embedding.Embedder`."""

    embedder: Embedder
    call: ModelCall

    @property
    def card(self) -> EmbedderCard:
        with self.call.circuit.asking():
            return self.embedder.card

    def beside(self, indexed: EmbedderCard) -> EmbedderCard:
        """Return the card beside an index's without asking the model, as nothing is set aside for that."""
        return self.embedder.beside(indexed) if isinstance(self.embedder, LazySize) else self.card

    @property
    def price(self) -> float:
        return self.embedder.price

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        return self.embedder.embed_documents(texts)

    def embed_query(self, text: str) -> Vector:
        with self.call.charging(read=_tokens(text)):
            return self.embedder.embed_query(text)


@dataclass(frozen=True, slots=True)
class MeteredReranker:
    """A reranker whose searches are guarded and counted. Implements `chapterverse_api.retrieval.rerankers.Reranker`."""

    reranker: Reranker
    call: ModelCall

    @property
    def name(self) -> str:
        return self.reranker.name

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        with self.call.charging(searches=_searches(question, texts)):
            return self.reranker.rerank(question, texts)


@dataclass(frozen=True, slots=True)
class MeteredGenerator:
    """A generator whose tokens are counted. Implements `chapterverse_api.generation.Generator`.

    The pipeline guards it: it alone knows which failures are answers.
    """

    generator: Generator
    call: ModelCall

    @property
    def name(self) -> str:
        return self.generator.name

    def generate(self, task: GenerationRequest) -> Steps[Span, None, None]:
        # One that is left before its end may write on, and what it writes is billed, heard or not.
        billed, began, written = True, False, float(prompts.ANSWER_TOKENS + self.call.thoughts)
        texts: list[str] = []
        try:
            with closing(self.generator.generate(task)) as spans:
                for span in spans:
                    began = True
                    texts.append(span.text)
                    yield span
            # Where nobody tells what was billed, there may have been thoughts besides the draft.
            written = task.usage.written or _tokens(*texts) + self.call.thoughts
        except ProviderError as error:
            billed = began or not error.unbilled
            raise
        finally:
            if billed:
                self.call.turn_budget.add_generated(self.call.price, task.usage.read or _prompt(task), written)


@dataclass(frozen=True, slots=True)
class MeteredWriter:
    """A writer whose tokens are counted, and bounded. Implements `chapterverse_api.generation.Writer`.

    It is skipped while its generator is. Its own failures are not counted: a short text that came too late for its
    purpose says nothing about answers.
    """

    writer: Writer
    call: ModelCall

    def write(self, instructions: str, messages: Sequence[ChatMessage], *, tokens: int, deadline: Deadline) -> str:
        most, call = _TOLD // max(1, len(messages)), self.call
        messages = [ChatMessage(message.role, _without_middle(message.content, most)) for message in messages]
        read = _tokens(instructions, *(message.content for message in messages))
        with _counting(lambda: call.turn_budget.add_generated(call.price, read, tokens + call.thoughts)):
            call.circuit.check()
            return self.writer.write(instructions, messages, tokens=tokens, deadline=deadline)


@dataclass(frozen=True, slots=True)
class MeteredDataWriter:
    """A writer of data whose tokens are counted. Implements `chapterverse_api.generation.DataWriter`.

    The pipeline guards it, as it does a generator. What it is told is set aside whole.
    """

    writer: DataWriter
    call: ModelCall

    def write_data(
        self,
        instructions: str,
        messages: Sequence[ChatMessage],
        schema: ResponseSchema,
        *,
        tokens: int,
        deadline: Deadline,
    ) -> str:
        call = self.call
        # Services that take the schema apart count it once more.
        read = _tokens(instructions, json.dumps(schema.document), *(message.content for message in messages))
        with _counting(lambda: call.turn_budget.add_generated(call.price, read, tokens + call.thoughts)):
            return self.writer.write_data(instructions, messages, schema, tokens=tokens, deadline=deadline)


@dataclass(frozen=True, slots=True)
class MeteredChecker:
    """A checker whose requests are guarded and counted. Implements `chapterverse_api.grounding.checkers.Checker`."""

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
                read=usage.read or _tokens(request.document, request.claim) + _CHECK_RULES / _BYTES,
                written=usage.written or _VERDICT + self.call.thoughts,
                searches=math.ceil(request.characters / _TEXT_UNIT),
            )

        with _counting(charge), self.call.circuit.asking():
            return self.checker.supports(request)


@dataclass(frozen=True, slots=True)
class MeteredToolCaller:
    """A caller of tools whose tokens are counted. Implements `chapterverse_api.generation.ToolCaller`.

    The pipeline guards it, as it does a generator. What it is told is set aside whole.
    """

    caller: ToolCaller
    call: ModelCall

    def choose_tools(
        self,
        instructions: str,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSpec],
        *,
        tokens: int,
        deadline: Deadline,
    ) -> tuple[ToolCall, ...] | None:
        call, specs = self.call, json.dumps([asdict(tool) for tool in tools])
        read = _tokens(instructions, specs, *(message.content for message in messages))
        with _counting(lambda: call.turn_budget.add_generated(call.price, read, tokens + call.thoughts)):
            return self.caller.choose_tools(instructions, messages, tools, tokens=tokens, deadline=deadline)


@contextmanager
def _counting(charge: Callable[[], None]) -> Iterator[None]:
    """Count what a model was asked for, unless it is known that it did nothing."""
    billed = True
    try:
        yield
    except ProviderError as error:
        billed = not error.unbilled
        raise
    finally:
        if billed:
            charge()


@dataclass(frozen=True, slots=True)
class EconomyGenerator:
    """The cheaper generator, with a circuit breaker of its own."""

    generator: Generator
    circuit: CircuitBreaker


def open_economy_generator(settings: Settings) -> EconomyGenerator | None:
    """Return the generator for the last fifth of the day's budget; None where it is the usual one.

    Raises:
        ConfigurationError: see `open_generator`.
    """
    name = economy_generator_name(settings)
    if name == settings.generator:
        return None
    return EconomyGenerator(open_generator(settings.override(generator=name)), CircuitBreaker("cheaper generator"))


def _open_checker(settings: Settings) -> MeteredChecker | None:
    """Return the checker for second votes; None where the words decide alone.

    Raises:
        ConfigurationError: see `open_checker`.
    """
    if settings.checker == "words":
        return None
    # Loaded where one is configured.
    from chapterverse_api.grounding.checkers import open_checker

    thoughts = prompts.THOUGHT_TOKENS if settings.checker.startswith("openai:") else 0
    return MeteredChecker(open_checker(settings), ModelCall(CircuitBreaker("checker"), thoughts=thoughts))


@dataclass(frozen=True, slots=True)
class Models:
    """The models of this process, each behind its circuit breaker, and their prices.

    Attributes:
        circuit: of the generator.
        checker: gives a second vote on citations; None where the words decide alone.
    """

    embedder: MeteredEmbedder | None
    reranker: MeteredReranker | None
    generator: Generator
    circuit: CircuitBreaker
    economy: EconomyGenerator | None
    prices: Prices
    checker: MeteredChecker | None = None

    @classmethod
    def open(cls, settings: Settings) -> Models:
        """Return the models that the settings name; nothing is sent yet.

        Raises:
            ConfigurationError: a name is unknown, or a chosen provider's key or package is missing.
        """
        embedder, generator, reranker = open_embedder(settings), open_generator(settings), open_reranker(settings)
        return cls.of(settings, embedder, generator, reranker)

    @classmethod
    def of(
        cls, settings: Settings, embedder: Embedder | None, generator: Generator, reranker: Reranker | None = None
    ) -> Models:
        """Return these models behind circuit breakers, with the checker that the settings name."""
        return cls(
            MeteredEmbedder(embedder, ModelCall(CircuitBreaker("embedder"))) if embedder else None,
            MeteredReranker(reranker, ModelCall(CircuitBreaker("reranker"))) if reranker else None,
            generator,
            CircuitBreaker("generator"),
            open_economy_generator(settings),
            Prices.of(settings, embedder.price if embedder else None),
            _open_checker(settings),
        )

    @property
    def circuits(self) -> dict[str, CircuitBreaker]:
        """The circuit breakers by the part that they guard."""
        circuits = {"generator": self.circuit}
        circuits |= {"embedder": self.embedder.call.circuit} if self.embedder else {}
        circuits |= {"reranker": self.reranker.call.circuit} if self.reranker else {}
        return circuits | ({"checker": self.checker.call.circuit} if self.checker else {})

    def card(self, head: Head) -> EmbedderCard:
        """Return the embedder's card beside an index's; no model is asked, as no budget is set aside for it."""
        return self.embedder.beside(head.embedder) if self.embedder else EmbedderCard()

    def check_index(self, head: Head) -> None:
        """Check that an index was made by the configured embedder, as far as that is known without asking a model.

        Raises:
            IndexMismatch: it was made by another one.
        """
        with suppress(ProviderError):
            card = self.card(head)
            if head.embedder.fingerprint != card.fingerprint:
                raise IndexMismatch(
                    f"The index was made with the embedder {head.embedder.name!r} and the settings say {card.name!r}: "
                    f"set CHAPTERVERSE_EMBEDDER={head.embedder.name}, or index again."
                )


@dataclass(frozen=True, slots=True)
class TurnModels:
    """The models that one turn may use, each counting its cost.

    Attributes:
        circuit: of the generator.
        turn_budget: what they cost.
    """

    embedder: Embedder | None
    reranker: Reranker | None
    generator: Generator
    writer: Writer | None
    data_writer: DataWriter | None
    checker: Checker | None
    tool_caller: ToolCaller | None
    circuit: CircuitBreaker
    turn_budget: TurnBudget

    @classmethod
    def of(cls, models: Models, turn_budget: TurnBudget | None = None) -> TurnModels:
        """Return what a turn may use of the process' models; without a budget, all of them."""
        turn_budget, prices = turn_budget or TurnBudget(), models.prices
        free = turn_budget.level == "free"
        cheaper = models.economy if turn_budget.level == "economy" else None
        generator, circuit = (cheaper.generator, cheaper.circuit) if cheaper else (models.generator, models.circuit)
        price = prices.economy if cheaper else prices.generator
        # A model on one's own machine costs nothing, so it stays when the budget is gone.
        embedder = None if free and prices.embedder != FREE else models.embedder
        reranker = models.reranker if turn_budget.level == "full" else None
        checker = models.checker if turn_budget.level == "full" or prices.checker == FREE else None
        if free and prices.generator != FREE:
            generator, circuit, price = Extractive(), CircuitBreaker("generator"), FREE
        call = ModelCall(circuit, price, turn_budget, prices.thoughts)
        return cls(
            replace(embedder, call=replace(embedder.call, price=prices.embedder, turn_budget=turn_budget))
            if embedder
            else None,
            replace(reranker, call=replace(reranker.call, price=prices.reranker, turn_budget=turn_budget))
            if reranker
            else None,
            generator if price == FREE else MeteredGenerator(generator, call),
            MeteredWriter(generator, call) if isinstance(generator, Writer) else None,
            MeteredDataWriter(generator, call) if isinstance(generator, DataWriter) else None,
            replace(checker, call=replace(checker.call, price=prices.checker, turn_budget=turn_budget))
            if checker
            else None,
            MeteredToolCaller(generator, call) if isinstance(generator, ToolCaller) else None,
            circuit,
            turn_budget,
        )


def max_turn_cost(
    query: ChatQuery, prices: Prices, *, keeps: bool, tools: bool = False, plan: bool = False
) -> CostCeiling:
    """Return the most that answering a question can cost.

    Args:
        keeps: whether conversations are kept, so that a summary of this one may have to be written.
        tools: whether the site has tools, whose results stand beside the sources.
        plan: whether it is asked for a plan, which is data of a schema of ours.
    """
    # A token is at least one byte, so whatever a reader may have made up is taken at that.
    own = sum(_length(text) for text in (query.query, query.selected_text))
    # Of a conversation that is kept the reader need not send anything: it may be as long as a prompt holds.
    known = keeps and query.thread_id is not None
    said = sum(_length(m.content) for m in query.conversation_history)
    earlier = _bytes(prompts.HISTORY_TOKENS) if known else min(said, _bytes(prompts.HISTORY_TOKENS))
    told = own + earlier + _bytes(prompts.SUMMARY_TOKENS) + (_bytes(prompts.RECALLED_TOKENS) if known else 0)
    context = min(_length(query.user_context), _bytes(prompts.CONTEXT_TOKENS))
    ours = _RULES + _bytes(prompts.PERSONA_TOKENS + prompts.MEMORIES_TOKENS) + _bytes(BUDGET + FAQ_BUDGET)
    ours += TOOL_CALLS * _bytes(prompts.RESULT_TOKENS) if tools else 0
    texts = [(ours / _BYTES + told + context, prompts.ANSWER_TOKENS)]
    if query.output is not None or plan:
        # The schema stands in the instructions, and perhaps in a field of the request.
        texts = [
            (2 * _SCHEMA / _BYTES + read, prompts.PLAN_TOKENS if plan else prompts.DATA_TOKENS) for read, _ in texts
        ] * DATA_TRIES
    if tools:
        texts += [((ours + TOOLS_BYTES) / _BYTES + told + context, prompts.TOOL_TOKENS)] * TOOL_ROUNDS
    texts += [(_RULES / _BYTES + min(told, _TOLD), REWRITTEN_TOKENS)] if query.conversation_history or known else []
    texts += [((_RULES + _TOLD) / _BYTES, prompts.SUMMARY_TOKENS)] if known else []

    def generated(price: Price) -> float:
        return sum(price.of(read=_FRAME + read, written=written + prices.thoughts) for read, written in texts)

    # The question is searched for with its mistakes corrected, and perhaps again behind earlier ones, or as a model
    # wrote it in full.
    alone = own + _WIDEST * CORRECTED_WORDS
    subject = _WIDEST * SUBJECT_MOST if known else min(said + 2, _WIDEST * SUBJECT_MOST)
    asked = max(alone + subject, _WIDEST * REWRITTEN_LENGTH) if earlier else alone
    embedded = prices.embedder.of(read=_FRAME + alone) + (prices.embedder.of(read=_FRAME + asked) if earlier else 0.0)
    searched = prices.reranker.of(searches=_most_searches(asked))
    checked = MOST_CHECKED * prices.checker.of(
        read=_FRAME + (_CHECK_RULES + MOST_CHECKED_BYTES) / _BYTES,
        written=_VERDICT + prompts.THOUGHT_TOKENS,
        searches=math.ceil(MOST_CHECKED_BYTES / _TEXT_UNIT),
    )
    economy = embedded + generated(prices.economy)
    # Most of the budget may be gone by the time that this is set aside, and the model for that need not be cheaper.
    return CostCeiling(max(embedded + searched + generated(prices.generator) + checked, economy), economy)


def max_search_cost(question: str, prices: Prices) -> CostCeiling:
    """Return the most that a search without an answer can cost."""
    embedded = prices.embedder.of(read=_FRAME + _length(question))
    return CostCeiling(embedded + prices.reranker.of(searches=_most_searches(_length(question))), embedded)


def _prompt(task: GenerationRequest) -> float:
    """Return about how many tokens a generator is sent: what those that take documents get is no more."""
    return _tokens(prompts.instructions(task), *(message.content for message in prompts.conversation(task, "nonce")))


def _tokens(*texts: str) -> float:
    return _FRAME + sum(map(_length, texts)) / _BYTES


def _length(text: str | None) -> int:
    return len((text or "").encode(errors="replace"))


def _bytes(tokens: int) -> int:
    return math.ceil(tokens * prompts.BYTES_OF_TOKEN)


def _searches(question: str, texts: Sequence[str]) -> int:
    """Return how many searches are billed: a text that is longer than a part is read in several."""
    asked = _length(question)
    parts = sum(1 + (asked + min(_length(text), MOST_BYTES)) // _PART for text in texts)
    return math.ceil(parts / MOST_TEXTS)


def _most_searches(asked: int) -> int:
    """Return how many searches a question of so many bytes can be billed as: it has at most a hundred texts."""
    return 1 + (asked + MOST_BYTES) // _PART


def _without_middle(text: str, most: int) -> str:
    """Return a text of at most so many bytes: its beginning and its end, in equal parts."""
    data = text.encode(errors="replace")
    half = (most - len(_GAP.encode())) // 2
    if len(data) <= most:
        return text
    return data[:half].decode(errors="ignore") + _GAP + data[-half:].decode(errors="ignore")
