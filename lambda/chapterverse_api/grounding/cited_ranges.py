"""The ids of passages that a generator claims for the parts of its text."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from chapterverse.text.sentences import Sentence, SentenceReader
from chapterverse_api.generation.draft import Span


class ClaimedIds:
    """The ids that a generator claims for parts of its text."""

    def __init__(self) -> None:
        self._parts: deque[tuple[int, int, tuple[str, ...]]] = deque()
        self._end = 0

    def add(self, end: int, ids: tuple[str, ...]) -> None:
        """Take the ids that are claimed for all text up to `end`."""
        self._parts.append((self._end, end, ids))
        self._end = end

    def of(self, text: str, sentence: Sentence) -> tuple[str, ...]:
        """Return the ids that are claimed for any part of a sentence. Sentences must come in the order of the text."""
        claimed: dict[str, None] = {}
        end = sentence.start + len(text[sentence.start : sentence.end].rstrip())
        while self._parts and self._parts[0][1] <= sentence.start:
            self._parts.popleft()
        for start, stop, ids in self._parts:
            if start >= end:
                break
            if ids and text[max(start, sentence.start) : min(stop, end)].strip():
                claimed.update(dict.fromkeys(ids))
        return tuple(claimed)


def sentences_with_ids(spans: Sequence[Span]) -> Iterator[tuple[Sentence, tuple[str, ...]]]:
    """Yield the sentences of spans, each with the ids that are claimed for any part of it."""
    claims, reader, end = ClaimedIds(), SentenceReader(), 0
    for span in spans:
        end += len(span.text)
        claims.add(end, span.citations)
    text = "".join(span.text for span in spans)
    for sentence in reader.read(text, last=True):
        yield sentence, claims.of(text, sentence)
