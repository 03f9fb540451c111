"""Enriches the pages of one run: asks the model, tries its lines in a search, and widens chunks.

A line is kept if a search by its words finds the section that it was written for. The search is by words alone, over
all chunks of the next generation as they are without any expansion. It needs no vector, so it costs nothing, and no
generated question can help another one. Replies are kept by content, prompt and model: no page is paid for twice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

from chapterverse.build_cache import find_paid, keep_paid
from chapterverse.calibration import idf_of
from chapterverse.errors import ProviderError
from chapterverse.ext.enrichment.prompt import PageRequest, PageSection, ReplyRefused, SectionReply, place, read_reply
from chapterverse.ext.enrichment.setting import Enricher, EnricherSetting
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.indexing.additions import Enrichment
from chapterverse.model import PAGE, PERSONA, Chunk, Point, SparseVector, embed_hash
from chapterverse.progress import Progress, map_in_threads
from chapterverse.text import lexical, tokens
from chapterverse.text.markdown import plain

_SCHEMA = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, reply TEXT NOT NULL)"
#: A section must be among so many.
_MAX_RANK = 3
#: Calls at the same time.
_THREADS = 4
#: After so many failures in a row the model is not asked for the rest: a refused key refuses every page.
_MAX_FAILURES = 3
_RETRY = RetryPolicy(tries=4, total_seconds=120.0, once=True)
#: Share of a reply's limit that is written, for the estimate of a dry run.
_WRITTEN_SHARE = 0.5
#: Pages whose replies name other sections that are warned of one by one.
_MAX_NOTES = 5


@dataclass(slots=True)
class _Report:
    """What enrichment did in one run, counted while it goes on.

    Attributes:
        enriched: pages with a valid reply, those from the cache included.
        calls: replies that the model was asked for, in a dry run those that it would be asked for.
        failed: pages that are indexed without enrichment.
        questions: valid questions of the model; `questions_kept` of them widen a chunk.
        keywords: likewise.
        cost: estimated US dollars of the calls.
    """

    enriched: int = 0
    calls: int = 0
    failed: int = 0
    questions: int = 0
    questions_kept: int = 0
    keywords: int = 0
    keywords_kept: int = 0
    cost: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "cost": round(self.cost, 6)}

    def __str__(self) -> str:
        return (
            f"{self.enriched} pages enriched by {self.calls} calls for about ${self.cost:.4f} ({self.failed} failed), "
            f"{self.questions_kept} of {self.questions} questions and {self.keywords_kept} of {self.keywords} keywords "
            "kept"
        )


class Trial:
    """The chunks of the next generation by their words.

    Args:
        chunks: of the pages that were read.
        points: of all other pages.
        languages: those of the docs.
    """

    def __init__(self, chunks: Iterable[Chunk], points: Iterable[Point], languages: Sequence[str]) -> None:
        self._languages = languages
        self._sections: list[tuple[str, tuple[str, ...]]] = []
        self._numbers: defaultdict[tuple[str, tuple[str, ...]], list[int]] = defaultdict(list)
        self._chunk_ids: list[str] = []
        self._postings: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
        for chunk in chunks:
            self._add(chunk, _vector(chunk))
        for point in points:
            self._add(point.chunk, _vector(point.chunk) if point.chunk.expansion else point.lexical)

    def _add(self, chunk: Chunk, vector: SparseVector) -> None:
        if chunk.type == PERSONA:
            return
        number = len(self._sections)
        self._sections.append(place(chunk))
        self._numbers[place(chunk)].append(number)
        self._chunk_ids.append(chunk.chunk_id)
        for term, weight in zip(vector.indices, vector.values, strict=True):
            self._postings[term].append((number, weight))

    def idf(self, text: str) -> Mapping[int, float]:
        """Return the idf of the terms of a text."""
        return {term: self._idf(term) for term in lexical.query_vector(text, self._languages).indices}

    def chunk_of(self, query: str, section: PageSection) -> str | None:
        """Return the id of the section's chunk that the query finds, None if three other sections come first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for term in lexical.query_vector(query, self._languages).indices:
            idf = self._idf(term)
            for number, weight in self._postings.get(term, ()):
                scores[number] += idf * weight
        best = [n for n in self._numbers[section.place] if n in scores]
        if not best:
            return None
        top = max(best, key=lambda n: (scores[n], -n))
        better_places = {self._sections[n] for n, score in scores.items() if score > scores[top]} - {section.place}
        return self._chunk_ids[top] if len(better_places) < _MAX_RANK else None

    def _idf(self, term: int) -> float:
        return idf_of(len(self._postings.get(term, ())), len(self._sections))


