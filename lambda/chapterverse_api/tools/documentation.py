"""The tools of every site: search the documentation, read it, ask it, and verify a claim against it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from chapterverse.calibration import read_weights
from chapterverse.errors import InputError
from chapterverse.model import Head
from chapterverse.store import Snapshot
from chapterverse.text.sentences import Sentence, split
from chapterverse_api import rejections
from chapterverse_api.answering.models import TurnModels, max_search_cost
from chapterverse_api.contract import ChatQuery, ChatResponse, Nearest, Question, RequestModel, ResponseModel
from chapterverse_api.generation import Passage
from chapterverse_api.grounding import SourceVerdict, Verifier
from chapterverse_api.index import addresses
from chapterverse_api.index.site_index import SiteIndex
from chapterverse_api.observability.query_state import search_progress
from chapterverse_api.retrieval.candidates import Candidate
from chapterverse_api.retrieval.passages import chosen, passages
from chapterverse_api.retrieval.scope import ScopedResults, search_in_scope
from chapterverse_api.tools.sections import SectionText, cut_to, find_page, json_tokens, tokens_of
from chapterverse_api.tools.types import Tool, ToolContext, ToolRegistry, tool_of
from chapterverse_api.validation import checked

#: Sections of a search at most, whatever the budget.
_RESULTS = 20
#: Tokens around the results of a search, and around each quote.
_ENVELOPE = 80
#: Sentences of a claim: each is searched for.
SENTENCES = 5
#: Sections that a sentence of a claim is compared with.
_COMPARED = 8
#: Where to look on, where nothing was found.
_NEAREST = 3
#: Addresses of sections that are left, as a page may have hundreds.
_LISTED = 20

Url = Annotated[str, StringConstraints(min_length=1, max_length=2048)]
MaxTokens = Annotated[int, Field(ge=200, le=20_000, description="Most cl100k tokens of the result, estimated.")]
DocsVersion = Annotated[
    str | None, Field(max_length=64, description="Docs version; the only one, or the default one, if left out.")
]
Language = Annotated[str | None, Field(max_length=35, description="BCP 47 tag of the pages to search, such as de.")]
#: Validated by the contract of the API, whose schema of all levels of nesting would fill a model's context.
RawFilters = Annotated[
    dict[str, Any],
    Field(
        description='Conditions on fields, such as {"tags": ["linux"], "url": "https://docs.example/guide/"}. Fields: '
        "url (a prefix), chapter_title, content_type, tags, language, created_at, source_file_path. Operators: $eq, "
        "$in, $prefix, $contains, $gt, $gte, $lt, $lte, $and, $or."
    ),
]


class SearchArguments(RequestModel):
    query: Annotated[Question, Field(description="A question or keywords.")]
    version: DocsVersion = None
    language: Language = None
    filters: RawFilters = Field(default_factory=dict)
    max_tokens: MaxTokens = 4000


class ReadArguments(RequestModel):
    url: Annotated[Url, Field(description="Of a page or, with an anchor, of a section, as search_docs returns it.")]
    max_tokens: MaxTokens = 4000
    offset: Annotated[int, Field(ge=0, le=2**31, description="Where to go on: next_offset of the result before.")] = 0


class AskArguments(RequestModel):
    question: Annotated[Question, Field(description="One question, in full.")]
    version: DocsVersion = None
    language: Language = None
    filters: RawFilters = Field(default_factory=dict)
    page_url: Annotated[Url | None, Field(description="The page that the question is about, if there is one.")] = None


class ClaimArguments(RequestModel):
    claim: Annotated[
        str,
        StringConstraints(min_length=1, max_length=2000),
        Field(description=f"A statement about the product, one sentence or at most {SENTENCES}."),
    ]
    urls: Annotated[
        list[Url], Field(max_length=10, description="Pages or sections to check against; all if left out.")
    ] = Field(default_factory=list)
    version: DocsVersion = None
    language: Language = None


class QuotedSection(ResponseModel):
    """A section with words of it. Every result of a tool is made of these."""

    url: Annotated[str, Field(description="Of the section, with its anchor.")]
    chapter: str
    section: str | None
    quote: str
    version: str
    generation: int


class SearchResult(QuotedSection):
    score: Annotated[float, Field(ge=0, le=1, description="Evidence that it speaks of the query.")]
    language: str
    cut: Annotated[bool, Field(description="Whether read_section has more of it.")]


class SearchResults(ResponseModel):
    results: list[SearchResult]
    answerable: Annotated[
        Literal["yes", "perhaps", "no"], Field(description="Whether the documentation seems to answer the query.")
    ]
    left_out: Annotated[int, Field(description="Further sections that max_tokens has no room for.")]
    searched_as: Annotated[str | None, Field(description="The query with its mistakes corrected.")]
    degraded_reason: str | None


class SectionPlace(ResponseModel):
    url: str
    section: str | None
    tokens: int


class Remainder(ResponseModel):
    """What a budget left out; the first twenty sections are listed."""

    tokens: int
    sections: list[SectionPlace]


class ReadResult(ResponseModel):
    url: str
    chapter: str
    sections: Annotated[list[QuotedSection], Field(description="In order, with their Markdown as quote.")]
    next_offset: Annotated[int | None, Field(description="offset of the next call; null at the end.")]
    left: Remainder
    version: str
    generation: int


class Citation(QuotedSection):
    id: str


class AnswerSegment(ResponseModel):
    text: str
    citations: Annotated[list[str], Field(description="Ids of citations that carry it.")]
    check: Literal["confirmed", "unconfirmed", "none"]


class Answer(ResponseModel):
    status: Literal["answered", "partial", "not_in_docs", "degraded"]
    answer: str
    segments: Annotated[list[AnswerSegment], Field(description="The answer in pieces, each checked.")]
    citations: list[Citation]
    nearest: list[Nearest]
    grounding_confidence: Annotated[float, Field(ge=0, le=1)]
    degraded_reason: str | None
    turn_id: str
    version: str
    generation: int


Verdict = Literal["supported", "contradicted", "not_found"]


class Statement(ResponseModel):
    """A sentence of a claim, and what the documentation says of it. Without a verdict it states nothing."""

    text: str
    verdict: Verdict | None
    quote: str | None
    url: str | None
    chapter: str | None
    section: str | None
    confidence: Annotated[float, Field(ge=0, le=1)]


class ClaimVerdict(ResponseModel):
    verdict: Annotated[
        Verdict,
        Field(
            description="supported: a section says so. contradicted: a section speaks of the same and says otherwise. "
            "not_found: no section was found to say it."
        ),
    ]
    quote: Annotated[str | None, Field(description="The words that decide; null where nothing was found.")]
    url: str | None
    chapter: str | None
    section: str | None
    confidence: Annotated[float, Field(ge=0, le=1, description="Probability that the documentation says the claim.")]
    statements: list[Statement]
    nearest: Annotated[list[Nearest], Field(description="Where to look on, where nothing was found.")]
    version: str
    generation: int
    degraded_reason: str | None


def search_docs(asked: SearchArguments, context: ToolContext) -> SearchResults:
    """Search the official documentation. Returns the best sections with quotes and addresses, within a budget of
    tokens. Call it first, and read_section for all of a section."""
    found, snapshot = _search(_query(asked.query, asked), context)
    index, head = context.service.resources.index, snapshot.head
    results, left = list[SearchResult](), asked.max_tokens - _ENVELOPE
    kept = chosen(found.found.candidates, _RESULTS)
    for candidate in kept:
        result = _result(candidate, index, head)
        size = json_tokens(result)
        if size > left and not results:
            quote = cut_to(result.quote, max(0, left - (size - tokens_of(result.quote))))
            result, size = result.model_copy(update={"quote": quote, "cut": True}), left
        if size > left:
            break
        results.append(result)
        left -= size
    return SearchResults(
        results=results,
        answerable=found.found.verdict,
        left_out=len(kept) - len(results),
        searched_as=found.found.searched if found.found.searched != asked.query else None,
        degraded_reason=found.found.degraded,
    )


def _result(candidate: Candidate, index: SiteIndex, head: Head) -> SearchResult:
    chunk = candidate.chunk
    return SearchResult(
        url=index.public_url(chunk, head),
        chapter=chunk.chapter_title,
        section=chunk.section_heading,
        quote=chunk.text,
        version=head.version,
        generation=head.generation,
        score=round(candidate.evidence, 4),
        language=chunk.language,
        cut=False,
    )


def read_section(asked: ReadArguments, context: ToolContext) -> ReadResult:
    """Read a page or one section of the official documentation as Markdown, within a budget of tokens. Says what is
    left and how to go on."""
    snapshot, sections = find_page(asked.url, context.service.resources.index)
    reading = _Reading(asked.max_tokens - _ENVELOPE, asked.offset)
    read = [part for one in sections if (part := reading.take(one))]
    if not read:
        raise InputError("There is nothing at that offset: the text ends before it.", field="offset")
    head, first = snapshot.head, sections[0].first
    whole = sum(len(one.text) for one in sections)
    end = asked.offset + sum(len(part.text) for part in read)
    rest = [replace(one, text=one.text[max(0, end - start) :]) for start, one in _placed(sections)]
    rest = [one for one in rest if one.text]
    return ReadResult(
        url=sections[0].url if "#" in asked.url else sections[0].url.partition("#")[0],
        chapter=first.chapter_title,
        sections=[
            _quoted(part.url, part.first.chapter_title, part.first.section_heading, part.text, head) for part in read
        ],
        next_offset=end if end < whole else None,
        left=Remainder(
            tokens=sum(tokens_of(one.text) for one in rest),
            sections=[
                SectionPlace(url=one.url, section=one.first.section_heading, tokens=tokens_of(one.text))
                for one in rest[:_LISTED]
            ],
        ),
        version=head.version,
        generation=head.generation,
    )


def _placed(sections: Sequence[SectionText]) -> list[tuple[int, SectionText]]:
    """Return each section with the number of characters before it."""
    starts, at = list[int](), 0
    for one in sections:
        starts.append(at)
        at += len(one.text)
    return list(zip(starts, sections, strict=True))


@dataclass(slots=True)
class _Reading:
    """Takes sections in order, from so many characters on, until a budget of tokens is used."""

    left: int
    skip: int
    ended: bool = False

    def take(self, one: SectionText) -> SectionText | None:
        """Return what fits of a section; None of one that lies before the start or behind the end."""
        text = one.text[self.skip :]
        self.skip = max(0, self.skip - len(one.text))
        if not text or self.ended:
            return None
        room = self.left - _ENVELOPE
        piece = cut_to(text, room) if room > 0 else ""
        self.left -= _ENVELOPE + tokens_of(piece)
        self.ended = len(piece) < len(text)
        return replace(one, text=piece) if piece else None


def ask_docs(asked: AskArguments, context: ToolContext) -> Answer:
    """Ask the official documentation a question. Returns an answer whose sentences were each checked against the
    sections that they cite, or says that the documentation holds none."""
    query = _query(asked.question, asked, page_url=asked.page_url)
    *_, response = context.service.chat(query, deadline=context.deadline, origins=context.origins)
    if not isinstance(response, ChatResponse):
        raise TypeError("An answer ended without its last part.")
    head = context.service.resources.index.snapshot(query.docs_version, query.page_url).head
    cited = {i for segment in response.segments for i in segment.citations}
    return Answer(
        status=response.status,
        answer=response.response,
        segments=[AnswerSegment(text=one.text, citations=one.citations, check=one.check) for one in response.segments],
        citations=[
            Citation(id=s.id, **_quoted(s.url or "", s.chapter, s.section, s.snippet, head).model_dump())
            for s in response.source_chunks
            if s.id in cited
        ],
        nearest=response.nearest,
        grounding_confidence=response.grounding_confidence,
        degraded_reason=response.degraded_reason,
        turn_id=response.turn_id,
        version=head.version,
        generation=head.generation,
    )


def verify_claim(asked: ClaimArguments, context: ToolContext) -> ClaimVerdict:
    """Check a statement against the official documentation before you rely on it. Returns supported, contradicted or
    not_found, with the words and the address of the section that decides."""
    sentences = [one for one in split(asked.claim) if any(c.isalnum() for c in one.said)]
    if len(sentences) > SENTENCES:
        raise InputError(
            f"claim must hold at most {SENTENCES} sentences: send the others by themselves.", field="claim"
        )
    index = context.service.resources.index
    filters = {"url": {"$in": _addresses(asked, index)}} if asked.urls else {}
    checks = [_Check.of(one, asked, filters, context) for one in sentences]
    if not any(check.said.claims for check in checks):
        raise InputError("claim states nothing that could be checked: write it as a sentence.", field="claim")
    head = checks[0].head
    statements = [check.statement() for check in checks]
    # One contradiction makes a claim wrong, and one sentence that is not found leaves it open.
    order = ("contradicted", "not_found", "supported")
    deciding = min((s for s in statements if s.verdict), key=lambda s: order.index(s.verdict or ""))
    return ClaimVerdict(
        verdict=deciding.verdict or "not_found",
        quote=deciding.quote,
        url=deciding.url,
        chapter=deciding.chapter,
        section=deciding.section,
        confidence=min(s.confidence for s in statements if s.verdict),
        statements=statements,
        nearest=next((c.nearest(index) for c in checks if c.said.outcome == "silent"), []),
        version=head.version,
        generation=head.generation,
        degraded_reason=next((c.results.found.degraded for c in checks if c.results.found.degraded), None),
    )


@dataclass(frozen=True, slots=True)
class _Check:
    """One sentence of a claim, and what the check of answers says of it.

    Attributes:
        kept: what was found, one of each section, and `sources` as the check reads it.
    """

    sentence: Sentence
    results: ScopedResults
    head: Head
    kept: Sequence[Candidate]
    sources: Sequence[Passage]
    said: SourceVerdict

    @classmethod
    def of(cls, sentence: Sentence, asked: ClaimArguments, filters: dict[str, Any], context: ToolContext) -> _Check:
        query = _query(sentence.said, asked, filters=filters)
        results, snapshot = _search(query, context)
        index = context.service.resources.index
        kept = chosen(results.found.candidates, _COMPARED)
        pages = {path: snapshot.page(path) for path in {c.chunk.source_file_path for c in kept}}
        sources = passages(kept, lambda chunk: index.public_url(chunk, snapshot.head), pages)
        language = kept[0].chunk.language if kept else snapshot.head.languages[0]
        verifier = Verifier(sources, language, lambda text: read_weights(text, snapshot.head.languages, snapshot))
        return cls(sentence, results, snapshot.head, kept, sources, verifier.consult(sentence))

    def statement(self) -> Statement:
        said = self.said
        at = next((n for n, source in enumerate(self.sources) if source.id == said.id), None)
        chunk = None if at is None else self.kept[at].chunk
        verdicts: dict[str, Verdict] = {"supports": "supported", "contradicts": "contradicted", "silent": "not_found"}
        return Statement(
            text=self.sentence.said,
            verdict=verdicts[said.outcome] if said.claims else None,
            quote=said.quote if chunk else None,
            url=None if at is None else self.sources[at].url,
            chapter=chunk.chapter_title if chunk else None,
            section=chunk.section_heading if chunk else None,
            confidence=round(said.probability, 4),
        )

    def nearest(self, index: SiteIndex) -> list[Nearest]:
        chunks = [candidate.chunk for candidate in self.kept[:_NEAREST]]
        return [
            Nearest(chapter=c.chapter_title, section=c.section_heading, url=index.public_url(c, self.head))
            for c in chunks
        ]


def _addresses(asked: ClaimArguments, index: SiteIndex) -> list[str]:
    """Return the index's addresses of the pages and sections that a claim is checked against."""
    held = list[str]()
    for url in asked.urls:
        snapshot = index.snapshot(asked.version, url)
        published = index.published_url(url, snapshot.head)
        own = [at for at in addresses.on_page(published, snapshot) if "#" not in published or at == published]
        if not own:
            raise InputError("urls holds an address that this documentation does not have.", field="urls")
        held += own
    return held


