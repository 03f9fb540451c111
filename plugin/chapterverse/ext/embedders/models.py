"""Documented limits of a provider's models, and the setting that picks one: `MODEL[/SIZE][@int8]`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chapterverse.embedding import Vector
from chapterverse.errors import ConfigurationError
from chapterverse.ext.embedders.batches import check_vectors


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