def _vector(chunk: Chunk) -> SparseVector:
    return lexical.document_vector(chunk.heading_path, plain(chunk.text), chunk.language)


def enrich(
    chunks: Mapping[str, list[Chunk]],
    stored_chunks: Sequence[Chunk],
    setting: EnricherSetting,
    *,
    other_points: Iterable[Point],
    fingerprint: str,
    cap: int,
    progress: Progress,
    dry_run: bool = False,
) -> Enrichment:
    """Return the chunks of the pages that were read, with expansions; see `PageEnricher.enrich`."""
    pages = {path: page_chunks for path, page_chunks in chunks.items() if page_chunks and page_chunks[0].type == PAGE}
    widened = {**chunks, **dict(_reuse(pages, stored_chunks))}
    requests = [
        request
        for path, page_chunks in pages.items()
        if widened[path] is page_chunks and (request := PageRequest.of(page_chunks, setting.name)) is not None
    ]
    run = _EnrichmentRun(setting, dry_run)
    replies = run.replies(requests, progress)
    if replies:
        trial = Trial([c for page_chunks in chunks.values() for c in page_chunks], other_points, _languages(chunks))
        for path, sections in replies.items():
            widened[path] = _widen(pages[path], run.useful_lines(sections, trial), fingerprint, cap)
    return Enrichment(widened, run.report, frozenset(run.unfinished), tuple(run.warnings()))


def _reuse(pages: Mapping[str, list[Chunk]], stored_chunks: Sequence[Chunk]) -> Iterator[tuple[str, list[Chunk]]]:
    """Yield the pages that are stored with expansions and did not change since: they cost nothing without a cache."""
    by_page: defaultdict[str, dict[str, Chunk]] = defaultdict(dict)
    for chunk in stored_chunks:
        by_page[chunk.source_file_path][chunk.chunk_id] = chunk
    for path, page_chunks in pages.items():
        live = by_page.get(path, {})
        if live.keys() == {c.chunk_id for c in page_chunks} and any(c.expansion for c in live.values()):
            yield path, [_with(c, live[c.chunk_id].expansion, live[c.chunk_id].embed_hash) for c in page_chunks]


