"""The service's own sentences in the widget's languages, which `phrases.json` holds."""

from __future__ import annotations

from dataclasses import dataclass

from chapterverse.text.json_text import load_json
from chapterverse.text.lexical import primary_subtag


@dataclass(frozen=True, slots=True)
class Phrases:
    """The phrases of one language.

    Attributes:
        may_help: introduces short quotes of several sections, of which one may answer the question.
        choice: asks which of several sections is meant.
        refused: the answer if the docs hold none.
        refused_here: the answer if the part of them that the request is limited to holds none.
        selection: chapter name of a selection from an unknown page.
        other_language: introduces an answer from pages in other languages.
        cut: ends an answer that reached its maximum length.
        more: states how much a quote leaves out of a list, a table or a paragraph, and links to its section.
        purpose: answers small talk, and questions about something else entirely.
        curated: introduces an answer from the FAQ of the docs' authors.
        beginning: headings under which docs begin, with "; " between them.
        generic: headings that say nothing about their sections, as their words in lower case, with "; " between them.
    """

    may_help: str
    choice: str
    refused: str
    refused_here: str
    selection: str
    other_language: str
    cut: str
    more: str
    purpose: str
    curated: str
    beginning: str
    generic: str


_PHRASES = {tag: Phrases(**texts) for tag, texts in load_json("chapterverse_api", "phrases.json").items()}

#: BCP 47 tags of the languages.
PHRASE_LANGUAGES = tuple(_PHRASES)


def refusal(language: str, *, limited: bool) -> str:
    """Return what is said without an answer, to a request that is limited to a part of the docs or to all of them."""
    texts = for_language(language)
    return texts.refused_here if limited else texts.refused


def for_language(language: str) -> Phrases:
    """Return the phrases for a BCP 47 tag, English by default."""
    return _PHRASES.get(primary_subtag(language), _PHRASES["en"])