def _query(text: str, asked: Any, **more: Any) -> ChatQuery:
    """Return a query of the API, validated as such."""
    fields = {"version": asked.version, "language": asked.language, "filters": getattr(asked, "filters", {}), **more}
    return checked(query=text, **fields)


def _search(query: ChatQuery, context: ToolContext) -> tuple[ScopedResults, Snapshot]:
    """Search within the day's budget, as for an answer."""
    resources = context.service.resources
    snapshot = resources.index.snapshot(query.docs_version)
    with resources.budget.setting_aside(max_search_cost(query.query or "", resources.models.prices)) as turn_budget:
        models = TurnModels.of(resources.models, turn_budget)
        parts = models.embedder, models.reranker, context.deadline
        with search_progress() as progress:
            results = search_in_scope(query, "no", lambda: None, snapshot, resources.index, *parts, progress)
            for part, error in results.found.failures.items():
                rejections.report(error, part=part, query_id=progress.id)
    return results, snapshot


def _quoted(url: str, chapter: str, heading: str | None, quote: str, head: Head) -> QuotedSection:
    return QuotedSection(
        url=url, chapter=chapter, section=heading, quote=quote, version=head.version, generation=head.generation
    )


def registry() -> ToolRegistry:
    """Return the tools that every site has."""
    return ToolRegistry(_TOOLS)


_TOOLS: tuple[Tool, ...] = (
    tool_of("search_docs", "Search the documentation", search_docs, SearchArguments, SearchResults),
    tool_of("read_section", "Read the documentation", read_section, ReadArguments, ReadResult),
    tool_of("ask_docs", "Ask the documentation", ask_docs, AskArguments, Answer),
    tool_of("verify_claim", "Verify a claim", verify_claim, ClaimArguments, ClaimVerdict),
)
