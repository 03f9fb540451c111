"""Recognizes what kind of answer a question asks for by the words around its subject.

"What is a leaf bundle" asks for a definition of "leaf bundle", "hydrate vs prerender" for both sides of a comparison.
The words around what is defined say nothing of it, so it alone is searched for. A comparison is searched as it stands:
by its sides alone fewer sentences were quoted that answer, since these say "difference" too. The patterns of each
language are data, in `frames.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

#: Longer questions say more than their frame: characters.
LONGEST = 160
#: Marks of Markdown around words, and the addresses of links.
_MARKUP = re.compile(r"[*_`\[]|\](?:\([^()\s]*\))?")
_SENTENCES = re.compile(r"(?:[.!?:]\s+|[。！？]|\n)[\s>#+-]*")


@dataclass(frozen=True, slots=True)
class Frame:
    """A question without the words that only say what kind of answer it wants.

    Attributes:
        subjects: what is defined, or the sides that are compared.
    """

    kind: Literal["definition", "comparison"]
    subjects: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.subjects)


def frame_of(question: str, languages: Iterable[str]) -> Frame | None:
    """Return the frame of a question; None where it has none.

    Args:
        languages: those of the docs, BCP 47; English is always understood besides.
    """
    asked = question.strip(" \t?!.¿¡。？！").replace("’", "'")
    if len(asked) > LONGEST or "\n" in asked:
        return None
    tags, patterns = _tags(languages), _patterns()
    for kind in ("comparison", "definition"):
        for tag in tags:
            for pattern in patterns[kind].get(tag, ()):
                if match := pattern.fullmatch(asked):
                    subjects = tuple(subject.strip(" ,;:") for subject in match.groups())
                    if all(subjects):
                        return Frame("comparison" if kind == "comparison" else "definition", subjects)
    return None


def defined_in(text: str, language: str) -> Iterator[str]:
    """Yield what the sentences of a text say the meaning of: "leaf bundle" of "A _leaf bundle_ is a directory".

    Args:
        text: Markdown.
        language: its BCP 47 tag.
    """
    patterns = _patterns()["defining"].get(language.partition("-")[0].lower(), ())
    for sentence in _SENTENCES.split(_MARKUP.sub("", text)):
        for pattern in patterns:
            if match := pattern.match(sentence):
                yield match.group(1)


def lower_kinds(question: str, languages: Iterable[str]) -> frozenset[str]:
    """Return the content types that a question does not ask for, which rank below the documentation.

    News are asked for by words such as "changelog" or a version, generated reference by the name alone.
    """
    patterns = _patterns()["news"]
    dated = any(pattern.search(question[:LONGEST]) for tag in _tags(languages) for pattern in patterns.get(tag, ()))
    return frozenset({*([] if dated else ["news"]), *([] if len(question.split()) == 1 else ["api"])})


def _tags(languages: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys((*(tag.partition("-")[0].lower() for tag in languages), "en"))


@cache
def _patterns() -> Mapping[str, Mapping[str, tuple[re.Pattern[str], ...]]]:
    text = files("chapterverse_api.retrieval").joinpath("frames.json").read_text(encoding="utf-8")
    data: dict[str, dict[str, list[str]]] = json.loads(text)
    return {
        kind: {tag: tuple(re.compile(p, re.IGNORECASE) for p in patterns) for tag, patterns in of_kind.items()}
        for kind, of_kind in data.items()
    }
