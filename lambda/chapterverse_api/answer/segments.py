"""Reads a draft sentence by sentence, checks each and shows it at once, with the citations that hold.

Sentences, list items, table rows and blocks of code are read whole. Reasoning, citation marks, the refusal word and
foreign addresses are removed from each. A shown segment stays. Up to three segments wait for the first one that is
confirmed, and all of them if the reply may call a tool instead. If none is confirmed, the answer can still be refused
or given by quotes, because the reader has seen nothing of it. A sentence that needs a second vote waits until the
verdict or its deadline. The segments behind it wait too, so that none overtakes another.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from chapterverse.text.sentences import Sentence, SentenceReader, strip_marks
from chapterverse_api.check.links.address_filter import AddressFilter
from chapterverse_api.check.links.known_text import SiteText
from chapterverse_api.check.results import CheckedSentence, IdfFunction, VerifiedDraft
from chapterverse_api.check.verifier import CitedRanges, Verifier
from chapterverse_api.contract import Delta, Segment
from chapterverse_api.draft.citation_marks import CitationMarks
from chapterverse_api.draft.draft import MAX_ANSWER_CHARS, Span, damage_error, length_error, silence_error
from chapterverse_api.draft.passage import Passage
from chapterverse_api.draft.reasoning import (
    ReasoningFilter,
    in_plain_words,
    join_surrogates,
    refuses,
    strip_controls,
    without_end_mark,
)
from chapterverse_api.draft.requests import GenerationRequest

if TYPE_CHECKING:
    from chapterverse_api.answer.second_votes import SecondVotes, Vote

#: Characters of a sentence and of a block of code. A longer one ends the answer.
_MAX_SENTENCE_CHARS, _MAX_CODE_CHARS = 2_000, 8_000
#: Segments that wait for the first one that is confirmed, at most.
_MAX_WAITING_SEGMENTS = 3
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
    """Reads one draft.

    Attributes:
        refused: the model said that the passages hold no answer.
        restarts: how often an end mark of reasoning came without a start mark. All that was read before it was
            reasoning, and no part of the answer.
        is_cut: a limit of length ended the draft.
        is_open: the last sentence is a block of code without its end.
        text: what was read, without reasoning.
    """

    def __init__(self, passages: Sequence[Passage], site: SiteText | None = None) -> None:
        self._marks, self._links = CitationMarks(passages), AddressFilter(passages, site=site)
        self.refused = self.is_cut = self.is_open = False
        self.restarts = self._length = 0
        self._reasoning = ReasoningFilter()
        self._begin()

    @property
    def is_over(self) -> bool:
        """Whether the answer is complete, so that further text of the model is ignored."""
        return self.refused or self.is_cut

    def read(self, span: Span) -> Iterator[DraftSentence]:
        """Yield the sentences that this span completes.

        Raises:
            ProviderError: the model writes more than its limit.
        """
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
        """Yield the sentences that remain.

        Raises:
            ProviderError: the model wrote nothing.
        """
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


def check_sentence(
    verifier: Verifier, sentence: Sentence, cited_ids: Sequence[str], votes: SecondVotes | None
) -> tuple[CheckedSentence, Vote | None]:
    """Check one sentence of an answer or of a claim; return it with the open vote on its citations.

    Args:
        cited_ids: the ids that its author cites.
        votes: as for `Segments`.
    """
    checked = verifier.check(sentence, cited_ids)
    if votes is None or not checked.needs_second_vote:
        return checked, None
    return checked, votes.ask(verifier.document(checked), sentence.plain_text)


@dataclass(slots=True)
class _QueuedSegment:
    """A segment that was not shown yet; `vote` is the open vote on the citations of `sentence`."""

    span: Span
    sentence: CheckedSentence | None = None
    vote: Vote | None = None


class Segments:
    """The segments of one answer.

    Args:
        site: the rest of the site, whose addresses may stand in the answer too.
        votes: asks for second votes; None if the words decide.
        waits: whether all segments wait for the first one that is confirmed.

    Attributes:
        shown_spans: the segments that the reader has.
        draft_reader: reads the model's text.
        restarted: reasoning was shown as answer, before its end mark came.
    """

    def __init__(
        self,
        request: GenerationRequest,
        idf: IdfFunction,
        site: SiteText | None = None,
        *,
        note: str = "",
        votes: SecondVotes | None = None,
        waits: bool = False,
    ) -> None:
        self.draft_reader = DraftReader(request.passages, site)
        self.shown_spans: list[Span] = []
        self.restarted = False
        self._max_waiting = math.inf if waits else _MAX_WAITING_SEGMENTS
        self._request, self._idf, self._votes = request, idf, votes
        self._verifier = self._new_verifier()
        self._queue = [_QueuedSegment(Span(note, kind="framing"))] if note else []
        self._restarts = 0

    def read(self, span: Span) -> Iterator[Span]:
        """Yield the segments that can be shown after this span.

        Raises:
            ProviderError: the model writes more than its limit.
        """
        yield from self._check(self.draft_reader.read(span))
        yield from self._release_settled()

    def end(self) -> Iterator[Span]:
        """Yield the segments that remain.

        Raises:
            ProviderError: the model wrote nothing, or its text was damaged and nothing of it was shown.
        """
        yield from self._check(self.draft_reader.end())
        yield from self.settle()
        if not self.shown_spans and any(one.sentence and one.sentence.is_damaged for one in self._queue):
            raise damage_error()

    def settle(self) -> Iterator[Span]:
        """Wait for the open votes, and yield the segments that can be shown then."""
        for segment in self._queue:
            self._apply_vote(segment)
        yield from self._release_settled()

    def add(self, text: str) -> Iterator[Span]:
        """Yield the service's own words behind the answer."""
        fence = "\n```" if self.draft_reader.is_open else ""
        self._queue.append(_QueuedSegment(Span(f"{fence}\n\n{text}", kind="framing")))
        yield from self._release(len(self._queue))

    @property
    def verified(self) -> VerifiedDraft:
        """The result of the check for the shown segments."""
        verified = self._verifier.to_result(self.shown_spans)
        if not (self.draft_reader.is_cut and self.shown_spans):
            return verified
        return replace(verified, spans=(*self.shown_spans[:-1], replace(self.shown_spans[-1], cut=True)))

    def _check(self, sentences: Iterable[DraftSentence]) -> Iterator[Span]:
        for one in sentences:
            if self._restarts < self.draft_reader.restarts:
                self._restart()
            for segment in self._read(one.span, one.sentence):
                self._queue.append(segment)
                yield from self._release_settled()

    def _read(self, span: Span, sentence: Sentence | None) -> Iterator[_QueuedSegment]:
        if sentence:
            checked, vote = check_sentence(self._verifier, sentence, span.citations, self._votes)
            yield _QueuedSegment(_with_citations(span, checked), checked, vote)
        elif span.kind == "framing":
            yield _QueuedSegment(replace(span, citations=()))
        else:
            yield from map(_QueuedSegment, self._verifier.check_quote(span))

    def _apply_vote(self, segment: _QueuedSegment) -> None:
        """Wait for the vote on a segment, and remove its citations if the vote is against them."""
        vote, segment.vote = segment.vote, None
        if vote and segment.sentence and vote.rejects():
            self._verifier.reject(segment.sentence)
            segment.span = _with_citations(segment.span, segment.sentence)

    def _new_verifier(self) -> Verifier:
        # A sentence that repeats only the reader or a memory claims nothing of the documentation.
        reader_text = "\n\n".join((self._request.context, *self._request.memories))
        request = self._request
        return Verifier(request.passages, request.language, self._idf, context=reader_text, question=request.words)

    def _restart(self) -> None:
        """Drop the segments that turned out to be reasoning, unless they were shown."""
        self._restarts = self.draft_reader.restarts
        self._queue = [segment for segment in self._queue if segment.span.kind == "framing"]
        self.restarted = bool(self.shown_spans)
        if not self.shown_spans:
            self._verifier = self._new_verifier()

    def _release_settled(self) -> Iterator[Span]:
        """Yield the segments before the first open vote, unless they still wait for a confirmed one."""
        ready = 0
        for segment in self._queue:
            if segment.vote and not segment.vote.is_over:
                break
            self._apply_vote(segment)
            ready += 1
        before = [segment.span for segment in self._queue[:ready]]
        wait = sum(span.kind != "framing" for span in before) < self._max_waiting
        if self.shown_spans or not wait or any(span.check == "confirmed" for span in before):
            yield from self._release(ready)

    def _release(self, count: int) -> Iterator[Span]:
        ready, self._queue = self._queue[:count], self._queue[count:]
        for segment in ready:
            self.shown_spans.append(segment.span)
            yield segment.span


def _with_citations(span: Span, checked: CheckedSentence) -> Span:
    """Return a span with the citations that hold."""
    return replace(span, citations=checked.citations, check=checked.check)


def make_segment(span: Span) -> Segment:
    return Segment(text=span.text, citations=list(span.citations), kind=span.kind, check=span.check, mark=span.mark)


def make_delta(span: Span) -> Delta:
    return Delta(**make_segment(span).model_dump())
