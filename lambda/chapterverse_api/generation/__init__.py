"""Generators: passages to a draft answer. One protocol, its implementations beside it, chosen by name.

A generator proposes and `grounding` decides: no generator is trusted to cite.
"""

from __future__ import annotations

from collections.abc import Generator as Steps
from dataclasses import dataclass
from typing import Protocol

from chapterverse.errors import ConfigurationError
from chapterverse.evidence import Question
from chapterverse.settings import Settings


@dataclass(frozen=True, slots=True)
class Passage:
    """A source as generators and grounding see it.

    Attributes:
        id: the string that a segment cites.
        path: headings from the chapter down.
        text: Markdown, verbatim.
        section: the text with what stands around it in its section; the text itself where nothing more is known.
        terms: hashed terms of path and text, for what can be said without reading them again.
        rank: its value in the order of the passages, 0 to 1; evidence saturates, and can't order what is all likely.
        score: calibrated evidence, 0 to 1.
        url: where it stands; None for a selection from a page that the index does not hold.
    """

    id: str
    path: tuple[str, ...]
    text: str
    section: str
    terms: frozenset[int]
    rank: float
    score: float
    url: str | None
    chunk_id: str | None


@dataclass(frozen=True, slots=True)
class Task:
    """What to answer, and from what.

    Attributes:
        question: as the reader asked; empty for "explain this".
        words: its words as the index weighs them.
        passages: best first.
        language: BCP 47 tag of the answer.
    """

    question: str
    words: Question
    passages: tuple[Passage, ...]
    language: str


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a draft and the ids that it claims to rest on.

    Attributes:
        framing: our own words around the answer, which claim nothing of the documentation.
    """

    text: str
    citations: tuple[str, ...] = ()
    framing: bool = False


Draft = tuple[Span, ...]


class Generator(Protocol):
    @property
    def name(self) -> str: ...

    def generate(self, task: Task) -> Steps[str, None, Draft]:
        """Yield the draft's text as it comes, and return the whole with its claimed citations.

        Raises:
            ProviderError: the model could not be reached or broke off.
        """
        ...


def open_generator(settings: Settings) -> Generator:
    """Return the generator that `settings.generator` names.

    Raises:
        ConfigurationError: there is no such generator.
    """
    if settings.generator == "extractive":
        from chapterverse_api.generation.extractive import Extractive

        return Extractive()
    raise ConfigurationError(f"There is no generator named {settings.generator!r}: use extractive.")
