"""Compares an answer's quotes with the place that answers: a row states its block (`begins`) and its `key`.

The key is the sentence, item, row or line of code that answers. White space, markup and the targets of links are not
compared, because they differ between a source and its built page; nor are the roles of reStructuredText and MyST: a
page shows ``Client`` for ``:class:`~httpx.Client```.

    begins       the answering block is quoted
    key          the sentence that answers is quoted
    key.first    it is in the first quote
    key.marked   it is what an answer's first quote marks, or half of the shorter of both is the same
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any

from chapterverse.text.markdown import plain

_LETTERS = re.compile(r"[^\W_]+")
_ENTITY = re.compile(r"&[a-z]+;")
#: A role of reStructuredText or MyST and its text, or the last name of a path after a tilde; and a link to a target.
_ROLE = re.compile(
    r"(?::[a-z][\w:+-]{0,80}:|\{[a-z][\w:+-]{0,80}\})`(?:~[\w.]{0,200}\.(?=\w)|[~!])?([^`<]*)(?:<[^`<>]*>)?`"
    r"|`([^`<]+)<[^`<>]+>`__?"
)
_ITEM = re.compile(r"[\s>]*(?:[-*+]|\d{1,9}[.)])\s")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
#: A line that states the omissions of a quote.
_CUT = "…"
#: Shorter lines may occur twice: a label, a closing brace.
_MIN_REPEATED_WORDS = 6


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The place of the answer to a question.

    Attributes:
        key: the sentence, item, row or line that answers.
        begins: the beginning of the block around the key.
    """

    key: str
    begins: str = ""

    def figures(self, segments: Sequence[Mapping[str, Any]]) -> dict[str, float]:
        """Return the figures of an answer by name, 0 or 1 each.

        Args:
            segments: the segments of the response; those of kind `quote` count, or if there are none all that cite.
        """
        texts = quoted_texts(segments)
        bare_key, beginning, bare_texts = bare(self.key), bare(self.begins), [bare(t) for t in texts]
        marks = [bare(s["mark"]) for s in segments if s.get("mark")][:1]
        return {
            "begins": float(any(beginning in text for text in bare_texts)),
            "key": float(any(bare_key in text for text in bare_texts)),
            "key.first": float(any(bare_key in text for text in bare_texts[:1])),
            "key.marked": float(any(same(bare_key, mark) for mark in marks)),
        }


def quoted_texts(segments: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the texts of an answer's quotes; if no segment is one, runs of segments with one citation."""
    if exact := [s["text"] for s in segments if s.get("kind") == "quote"]:
        return exact
    runs = groupby((s for s in segments if s["citations"]), key=lambda segment: segment["citations"])
    return ["".join(segment["text"] for segment in run) for _, run in runs]


def bare(text: str) -> str:
    """Return a text's letters and digits in lower case, without the targets of its links."""
    visible_text = _ROLE.sub(lambda role: role.group(1) or role.group(2) or "", text)
    return "".join(_LETTERS.findall(_ENTITY.sub(" ", plain(visible_text)))).casefold()


def same(one: str, other: str) -> bool:
    """Whether one bare text holds half of the other, shorter one: a key may be a line, and end within a sentence."""
    if not one or not other:
        return False
    match = SequenceMatcher(None, one, other, autojunk=False).find_longest_match()
    return match.size >= min(len(one), len(other)) / 2


def cut_in_silence(quote: str, section: str) -> int:
    """Return how many lists, tables, blocks of code and announcements of a section a quote cuts without saying so.

    Args:
        section: the whole section, as it is quoted.
    """
    lines = {line.strip() for line in quote.split("\n")}
    stated = any(line.startswith(_CUT) for line in lines)
    # A line that occurs twice in a section, such as a closing brace, doesn't tell which place is quoted.
    counts = Counter(line.strip() for line in section.split("\n"))
    groups = [[p in lines for p in parts if counts[p] == 1] for parts in _groups(section)]
    silent = 0 if stated else sum(0 < sum(flags) < len(flags) for flags in groups)
    paragraphs = [p.strip() for p in re.split(r"\n[ \t]*\n", quote) if p.strip()]
    open_ended = bool(paragraphs) and paragraphs[-1].endswith((":", "：", ":**"))
    ends_there = bare(section).endswith(bare(paragraphs[-1])) if paragraphs else True
    return silent + (open_ended and not ends_there)


def _groups(section: str) -> Iterator[list[str]]:
    """Yield the items of each list, the rows of each table, the lines of each block of code and each definition."""
    group, kind, fence = list[str](), "", ""
    for line in section.split("\n"):
        mark = _FENCE.match(line)
        text = line.strip()
        if fence:
            group.append(text)
            if text.startswith(fence) and not text.strip(fence[0]):
                yield [part for part in group if part]
                group, kind, fence = [], "", ""
            continue
        line_kind = "fence" if mark else "table" if text.startswith("|") else "list" if _ITEM.match(line) else ""
        if line_kind == "list" or line_kind == kind == "table":
            pass
        elif line_kind or (text and not (kind == "list" and line.startswith("  "))):
            if group:
                yield group
            group, kind = [], ""
        if mark and kind != "list":
            group, kind, fence = [text], "fence", mark.group(1)
        elif line_kind in ("list", "table"):
            if kind != line_kind and group:
                yield group
                group = []
            kind = line_kind
            group.append(text)
    if group:
        yield group


def repeats(texts: Sequence[str]) -> int:
    """Return how many lines of at least six words occur in more than one quote."""
    lines = [{bare(line) for line in text.split("\n") if len(line.split()) >= _MIN_REPEATED_WORDS} for text in texts]
    return sum(map(len, lines)) - len(set().union(*lines))
