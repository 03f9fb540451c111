"""What a turn may use of the models of a service: each is paid from the day's budget, and skipped after failures.

Each request is reserved before it is sent, and charged by its use. A new paid request is a method of `Metered` before
any code makes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from chapterverse.embedding import Vector
from chapterverse.extensions import open_offer
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings
from chapterverse.text.tokens import BILLED_TOKEN_BYTES, PROMPT_TOKEN_BYTES, utf8_length
from chapterverse_api.answer.resources import BudgetLevel, Models
from chapterverse_api.draft.draft import MAX_VOTE_BYTES, MAX_VOTES, AnswerGenerator, CheckRequest, Span, Writer
from chapterverse_api.draft.extractive import Extractive
from chapterverse_api.draft.requests import (
    ChatMessage,
    GenerationRequest,
    ModelRequest,
    ResponseSchema,
    ToolCall,
)
from chapterverse_api.ext.budget.circuit_breaker import CircuitBreaker
from chapterverse_api.ext.budget.daily_budget import Bill, DailyBudget, TurnBudget, UsualCost
from chapterverse_api.ext.budget.prices import FREE, Price, Prices, Use, economy_generator_name
from chapterverse_api.ext.models import prompts
from chapterverse_api.search.passages import MAX_FAQ_TOKENS, MAX_PASSAGES_TOKENS
from chapterverse_api.search.rerankers import MAX_REQUEST_TEXTS, MAX_TEXT_BYTES

#: Tokens around the texts of one request: roles, names of fields, marks. They are 200 bytes, one token each at most.
_FRAME_TOKENS = 200
#: Bytes of 500 tokens. A reranker reads a longer text, its question included, in parts, and bills each part like a
#: text: https://docs.cohere.com/docs/rerank-overview
_PART_BYTES = 1750
#: Bytes of the messages for a short text besides the answer: six turns of a conversation, as a rule, or a long
#: question. A longer conversation loses its middle.
_WRITER_BYTES = 16_000
#: Bytes of a checker's instructions, tokens of its verdict, and characters that a guardrail bills as one text.
_CHECK_RULES_BYTES, _VERDICT_TOKENS, _BILLED_TEXT_CHARS = 500, 16, 1_000
#: Tokens of a usual prompt at most: rules and tools, persona, notes of the owner, sources, a short conversation.
_PROMPT_TOKENS = 3_000 + math.ceil(
    (prompts.MAX_PERSONA_TOKENS + prompts.MAX_MEMORIES_TOKENS + MAX_PASSAGES_TOKENS + MAX_FAQ_TOKENS)
    * PROMPT_TOKEN_BYTES
    / BILLED_TOKEN_BYTES
)
#: Replaces the middle of a message that is too long.
_ELLIPSIS = " … "


@dataclass(frozen=True, slots=True)
class Metered:
    """A model whose requests are paid from a turn's budget. It has the interfaces of its `part`.

    The circuit of a part that writes is held by the pipeline, because only it knows which failures are answers.

    Attributes:
        thoughts: tokens that the part may think beside what it writes, which are billed as well.
    """

    part: Any
    price: Price
    budget: TurnBudget
    circuit: CircuitBreaker
    thoughts: int = 0

    @property
    def name(self) -> str:
        return str(self.part.name)

    @property
    def card(self) -> EmbedderCard:
        card: EmbedderCard = self.part.card
        return card

    def embed_query(self, text: str) -> Vector:
        with self.circuit.calling(), self.budget.paying(self.price, _embedding(text)) as bill:
            vector: Vector = self.part.embed_query(text)
            bill.use = Use(_billed_tokens(text))
            return vector

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        most = Use(searches=_billed_searches(question, texts))
        with self.circuit.calling(), self.budget.paying(self.price, most):
            scores: list[float] = self.part.rerank(question, texts)
            return scores

    def supports(self, request: CheckRequest) -> bool:
        text_bytes, usage = utf8_length(request.document) + utf8_length(request.claim), request.usage
        most = _max_vote(text_bytes, request.characters, self.thoughts)
        with self.circuit.calling(), self.budget.paying(self.price, most) as bill:
            verdict: bool = self.part.supports(request)
            read, written = usage.input_tokens or most.input_tokens, usage.output_tokens or most.output_tokens
            bill.use = Use(read, written, most.searches)
            return verdict

    def generate(self, request: GenerationRequest) -> Generator[Span | ToolCall, None, None]:
        if self.price == FREE:
            yield from self.part.generate(request)
            return
        most = Use(_prompt_tokens(request), prompts.MAX_ANSWER_TOKENS + self.thoughts)
        with self._writing(most) as bill, closing(self.part.generate(request)) as pieces:
            texts = list[str]()
            for piece in pieces:
                # A draft that is left counts its full length: the model may write on.
                bill.use = replace(most, input_tokens=request.usage.input_tokens or most.input_tokens)
                texts.append(piece.text if isinstance(piece, Span) else piece.arguments)
                yield piece
            # A service that doesn't report its usage may have billed thoughts besides the draft.
            written = request.usage.output_tokens or _billed_tokens(*texts) + self.thoughts
            bill.use = Use(request.usage.input_tokens or most.input_tokens, written)

    def _writing(self, most: Use) -> AbstractContextManager[Bill]:
        return self.budget.paying(self.price, most, writes=True)


class MeteredWriter(Metered):
    """Likewise, for a generator that writes other texts too."""

    __slots__ = ()

    def write(self, request: ModelRequest) -> str:
        """Send a request with at most `_WRITER_BYTES` of messages, unless the generator's circuit is open.

        Its failures don't open the circuit: a short text that comes too late says nothing about answers.
        """
        max_bytes = _WRITER_BYTES // max(1, len(request.messages))
        messages = tuple(ChatMessage(m.role, _without_middle(m.content, max_bytes)) for m in request.messages)
        request = replace(request, messages=messages)
        self.circuit.check()
        with self._writing(self._text(request)):
            text: str = self.part.write(request)
            return text

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        # A service that takes the schema in a separate field bills it a second time.
        with self._writing(self._text(request, json.dumps(schema.document))):
            text: str = self.part.write_data(request, schema)
            return text

    def _text(self, request: ModelRequest, *more: str) -> Use:
        read = _billed_tokens(request.instructions, *more, *(message.content for message in request.messages))
        return Use(read, request.max_tokens + self.thoughts)


def usual_cost(prices: Prices, question: str | None = None, *, drafts: int = 0, votes: int = 0) -> UsualCost:
    """Return the most that the usual requests of a turn can cost: a search, drafts of an answer, second votes.

    Args:
        question: None without a search.
    """
    searched = question is not None
    embedded = prices.embedder.cost(_embedding(question or "")) if searched else 0.0
    reranked = prices.reranker.cost(Use(searches=_max_searches(utf8_length(question or "")))) if searched else 0.0
    draft = Use(_PROMPT_TOKENS + utf8_length(question or ""), prompts.MAX_ANSWER_TOKENS + prices.thoughts)
    economy = embedded + drafts * prices.economy.cost(draft)
    full = embedded + reranked + drafts * prices.generator.cost(draft) + votes * prices.checker.cost(_max_vote())
    # Most of the budget may be gone by the time that this is reserved, and the model for that need not be cheaper.
    return UsualCost(max(full, economy), economy)


def _billed_tokens(*texts: str) -> float:
    """Return about how many tokens a request with these texts has, rather too many."""
    return _FRAME_TOKENS + sum(map(utf8_length, texts)) / BILLED_TOKEN_BYTES


def _billed_searches(question: str, texts: Sequence[str]) -> int:
    """Return how many searches are billed: a text that is longer than a part is read in several."""
    question_bytes = utf8_length(question)
    parts = sum(1 + (question_bytes + min(utf8_length(text), MAX_TEXT_BYTES)) // _PART_BYTES for text in texts)
    return math.ceil(parts / MAX_REQUEST_TEXTS)


def _max_searches(question_bytes: int) -> int:
    """Return how many searches a question of so many bytes can be billed as: it has at most a hundred texts."""
    return 1 + (question_bytes + MAX_TEXT_BYTES) // _PART_BYTES


def _max_vote(
    text_bytes: int = MAX_VOTE_BYTES, characters: int = MAX_VOTE_BYTES, thoughts: int = prompts.MAX_REASONING_TOKENS
) -> Use:
    """Return the most that a second vote on texts of this size is billed."""
    return Use(
        _FRAME_TOKENS + (_CHECK_RULES_BYTES + text_bytes) / BILLED_TOKEN_BYTES,
        _VERDICT_TOKENS + thoughts,
        math.ceil(characters / _BILLED_TEXT_CHARS),
    )


def _embedding(text: str) -> Use:
    # A token is at least one byte, and a reader's text may be made up.
    return Use(_FRAME_TOKENS + utf8_length(text))


def _prompt_tokens(request: GenerationRequest) -> float:
    """Return the most tokens that a generator is sent. A request with documents has no more."""
    reader = sum(utf8_length(message.content) for message in prompts.conversation(request))
    sources = prompts.render_sources(request, "nonce")
    tools = json.dumps([asdict(tool) for tool in request.tools])
    tokens = _billed_tokens(prompts.instructions(request, "nonce"), sources, tools)
    # As in `_embedding`. A selection is a reader's text, too.
    return tokens + reader + (utf8_length(sources) if request.selected else 0)


def _without_middle(text: str, max_bytes: int) -> str:
    """Return a text of at most so many bytes: its beginning and its end, in equal parts."""
    data = text.encode(errors="replace")
    half = (max_bytes - len(_ELLIPSIS.encode())) // 2
    if len(data) <= max_bytes:
        return text
    return data[:half].decode(errors="ignore") + _ELLIPSIS + data[-half:].decode(errors="ignore")


#: The models that have a circuit breaker, by their names in `degraded` of the status.
_PARTS = ("generator", "embedder", "reranker", "checker")
#: The generator at the economy level has one of its own.
_CHEAPER = "cheaper generator"


@dataclass(frozen=True, slots=True)
class Meter:
    """Prices, budget and circuit breakers of the models of one service. Implements `answer.resources.Meter`.

    Attributes:
        economy: the generator when most of the budget is gone; None if it is the usual one.
        circuits: by part.
    """

    prices: Prices
    budget: DailyBudget
    economy: AnswerGenerator | None
    circuits: Mapping[str, CircuitBreaker]

    @classmethod
    def open(cls, settings: Settings, models: Models) -> Self | None:
        """Return the meter of these models; None if none can fail or cost anything. Nothing is sent yet.

        Raises:
            ConfigurationError: a setting of the budget, or what it names, can't be used.
        """
        name, economy = economy_generator_name(settings), None
        if name != settings.generator:
            setting = "CHAPTERVERSE_ECONOMY_GENERATOR"
            economy = open_offer("generator", settings.override(generator=name), setting)
        prices = Prices.from_settings(settings, models.embedder.price if models.embedder else None)
        circuits = {part: CircuitBreaker(part) for part in (*_PARTS, _CHEAPER)}
        meter = cls(prices, DailyBudget.from_settings(settings), economy, circuits)
        return meter if models.may_fail or economy else None

    @property
    def key_refused(self) -> bool:
        return any(self.circuits[part].key_refused for part in _PARTS)

    @property
    def conditions(self) -> Mapping[str, bool]:
        return {**{part: self.circuits[part].is_open for part in _PARTS}, "budget": self.budget.level != "full"}

    @contextmanager
    def reserving(self, models: Models, question: str | None, *, drafts: bool, votes: bool) -> Iterator[Models]:
        usual = usual_cost(self.prices, question, drafts=drafts, votes=MAX_VOTES if votes else 0)
        with self.budget.reserving(usual) as turn_budget:
            yield self.paid_from(turn_budget, models)

    def without_limit(self, models: Models) -> Models:
        return self.paid_from(TurnBudget(), models)

    def inherit_from(self, before: Meter) -> Meter:
        return replace(self, budget=before.budget)

    def paid_from(self, budget: TurnBudget, models: Models) -> Models:
        """Return those of these models that a turn may use at the level of its budget, each paid from it."""
        prices, is_full = self.prices, budget.level == "full"

        def paid(part: str, price: Price, is_allowed: bool, thoughts: int = 0) -> Any:
            model = getattr(models, part) if is_allowed else None
            return Metered(model, price, budget, self.circuits[part], thoughts) if model else None

        part, generator, price = self._choose_generator(models.generator, budget.level)
        if not isinstance(generator, Extractive):
            metered = MeteredWriter if isinstance(generator, Writer) else Metered
            generator = metered(generator, price, budget, self.circuits[part], prices.thoughts)
        return replace(
            models,
            # A model on one's own machine costs nothing, so it stays when the budget is gone.
            embedder=paid("embedder", prices.embedder, budget.level != "free" or prices.embedder == FREE),
            reranker=paid("reranker", prices.reranker, is_full),
            checker=paid("checker", prices.checker, is_full or prices.checker == FREE, prompts.MAX_REASONING_TOKENS),
            generator=generator,
            drafting=self.circuits[part].calling,
            spending=budget,
        )

    def _choose_generator(self, usual: AnswerGenerator, level: BudgetLevel) -> tuple[str, AnswerGenerator, Price]:
        """Return the generator for a level of the budget, after its part and before its price."""
        if level == "free" and self.prices.generator != FREE:
            return "generator", Extractive(), FREE
        if level == "economy" and self.economy:
            return _CHEAPER, self.economy, self.prices.economy
        return "generator", usual, self.prices.generator
