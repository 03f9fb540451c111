"""Reads what a model writes: sentences, list items, table rows and blocks of code, each whole.

Reasoning, citation marks, the refusal word and foreign addresses are removed from each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from chapterverse.text.sentences import Sentence, SentenceReader, strip_marks
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.links.address_filter import AddressFilter, strip_controls
from chapterverse_api.ext.check.links.known_text import SiteText
from chapterverse_api.ext.check.verifier import CitedRanges
from chapterverse_api.ext.models.citation_marks import CitationMarks
from chapterverse_api.ext.models.reasoning import (
    ReasoningFilter,
    in_plain_words,
    join_surrogates,
    refuses,
    without_end_mark,
)
from chapterverse_api.ext.models.wire import MAX_ANSWER_CHARS, length_error, silence_error

#: Characters of a sentence and of a block of code. A longer one ends the answer.
_MAX_SENTENCE_CHARS, _MAX_CODE_CHARS = 2_000, 8_000
_ITEM = re.compile(r"\s*(?:[-*+>|]|\d{1,3}[.)])\s")


@dataclass(frozen=True, slots=True)
class DraftSentence:
    """A sentence as it may be shown.

    Attributes:
        span: its text, with the ids that the model cites for it.
        sentence: what is to be checked; None for a quote and for the service's own words, which come as they are.
    """

    span: Span
    sentence: Sentence | None = None


class DraftReader:
    """Reads one draft of a model, or quotes, each complete.

    Attributes:
        refused: the model said that the passages hold no answer.
        restarts: how often an end mark of reasoning came without a start mark. All that was read before it was
            reasoning, and no part of the answer.
        is_cut: a limit of length ended the draft.
        is_open: the last sentence is a block of code without its end.
        text: what was read of a model's text, without reasoning.
    """

    def __init__(self, passages: Sequence[Passage], site: SiteText | None = None) -> None:
        self._links = AddressFilter(passages, site=site)
        self.refused = self.is_cut = self.is_open = False
        self.restarts, self.text = 0, ""
        self._marks, self._reasoning, self._length = CitationMarks(passages), ReasoningFilter(), 0
        self._begin()

    @property
    def is_over(self) -> bool:
        """Whether the answer is complete, so that further text is ignored."""
        return self.refused or self.is_cut

    def read(self, span: Span) -> Iterator[DraftSentence]:
        """Yield the sentences that this span completes. Raises as `Segments.read` does."""
        self._length += len(span.text)
        if self._length > MAX_ANSWER_CHARS:
            raise length_error()
        if span.kind == "prose":
            text = self._reasoning.read(strip_controls(span.text))
            if self._reasoning.restarted:
                self.restarts += 1
                self._begin()
            yield from self._read_prose(text, span.citations)
        else:
            yield from self._read_prose("", (), last=True)
            self._has_text = True
            yield DraftSentence(replace(span, text=self._links.without_foreign(span.text)))
        self.is_cut = self.is_cut or span.cut

    def end(self) -> Iterator[DraftSentence]:
        """Yield the sentences that remain. Raises `ProviderError` if a model wrote nothing."""
        if not self.refused:
            yield from self._read_prose(self._reasoning.read("", last=True), (), last=True)
            if not (self._has_text or self.refused):
                raise silence_error(self.is_cut)

    def _begin(self) -> None:
        self._sentences, self._cited = SentenceReader(), CitedRanges()
        self._has_text = False
        self.text = self._gap = ""
        # The ids of the sentence that announces the items and the code that follow.
        self._announced: tuple[str, ...] = ()

    def _read_prose(self, text: str, ids: tuple[str, ...], *, last: bool = False) -> Iterator[DraftSentence]:
        self.text += text
        self._cited.add(len(self._sentences.text) + len(text), ids)
        for sentence in self._sentences.read(text, last=last):
            yield from self._clean(sentence)
            if self.refused:
                return
        max_chars = _MAX_CODE_CHARS if self._sentences.is_code else _MAX_SENTENCE_CHARS
        is_too_long = not last and len(self._sentences.waiting) > max_chars
        if is_too_long:
            self.is_cut = True
            yield from self._clean(self._sentences.cut(max_chars))
        if last or is_too_long:
            self._sentences, self._cited = SentenceReader(), CitedRanges()

    def _clean(self, sentence: Sentence) -> Iterator[DraftSentence]:
        text = join_surrogates(self._sentences.text[sentence.start : sentence.end])
        if refuses(text, first=not self._has_text):
            self.refused = True
            return
        claimed = self._cited.find_ids(self._sentences.text, sentence)
        is_code = sentence.kind == "code"
        announces = not is_code and text.rstrip().endswith((":", "："))
        is_announced = is_code or _ITEM.match(text) is not None
        if not is_code:
            text, marked = self._marks.remove(without_end_mark(text))
            claimed = tuple(dict.fromkeys((*claimed, *marked)))
        if is_announced:
            claimed = claimed or self._announced
        if announces or not is_announced:
            self._announced = claimed if announces else ()
        self.is_open = is_code and text.rstrip()[-3:] not in ("```", "~~~")
        text = f"{self._gap}{self._links.without_foreign(in_plain_words(text))}"
        text = text if self._has_text else text.lstrip()
        self._gap = "" if text.strip() else text
        if text.strip():
            self._has_text = True
            plain_text = text.strip() if is_code else strip_marks(text)
            yield DraftSentence(Span(text, claimed), Sentence(0, len(text), plain_text, sentence.kind))
