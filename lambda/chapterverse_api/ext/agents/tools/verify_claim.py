"""The tool `verify_claim`: whether the documentation supports or contradicts a statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from chapterverse.calibration import read_weights
from chapterverse.errors import InputError, ProviderError
from chapterverse.model import Head
from chapterverse.text.sentences import Sentence, split
from chapterverse_api import rejections
from chapterverse_api.contract import Nearest, RequestModel, ResponseModel
from chapterverse_api.ext.agents.tools.sections import (
    LanguageArgument,
    Url,
    VersionArgument,
    make_tool_query,
    search_within_budget,
)
from chapterverse_api.ext.agents.tools.tool import ToolContext
from chapterverse_api.ext.check.verdict import Outcome
from chapterverse_api.ext.check.verifier import Verifier
from chapterverse_api.ext.models.citation_marks import CitationMarks
from chapterverse_api.ext.models.segments import SecondVotes, check_sentence
from chapterverse_api.index.site_index import SiteIndex, on_page
from chapterverse_api.search.passages import choose, make_passages, make_place
from chapterverse_api.search.ranking import Candidate

#: Sentences of a claim: each is searched for.
_MAX_SENTENCES = 5
#: Sections that a sentence of a claim is compared with.
_MAX_COMPARED = 8
#: Pages to read instead, if no section supports or contradicts the claim.
_MAX_NEAREST = 3


class ClaimArguments(RequestModel):
    """A claim of at most 2,000 characters, and where to check it."""

    claim: Annotated[
        str,
        StringConstraints(min_length=1, max_length=2000),
        Field(description=f"A statement about the product, one sentence or at most {_MAX_SENTENCES}."),
    ]
    urls: Annotated[
        list[Url], Field(max_length=10, description="Pages or sections to check against; all if left out.")
    ] = Field(default_factory=list)
    version: VersionArgument = None
    language: LanguageArgument = None


ClaimOutcome = Literal["supported", "contradicted", "not_found"]
_WORST_FIRST = ("contradicted", "not_found", "supported")
_VERDICTS: dict[Outcome, ClaimOutcome] = {
    "supports": "supported",
    "contradicts": "contradicted",
    "silent": "not_found",
}


class Statement(ResponseModel):
    """A sentence of a claim, and what the documentation says of it. Without a verdict it states nothing."""

    text: str
    verdict: ClaimOutcome | None
    quote: str | None
    url: str | None
    chapter: str | None
    section: str | None
    confidence: Annotated[float, Field(ge=0, le=1)]


class ClaimVerdict(ResponseModel):
    """The verdict on a claim, with the words that decide and those on each of its sentences.

    Attributes:
        url, chapter, section: of the section that decides; null if none does.
        generation: the number of the index's generation that was searched.
        degraded_reason: what did not work as configured; null if all did.
    """

    verdict: Annotated[
        ClaimOutcome,
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


def verify_claim(arguments: ClaimArguments, context: ToolContext) -> ClaimVerdict:
    """Check a statement against the official documentation before you rely on it. Returns supported, contradicted or
    not_found, with the words and the address of the section that decides."""
    sentences = [s for s in split(arguments.claim) if any(c.isalnum() for c in s.plain_text)]
    if len(sentences) > _MAX_SENTENCES:
        raise InputError(
            f"claim must hold at most {_MAX_SENTENCES} sentences: send the others by themselves.", field="claim"
        )
    index = context.service.resources.index
    filters = {"url": {"$in": _addresses(arguments, index)}} if arguments.urls else {}
    with _second_votes(context) as votes:
        checks = [_check_sentence(s, arguments, filters, context, votes) for s in sentences]
    claims = [check.statement for check in checks if check.statement.verdict]
    if not claims:
        raise InputError("claim states nothing that could be checked: write it as a sentence.", field="claim")
    # One contradiction makes a claim wrong, and one sentence that is not found leaves it open.
    deciding = min(claims, key=lambda statement: _WORST_FIRST.index(statement.verdict or ""))
    return ClaimVerdict(
        **deciding.model_dump(include={"verdict", "quote", "url", "chapter", "section"}),
        confidence=min(statement.confidence for statement in claims),
        statements=[check.statement for check in checks],
        nearest=next((check.nearest for check in checks if check.outcome == "silent"), []),
        version=checks[0].head.version,
        generation=checks[0].head.generation,
        degraded_reason=next((check.degraded for check in checks if check.degraded), None),
    )


@dataclass(frozen=True, slots=True)
class _SentenceCheck:
    """One sentence of a claim, and what sections say of it.

    Attributes:
        nearest: the first of these sections.
        degraded: what did not work in the search for them; None if all did.
    """

    outcome: Outcome
    statement: Statement
    nearest: list[Nearest]
    head: Head
    degraded: str | None


def _check_sentence(
    sentence: Sentence,
    arguments: ClaimArguments,
    filters: dict[str, Any],
    context: ToolContext,
    votes: SecondVotes | None,
) -> _SentenceCheck:
    query = make_tool_query(sentence.plain_text, arguments, filters=filters)
    retrieval, snapshot = search_within_budget(query, context)
    index, head = context.service.resources.index, snapshot.head

    def compare(found: Sequence[Candidate], votes: SecondVotes | None) -> _SentenceCheck:
        candidates = choose(found, _MAX_COMPARED)
        pages = {path: snapshot.page(path) for path in {c.chunk.source_file_path for c in candidates}}
        sources = make_passages(candidates, lambda chunk: index.public_url(chunk, head), pages)
        language = candidates[0].chunk.language if candidates else head.main_language
        idf = partial(read_weights, languages=head.languages, snapshot=snapshot)
        # A claim is a question too, and may be about what the docs don't know. Who names pages says where.
        question = None if arguments.urls else retrieval.question
        verifier = Verifier(sources, language, idf, question=question)
        # As of an answer's sentence, whose marks of sources are no words of it.
        text, _ = CitationMarks(sources).remove(sentence.plain_text)
        checked, vote = check_sentence(verifier, replace(sentence, plain_text=text), (), votes)
        if vote and vote.rejects():
            verifier.reject(checked)
        verdict = verifier.verdict(checked)
        # The ids of passages count from 1.
        deciding = candidates[int(verdict.id) - 1].chunk if verdict.id else None
        statement = Statement(
            text=text,
            verdict=_VERDICTS[verdict.outcome] if verdict.is_claim else None,
            quote=verdict.quote if deciding else None,
            url=(index.public_url(deciding, head) or None) if deciding else None,
            chapter=deciding.chapter_title if deciding else None,
            section=deciding.section_heading if deciding else None,
            confidence=round(verdict.probability, 4),
        )
        nearest = [make_place(c.chunk, index.public_url(c.chunk, head)) for c in candidates[:_MAX_NEAREST]]
        return _SentenceCheck(verdict.outcome, statement, nearest, head, retrieval.degraded)

    # An answer would be made from the strong ones, and the chat gives a sentence the same verdict. What they don't
    # say another section may still contradict.
    check = compare(retrieval.strong or retrieval.candidates, votes)
    if check.outcome == "silent" and retrieval.strong:
        # A vote only takes support away, and is paid for.
        among_all = compare(retrieval.candidates, None)
        return among_all if among_all.outcome == "contradicts" else check
    return check


@contextmanager
def _second_votes(context: ToolContext) -> Iterator[SecondVotes | None]:
    """Give the second votes that an answer would ask for, within the day's budget; None if the words decide."""
    with context.service.resources.reserving(votes=True) as models:
        if models.checker is None:
            yield None
            return

        def report(error: ProviderError) -> None:
            rejections.report(error, part="checker")

        with closing(SecondVotes(models.checker, "", context.deadline, report)) as votes:
            yield votes


def _addresses(arguments: ClaimArguments, index: SiteIndex) -> list[str]:
    """Return the index's addresses of the pages and sections that a claim is checked against."""
    published_urls = list[str]()
    for url in arguments.urls:
        snapshot = index.snapshot(arguments.version, url)
        published = index.published_url(url, snapshot.head)
        page_urls = [at for at in on_page(published, snapshot) if "#" not in published or at == published]
        if not page_urls:
            raise InputError("urls holds an address that this documentation does not have.", field="urls")
        published_urls += page_urls
    return published_urls
