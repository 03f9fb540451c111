"""A draft: text in spans, with the citations that its generator gives."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from chapterverse.errors import AnswerWithheld, ProviderError

#: What a quote leaves out between two blocks, or before its first sentence or line; begins each line that states it.
OMISSION = "…"

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

Check: TypeAlias = Literal["confirmed", "unconfirmed", "none"]


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a draft and the passages that it cites.

    Attributes:
        citations: the ids of the passages that say it.
        kind: `quote` is one passage of one source, `framing` our own words, which are no claim about the documentation,
            `prose` a model's.
        mark: the part of the text that answers; None if it is not known.
        cut: whether the model's limit of length ended the draft here.
        check: `confirmed` if its citations hold, `unconfirmed` if it is a claim without any, `none` if it is no claim.
    """

    text: str
    citations: tuple[str, ...] = ()
    kind: Literal["quote", "prose", "framing"] = "prose"
    mark: str | None = None
    cut: bool = False
    check: Check = "none"


Draft = tuple[Span, ...]


def strip_controls(text: str) -> str:
    """Return a text without control characters other than line feeds and tabs."""
    return _CONTROLS.sub("", text)


def silence_error(cut: bool) -> ProviderError:
    """Return the error for a model that wrote nothing, perhaps because its limit ended its reasoning.

    Without the limit it is this question that gets no answer: services withhold one also by an empty text.
    """
    if cut:
        return ProviderError(
            "The model spent its whole answer on thoughts: name a model that reasons less, or switch that off."
        )
    return AnswerWithheld("The model answered with nothing: ask in other words.")


def damage_error() -> ProviderError:
    """Return the error for a text that lost parts of characters, which a reader can ask for."""
    return AnswerWithheld("The model answered with damaged characters: ask again.")
