"""Finds the ids that a generator cites for each sentence of its text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from chapterverse.text.sentences import Sentence, SentenceReader
from chapterverse_api.generation.draft import Span


class CitedRanges:
    """The ranges of a text, in order, and the ids that are cited for each."""

    def __init__(self) -> None:
        self._ranges: deque[tuple[int, int, tuple[str, ...]]] = deque()
        self._end = 0

    def add(self, end: int, ids: tuple[str, ...]) -> None:
        """Add the range from the end of the last one, with the ids that are cited for it."""
        self._ranges.append((self._end, end, ids))
        self._end = end

    def find_ids(self, text: str, sentence: Sentence) -> tuple[str, ...]:
        """Return the ids that are cited for any part of a sentence. Sentences must come in the order of the text."""
        cited: dict[str, None] = {}
        sentence_end = sentence.start + len(text[sentence.start : sentence.end].rstrip())
        while self._ranges and self._ranges[0][1] <= sentence.start:
            self._ranges.popleft()
        for start, end, ids in self._ranges:
            if start >= sentence_end:
                break
            if ids and text[max(start, sentence.start) : min(end, sentence_end)].strip():
                cited.update(dict.fromkeys(ids))
        return tuple(cited)


def sentences_with_ids(spans: Sequence[Span]) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Yield the sentences of spans, each with the ids that are cited for any part of it."""
    ranges, end = CitedRanges(), 0
    for span in spans:
        end += len(span.text)
        ranges.add(end, span.citations)
    text = "".join(span.text for span in spans)
    for sentence in SentenceReader().read(text, last=True):
        yield sentence, ranges.find_ids(text, sentence)
