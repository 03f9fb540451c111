"""A draft: text in spans, with the citations that its generator gives."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Literal, TypeAlias

#: What a quote leaves out between two blocks, or before its first sentence or line; begins each line that states it.
OMISSION = "…"

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


def to_spans(texts: Generator[str, None, bool]) -> Generator[Span, None, None]:
    """Yield a model's text as spans; `texts` returns whether its limit of length ended it, and is closed at the end."""
    with closing(texts):
        while True:
            try:
                yield Span(next(texts))
            except StopIteration as end:
                if end.value:
                    yield Span("", cut=True)
                return
