"""Reads a question: corrects its typing mistakes, and recognizes what kind of answer it asks for.

"What is a leaf bundle" asks for a definition of "leaf bundle", "hydrate vs prerender" for both sides of a comparison.
The words around a definition's subject say nothing of it, so the search is for the subject alone. A comparison is
searched whole: a search for its sides alone quoted fewer answering sentences, because these hold "difference" too. The
patterns of each language are data, in `frames.json`.

A pasted log line says things of one machine alone: values, times, ids, paths and stack frames. The docs hold the words
of a message, and never its numbers, so these must not count against a section.

Words that the index does not hold are corrected against those that it holds. It keeps hashed terms and no list of
words, so the search goes the other way round (Norvig, "How to Write a Spelling Corrector", 2007): every text one edit
away from an unknown word is a candidate, and one search for all of their terms at once returns chunks that hold those
which exist. So every store corrects alike, an index needs nothing beside its vectors, and a question whose words are
all known costs nothing.

An edit is a letter that is swapped with the next, doubled, dropped, added or replaced, and a space that is missing or
too many. Of several candidates the likeliest edit wins, then the more frequent word. Words that the index holds are not
corrected, nor are common words that these docs happen to lack ("latex" is not "later"), quotes, words that look like
code, words of fewer than four letters, and scripts without spaces. A word of the thesaurus keeps its letters ("bots"
are no "bits") and may lack a space ("symlinks").
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import Literal, NamedTuple, Self

from chapterverse.calibration import count_terms, question_terms
from chapterverse.model import SparseVector
from chapterverse.store import Snapshot
from chapterverse.text import lexical, thesaurus
from chapterverse.text.json_text import load_json
from chapterverse.text.stopwords import QUESTION_STOP_WORDS, STOP_WORDS, is_common

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

#: Letters of a word that is corrected, at least and at most, and words of a question, at most. A word grows by one.
_MIN_WORD_CHARS, _MAX_WORD_CHARS, _MAX_CORRECTED_WORDS = 4, 24, 4
#: A replaced or added letter makes another word of a short one too easily: `_MIN_WORD_CHARS` for edits that cost more.
_MAX_SURE_COST, _MIN_UNSURE_CHARS = 0.7, 5
#: Letters of the shortest word from which two added letters are taken away.
_MIN_TWO_EDITS_CHARS = 9
#: Letters of each part of a word that lacks a space.
_MIN_PART_CHARS = 3
#: Chunks that the search for candidates returns: each holds some.
_CHUNKS = 50
#: How unlikely each edit is. A first letter is seldom wrong.
_SWAPPED, _DOUBLED, _DROPPED, _ADDED, _NEIGHBOR, _REPLACED, _SPACE, _FIRST = 0.6, 0.5, 0.8, 0.8, 0.9, 1.1, 0.7, 0.5
#: How much likelier a common word is.
_COMMON = 0.4

# A plain word that stands alone: not part of an identifier, an option or an address.
_PLAIN = re.compile(r"(?<![\w./:@#$%&*=<>\\'’-])[^\W\d_]+(?:['’][^\W\d_]+)?(?![\w/:@#=<>(\\-]|[.'’]\w)")
_QUOTED = re.compile(r'`[^`\n]*`|"[^"\n]*"|“[^“”\n]*”|«[^«»\n]*»')
_NEXT = re.compile(r" ([^\W\d_]{2,24})(?![\w'’.-])")
_CAPITAL_INSIDE = re.compile(r"(?<=\w)[A-ZÀ-ÖØ-ÞА-Я]")
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абвгдежзийклмнопрстуфхцчшщъыьэюяё"
#: Letters beside each other on a keyboard, row by row, and vowels, which are mistaken for each other.
_ROWS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_VOWELS = frozenset("aeiouy")


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


class Edit(NamedTuple):
    """A text that may have been meant.

    Attributes:
        cost: how unlikely it is.
        end: where in the question the two words end that it replaces; 0 if it replaces one.
    """

    text: str
    cost: float
    end: int = 0


def correct(question: str, snapshot: Snapshot) -> str:
    """Return the question with its unknown words corrected as far as the index holds a likely one; else as it is.

    Raises:
        IndexFault: the index can't be read.
    """
    languages = snapshot.head.languages
    mistyped = list(_find_mistyped(question, languages, snapshot))[:_MAX_CORRECTED_WORDS]
    if not mistyped:
        return question
    candidates = [_candidates(word, question) for word in mistyped]
    index_words = _IndexWords.among({text for of_word in candidates for text in of_word}, languages, snapshot)
    parts, at = [], 0
    for word, of_word in zip(mistyped, candidates, strict=True):
        edit = index_words.likeliest(of_word)
        # The word may have been joined with the one before it.
        if edit and word.start() >= at:
            text = edit.text[:1].upper() + edit.text[1:] if word.group()[0].isupper() else edit.text
            parts += [question[at : word.start()], text]
            at = edit.end or word.end()
    return "".join([*parts, question[at:]])


def _find_mistyped(question: str, languages: Sequence[str], snapshot: Snapshot) -> Iterator[re.Match[str]]:
    """Yield the words that the index does not hold."""
    unquoted = _QUOTED.sub(lambda quoted: "`" * len(quoted.group()), question)
    plain = [m for m in _PLAIN.finditer(unquoted) if _MIN_WORD_CHARS <= len(m.group()) <= _MAX_WORD_CHARS]
    plain = [m for m in plain if not _CAPITAL_INSIDE.search(m.group()) and _alphabet(m.group().lower())]
    terms = [_whole_terms(m.group(), languages) for m in plain]
    # A remote store keeps what it counted: the search counts all these terms, and asks for them only once.
    counts = count_terms(question_terms(question, languages).union(*terms) if plain else (), snapshot)
    for match, of_word in zip(plain, terms, strict=True):
        if of_word and not any(counts[term] for term in of_word) and not is_common(_letters(match)):
            yield match


def _letters(word: re.Match[str]) -> str:
    return word.group().lower().replace("’", "'")


def _alphabet(word: str) -> str:
    """Return the alphabet that a word is written in; empty if that is none of ours."""
    if word[0] in _CYRILLIC:
        return _CYRILLIC
    return _LATIN if lexical.stem(word[0], "") in _LATIN else ""


def _whole_terms(word: str, languages: Iterable[str]) -> set[int]:
    """Return the whole term of a word in each language; none for a function word."""
    return {read.terms[0] for read in lexical.question_words(word, languages)}


def _candidates(mistake: re.Match[str], question: str) -> dict[str, Edit]:
    """Return every text that one edit makes of a word, the likeliest edit of each."""
    edits, word = dict[str, Edit](), _letters(mistake)
    letters_stand = next(thesaurus.find_synonyms(word), None) is not None
    following = _NEXT.match(question, mistake.end())
    # "book mark" is "bookmark".
    joined = [Edit(word + following.group(1).lower(), _SPACE, following.end())] if following else []
    for edit in (*_edits(word), *joined):
        if letters_stand and edit.text.replace(" ", "") != word and not edit.end:
            continue
        if edit.cost - _COMMON <= _MAX_SURE_COST and is_common(edit.text):
            edit = edit._replace(cost=edit.cost - _COMMON)
        if edit.cost <= _MAX_SURE_COST or len(word) >= _MIN_UNSURE_CHARS:
            previous = edits.setdefault(edit.text, edit)
            edits[edit.text] = edit if edit.cost < previous.cost else previous
    return edits


def _edits(word: str) -> Iterator[Edit]:
    """Yield the words that one mistake makes of a word, each with what the mistake costs."""
    letters = _alphabet(word)
    for at in range(len(word)):
        first = _FIRST * (at == 0)
        before, here, after = word[:at], word[at], word[at + 1 :]
        again = at > 0 and word[at - 1] == here
        yield Edit(before + after, (_DOUBLED if again else _ADDED) + first)
        if after and after[0] != here:
            yield Edit(before + after[0] + here + after[1:], _SWAPPED + first)
        yield Edit(before + here + here + after, _DOUBLED + first)
        for letter in letters:
            if letter != here:
                cost = _NEIGHBOR if letter in _neighbors(here) else _REPLACED
                yield Edit(before + letter + after, cost + first)
                yield Edit(before + letter + here + after, _DROPPED + first)
        if at:
            yield Edit(f"{before}'{here}{after}", _MAX_SURE_COST)
        if _MIN_PART_CHARS <= at <= len(word) - _MIN_PART_CHARS:
            yield Edit(f"{before} {here}{after}", _SPACE)
    for letter in letters:
        yield Edit(word + letter, _DROPPED)
    if len(word) >= _MIN_TWO_EDITS_CHARS:
        for a, b in combinations(range(1, len(word)), 2):
            yield Edit(word[:a] + word[a + 1 : b] + word[b + 1 :], 2 * _ADDED)


def _neighbors(letter: str) -> frozenset[str]:
    if letter in _VOWELS:
        return _VOWELS
    row = next((row for row in _ROWS if letter in row), "")
    at = row.find(letter)
    return frozenset(row[max(0, at - 1) : at + 2])


@dataclass(frozen=True, slots=True)
class _IndexWords:
    """The words of the candidates that the index holds.

    Attributes:
        terms_by_word: the whole terms of each candidate's words.
        counts: in how many chunks each of their terms occurs.
        text: the text of chunks that hold them, in lower case.
    """

    languages: Sequence[str]
    terms_by_word: Mapping[str, Set[int]]
    counts: Mapping[int, int]
    text: str

    @classmethod
    def among(cls, texts: Iterable[str], languages: Sequence[str], snapshot: Snapshot) -> Self:
        """Look up the words of these texts."""
        terms_by_word = {word: _whole_terms(word, languages) for text in texts for word in text.split()}
        terms = set[int]().union(*terms_by_word.values())
        ordered = tuple(sorted(terms))
        hits = snapshot.search_lexical(SparseVector(ordered, (1.0,) * len(ordered)), _CHUNKS) if terms else []
        index_terms = terms.intersection(t for hit in hits for t in hit.lexical.indices)
        text = "\n".join(hit.chunk.embed_text for hit in hits).lower()
        return cls(languages, terms_by_word, count_terms(index_terms, snapshot), text)

    def likeliest(self, edits: Mapping[str, Edit]) -> Edit | None:
        """Return the likeliest edit whose words are all in the index or function words; None if there is none."""
        counts = {text: min(map(self._count, text.split()), default=0) for text in edits}
        known = [text for text, count in counts.items() if count]
        best = min(known, key=lambda text: (edits[text].cost, -counts[text], text), default=None)
        return edits[best] if best else None

    def _count(self, word: str) -> int:
        if terms := self.terms_by_word[word]:
            count = max(self.counts.get(term, 0) for term in terms)
            # An apostrophe belongs to function words: "doesn't". A mistake may have the stem of another word.
            return count if count and "'" not in word and (is_common(word) or word in self.text) else 0
        codes = set(map(lexical.primary_subtag, self.languages))
        # Removing a letter from nearly any short word leaves a function word of one letter.
        return int(len(word) > 1 and any(word in STOP_WORDS.get(code, ()) for code in codes))