def _languages(chunks: Mapping[str, list[Chunk]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(page_chunks[0].language for page_chunks in chunks.values() if page_chunks)) or ("en",)


def _with(chunk: Chunk, expansion: str, embed_hash: str) -> Chunk:
    return replace(chunk, expansion=expansion, embed_hash=embed_hash) if expansion else chunk


def _widen(page_chunks: list[Chunk], lines: Mapping[str, list[str]], fingerprint: str, cap: int) -> list[Chunk]:
    """Return chunks with as many lines as fit under the cap."""
    widened = []
    for chunk in page_chunks:
        wide = chunk
        for line in lines.get(chunk.chunk_id, ()):
            longer = replace(wide, expansion=f"{wide.expansion}\n{line}" if wide.expansion else line)
            if tokens.fits(longer.expanded_text, cap):
                wide = longer
        widened.append(_with(wide, wide.expansion, embed_hash(fingerprint, wide.expanded_text)))
    return widened


class _EnrichmentRun:
    """The calls of one run, and their results."""

    def __init__(self, setting: EnricherSetting, dry_run: bool) -> None:
        self._setting, self._dry_run = setting, dry_run
        self._failures = 0
        self._reasons: defaultdict[str, list[str]] = defaultdict(list)
        self._notes: list[str] = []
        self.unfinished: set[str] = set()
        self.report = _Report()

    def replies(self, requests: Sequence[PageRequest], progress: Progress) -> dict[str, list[SectionReply]]:
        """Return the model's reply for each page, by path; pages that failed are left out."""
        texts = {request.path: self._paid_reply(request) for request in requests}
        uncached = [request for request in requests if texts[request.path] is None]
        if self._dry_run:
            self._count(uncached, [int(request.tokens * _WRITTEN_SHARE) for request in uncached])
        elif uncached:
            texts.update(self._ask_all(uncached, progress))
        replies: dict[str, list[SectionReply]] = {}
        for request in requests:
            text = texts[request.path]
            if text is not None and (sections := self._read(request, text)) is not None:
                replies[request.path] = sections
        self.report.enriched, self.report.failed = len(replies), sum(map(len, self._reasons.values()))
        return replies

    def _paid_reply(self, request: PageRequest) -> str | None:
        """Return the reply that an earlier run was given, None if there is none."""
        rows = [*find_paid(self._setting.cache, "SELECT reply FROM replies WHERE key = ?", request.key)]
        return rows[0][0] if rows and isinstance(rows[0][0], str) else None

    def _ask_all(self, requests: Sequence[PageRequest], progress: Progress) -> dict[str, str | None]:
        # Opened before the threads, so that a missing key is one error.
        model = self._setting.model
        texts: dict[str, str | None] = {}
        replies = map_in_threads(partial(self._ask, model), requests, _THREADS)
        for done, (request, text) in enumerate(zip(requests, replies, strict=True)):
            progress("Enriching pages", done, len(requests))
            texts[request.path] = text
        progress("Enriching pages", len(requests), len(requests))
        paid = [(request, text) for request in requests if (text := texts[request.path]) is not None]
        self._count([request for request, _ in paid], [tokens.count(text) for _, text in paid])
        return texts

    def _ask(self, model: Enricher, request: PageRequest) -> str | None:
        """Return the reply; None if the model can't be asked."""
        if self._failures >= _MAX_FAILURES:
            self._fail(request, "the model failed for other pages", again=True)
            return None
        try:
            text = _RETRY.run(lambda: model.write(request.instructions, request.text, request.schema, request.tokens))
        except ProviderError as error:
            self._failures += 1
            self._fail(request, str(error).rstrip("."), again=True)
            return None
        self._failures = 0
        keep_paid(self._setting.cache, _SCHEMA, "INSERT OR REPLACE INTO replies VALUES (?, ?)", [(request.key, text)])
        return text

    def _count(self, requests: Sequence[PageRequest], reply_tokens: Sequence[int]) -> None:
        if requests:
            prompt_tokens = sum(tokens.count(request.text) + tokens.count(request.instructions) for request in requests)
            self.report.calls = len(requests)
            self.report.cost = self._setting.model.cost(prompt_tokens, sum(reply_tokens))

    def _read(self, request: PageRequest, text: str) -> list[SectionReply] | None:
        try:
            sections, unknown = read_reply(text, request)
        except ReplyRefused as error:
            # The reply was paid for and stays in the cache: the same page is not asked for again.
            self._fail(request, str(error), again=False)
            return None
        if unknown:
            self._notes.append(
                f"{request.path}: the model's reply names {unknown} sections that were not asked for: left out."
            )
        return sections

    def _fail(self, request: PageRequest, reason: str, *, again: bool) -> None:
        self._reasons[reason].append(request.path)
        if again:
            self.unfinished.add(request.path)

    def useful_lines(self, sections: Sequence[SectionReply], trial: Trial) -> dict[str, list[str]]:
        """Return the lines by which a search finds their section, by the id of the chunk that they widen."""
        lines: defaultdict[str, list[str]] = defaultdict(list)
        for reply in sections:
            self.report.questions += len(reply.questions)
            self.report.keywords += len(reply.keywords)
            for question in reply.questions:
                chunk_id = trial.chunk_of(question, reply.section)
                if chunk_id and self._is_carried(question, reply.section, trial):
                    lines[chunk_id].append(question)
                    self.report.questions_kept += 1
            for keyword in reply.keywords:
                chunk_id = trial.chunk_of(f"{reply.section.heading} {keyword}", reply.section)
                if chunk_id:
                    lines[chunk_id].append(keyword)
                    self.report.keywords_kept += 1
        return lines

    def _is_carried(self, question: str, section: PageSection, trial: Trial) -> bool:
        first = section.chunks[0]
        return self._setting.model.carries(question, first.heading_path, section.text, first.language, trial.idf)

    def warnings(self) -> Iterator[str]:
        for reason, paths in self._reasons.items():
            if len(paths) == 1:
                yield f"{paths[0]} is indexed without enrichment: {reason}."
            else:
                yield f"{paths[0]} and {len(paths) - 1} more pages are indexed without enrichment: {reason}."
        yield from self._notes[:_MAX_NOTES]
        if len(self._notes) > _MAX_NOTES:
            yield f"The replies for {len(self._notes) - _MAX_NOTES} more pages name sections that were not asked for."
