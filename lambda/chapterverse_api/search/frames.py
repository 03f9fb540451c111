"""Recognizes what kind of answer a question asks for by the words around its subject.

"What is a leaf bundle" asks for a definition of "leaf bundle", "hydrate vs prerender" for both sides of a comparison.
The words around a definition's subject say nothing of it, so the search is for the subject alone. A comparison is
searched whole: a search for its sides alone quoted fewer answering sentences, because these hold "difference" too. The
patterns of each language are data, in `frames.json`.

A pasted log line says things of one machine alone: values, times, ids, paths and stack frames. The docs hold the words
of a message, and never its numbers, so these must not count against a section.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Literal

from chapterverse.text import lexical
from chapterverse.text.json_text import load_json
from chapterverse.text.stopwords import QUESTION_STOP_WORDS

#: Longer questions say more than their frame: characters.
_MAX_FRAME_CHARS = 160
#: Words of a question that is nothing but a name; none of them is a function word.
_NAME_WORDS = 3
#: Marks of Markdown around words, and the addresses of links.
_MARKUP = re.compile(r"[*_`\[]|\](?:\([^()\s]*\))?")
_SENTENCES = re.compile(r"(?:[.!?:]\s+|[。！？]|\n)[\s>#+-]*")

# A frame of Python, of the JVM and JavaScript, of Go and Rust.
_FRAME = (
    r"File \"[^\"\n]{1,200}\", line \d+(?:, in \S+)?|\bat \S{1,200} ?\([^()\n]{0,200}\)|\S{1,200}\.\w{1,5}:\d+(?::\d+)?"
)
_PAIR = r"\b[\w.-]{1,60}=(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[^\s,;\"']{1,200})"
_TIME = r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S{0,20})?|\b\d\d:\d\d:\d\d\S{0,10}"
_ID = r"\b0x[0-9a-fA-F]{4,}\b|\b(?=[a-f-]{0,20}\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b"
_PATH = r"(?<![\w/])(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\][\w.@-]{1,100}){2,}"
_NUMBER = r"(?<![\w.-])\d[\d.,]{0,20}(?:[kKMG]i?B|ms|[smhd%])?(?![\w-])"
_DETAIL = re.compile(f"{_FRAME}|{_PAIR}|{_TIME}|{_ID}|{_PATH}")
_DETAIL_OR_NUMBER = re.compile(f"{_DETAIL.pattern}|{_NUMBER}")


@dataclass(frozen=True, slots=True)
class QuestionFrame:
    """A question without the words that only say what kind of answer it wants.

    Attributes:
        subjects: what is defined, or the sides that are compared.
    """

    kind: Literal["definition", "comparison", "name"]
    subjects: tuple[str, ...]

    @property
    def text(self) -> str:
        return " ".join(self.subjects)


def read_frame(question: str, languages: Iterable[str]) -> QuestionFrame | None:
    """Return the frame of a question; None if it has none.

    Args:
        languages: the languages of the docs, BCP 47; English is always recognized too.
    """
    text = question.strip(" \t?!.¿¡。？！").replace("’", "'")
    if len(text) > _MAX_FRAME_CHARS or "\n" in text:
        return None
    tags = _tags(languages)
    kinds: tuple[Literal["comparison", "definition"], ...] = ("comparison", "definition")
    for kind in kinds:
        for pattern in (pattern for tag in tags for pattern in _patterns(kind, tag)):
            match = pattern.fullmatch(text)
            subjects = tuple(subject.strip(" ,;:") for subject in match.groups()) if match else ("",)
            if all(subjects):
                return QuestionFrame(kind, subjects)
    name = text.strip("\"'`")
    words = name.lower().split()
    function_words = frozenset().union(*(QUESTION_STOP_WORDS.get(tag, ()) for tag in tags))
    is_name = len(words) <= _NAME_WORDS and function_words.isdisjoint(words)
    return QuestionFrame("name", (name,)) if is_name and name else None


@lru_cache(maxsize=2048)
def find_definitions(text: str, language: str) -> tuple[str, ...]:
    """Return what the sentences of a text say the meaning of: "leaf bundle" of "A _leaf bundle_ is a directory".

    Args:
        text: Markdown.
        language: the BCP 47 tag of the text.
    """
    patterns = _patterns("defining", lexical.primary_subtag(language))
    sentences = _SENTENCES.split(_MARKUP.sub("", text))
    matches = (pattern.match(sentence) for sentence in sentences for pattern in patterns)
    return tuple(match.group(1) for match in matches if match)


def lower_kinds(question: str, languages: Iterable[str]) -> frozenset[str]:
    """Return the content types that a question does not ask for, which rank below the documentation.

    A question asks for news by words such as "changelog" or a version, for generated reference by the name alone.
    """
    patterns = (pattern for tag in _tags(languages) for pattern in _patterns("news", tag))
    dated = any(pattern.search(question[:_MAX_FRAME_CHARS]) for pattern in patterns)
    return frozenset({*([] if dated else ["news"]), *([] if len(question.split()) == 1 else ["api"])})


def drop_details(text: str, keep: Callable[[str], str]) -> str:
    """Return a text in which each detail of a log line is replaced by what `keep` returns of it.

    A number is one only beside another detail: a question may well ask for version 2.
    """
    return _DETAIL_OR_NUMBER.sub(lambda detail: f" {keep(detail.group())} ", text) if _DETAIL.search(text) else text


def _tags(languages: Iterable[str]) -> dict[str, None]:
    return dict.fromkeys((*map(lexical.primary_subtag, languages), "en"))


def compile_patterns() -> None:
    """Compile the patterns of every language, so that `scripts/precompile.py` can store them."""
    for kind, by_language in _sources().items():
        for tag in by_language:
            _patterns(kind, tag)


@cache
def _patterns(kind: str, tag: str) -> tuple[re.Pattern[str], ...]:
    # A question needs those of two languages at most; compiling all of them takes longer than the rest of its search.
    return tuple(re.compile(source, re.IGNORECASE) for source in _sources()[kind].get(tag, ()))


@cache
def _sources() -> Mapping[str, Mapping[str, Sequence[str]]]:
    data: dict[str, dict[str, list[str]]] = load_json("chapterverse_api.search", "frames.json")
    return data
