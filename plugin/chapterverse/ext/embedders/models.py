"""Embeds by a provider's models: those that a setting picks, `MODEL[/SIZE][@int8]`, batches, checks of vectors.

A doubtful reply is rejected as a whole, so nothing doubtful is stored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chapterverse.embedding import MAX_COMPONENT, Vector
from chapterverse.errors import ConfigurationError, ProviderError, TextRejected, TextTooLong
from chapterverse.text.tokens import utf8_length

#: Texts that one request may hold, as Cohere documents for itself and on Bedrock; others take more.
MAX_TEXTS = 96

#: Bytes of UTF-8 that one request may hold. OpenAI allows 300,000 tokens in one, and a token is a byte or more.
MAX_BYTES = 300_000

#: A vector whose squares are nothing in 32 bits has no angle.
_MIN_COMPONENT = 1e-15

_BYTES = range(-128, 128)

Send = Callable[[Sequence[str]], list[Vector]]


def embed_in_batches(texts: Sequence[str], send: Send, send_short: Send, model: str) -> list[Vector]:
    """Return one vector a text, in order.

    An error doesn't name the text that it is about, and servers word it in many ways, so a rejected slice is halved
    until one text is left. The same halving serves a server that only takes shorter lists than ours.

    Args:
        send: one request.
        send_short: the same for a text whose length can't be the reason of a refusal, as it may be cut. What comes
            back is thrown away: it only tells a text that is too long from one that is wrong in another way.
        model: its name, for the message.

    Raises:
        TextTooLong: the first text that is over the model's limit.
        ProviderError: as `send` says.
    """
    vectors: list[Vector] = []
    for start, stop in _batches(texts):
        vectors += _embed(texts, start, stop, send, send_short, model)
    return vectors


def _embed(texts: Sequence[str], start: int, stop: int, send: Send, send_short: Send, model: str) -> list[Vector]:
    try:
        return send(texts[start:stop])
    except TextRejected:
        if stop - start == 1:
            send_short(texts[start:stop])
            raise TextTooLong(f"Text {start} is too long for {model}.", position=start) from None
    middle = (start + stop) // 2
    first = _embed(texts, start, middle, send, send_short, model)
    return first + _embed(texts, middle, stop, send, send_short, model)


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the borders of slices within both bounds; a text that exceeds the second bound has a slice of its own."""
    start = size = 0
    for i, text in enumerate(texts):
        length = utf8_length(text)
        if i > start and (i - start == MAX_TEXTS or size + length > MAX_BYTES):
            yield start, i
            start, size = i, 0
        size += length
    if texts:
        yield start, len(texts)


def check_vectors(vectors: Any, count: int, size: int, provider: str, *, int8: bool = False) -> list[Vector]:
    """Return the vectors of a reply.

    Args:
        vectors: the value of the reply's field for the vectors, which should be a list of lists of numbers.
        count: how many texts were sent.
        size: dimensions that each vector must have.
        provider: who answered, for the message.
        int8: whether whole numbers from -128 to 127 were requested.

    Raises:
        ProviderError: one of them is no such vector: another size, no finite numbers, nothing but zeros.
    """
    if not isinstance(vectors, list) or len(vectors) != count:
        raise ProviderError(f"{provider} did not answer with {count} vectors.")
    if not all(isinstance(v, list) and len(v) == size and _usable(v, int8) for v in vectors):
        raise ProviderError(f"{provider} answered with something that is no vector of {size} numbers.")
    return [tuple(map(float, v)) for v in vectors]


def _usable(numbers: list[Any], int8: bool) -> bool:
    # By type, as True is an int too; NaN is in no range.
    if int8:
        return all(type(n) is int and n in _BYTES for n in numbers) and any(numbers)
    if not all(type(n) in (float, int) and -MAX_COMPONENT < n < MAX_COMPONENT for n in numbers):
        return False
    return any(abs(n) > _MIN_COMPONENT for n in numbers)


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """One model as its provider documents it.

    Attributes:
        size: dimensions of its vectors by default.
        limit: tokens that it reads of one text; 0 if that is not known.
        price: US dollars for a million tokens as listed; 0 where no price is known.
        sizes: dimensions that a request may name. Each request then names one, so that a new default changes nothing.
        family: models of one family share a vector space; empty for a model with a space of its own.
        characters: the most that one text may have; 0 for as many as there are tokens for.
    """

    size: int
    limit: int
    price: float = 0.0
    sizes: tuple[int, ...] = ()
    family: str = ""
    characters: int = 0


@dataclass(frozen=True, slots=True)
class Spelling:
    """A setting's parts: `embed-v4.0/512@int8` is a name, a size and whole numbers; without a size it is 0."""

    name: str
    size: int = 0
    int8: bool = False

    @classmethod
    def read(cls, setting: str) -> Spelling:
        # A model's own name may hold slashes, so only digits behind the last one are a size.
        parts = re.fullmatch(r"(.*?)(?:/(\d{1,5}))?(@int8)?", setting, re.DOTALL)
        assert parts is not None  # every text matches: all but the first part is optional
        name, size, int8 = parts.groups()
        return cls(name, int(size or 0), int8 is not None)


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A documented model, in the size and the kind of numbers that the settings name."""

    name: str
    model: EmbeddingModel
    size: int
    int8: bool

    @classmethod
    def of(cls, setting: str, models: Mapping[str, EmbeddingModel], provider: str) -> ModelChoice:
        """Return what a setting picks of a provider's models.

        Raises:
            ConfigurationError: there is no such model, or it makes no vectors of that size.
        """
        spelling = Spelling.read(setting)
        model = models.get(spelling.name)
        if model is None:
            names = ", ".join(models)
            raise ConfigurationError(f"There is no {provider} embedding model {spelling.name!r}: use one of {names}.")
        size = spelling.size or model.size
        if size not in {model.size, *model.sizes}:
            sizes = ", ".join(map(str, model.sizes or (model.size,)))
            raise ConfigurationError(f"{spelling.name} makes no vectors of {size} numbers: use one of {sizes}.")
        return cls(spelling.name, model, size, spelling.int8)

    def __str__(self) -> str:
        size = f"/{self.size}" if self.size != self.model.size else ""
        return f"{self.name}{size}{'@int8' if self.int8 else ''}"

    @property
    def space(self) -> str:
        """The vector space; sizes differ in one space's name by what `EmbedderCard.fingerprint` adds."""
        return f"{self.model.family or self.name}{'@int8' if self.int8 else ''}"

    def body(self, texts: Sequence[str], input_type: str, truncate: str = "NONE") -> dict[str, Any]:
        """Return the body of a request in Cohere's wire format, without the model, as Bedrock takes it too."""
        body = {
            "texts": list(texts),
            "input_type": input_type,
            "embedding_types": [self._numbers],
            "truncate": truncate,
        }
        return {**body, "output_dimension": self.size} if self.model.sizes else body

    def vectors(self, reply: Any, count: int, provider: str) -> list[Vector]:
        """Return the vectors of a reply to such a request; see `check_vectors`."""
        by_type = reply.get("embeddings") if isinstance(reply, dict) else None
        vectors = by_type.get(self._numbers) if isinstance(by_type, dict) else None
        return check_vectors(vectors, count, self.size, provider, int8=self.int8)

    @property
    def _numbers(self) -> str:
        """The embedding type by Cohere's name."""
        return "int8" if self.int8 else "float"
