"""The tool `read_section`: a page or one section as Markdown, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from chapterverse.errors import InputError
from chapterverse_api.contract import RequestModel, ResponseModel
from chapterverse_api.ext.agents.tools.registry import ToolContext
from chapterverse_api.ext.agents.tools.sections import (
    OVERHEAD_TOKENS,
    MaxTokens,
    QuotedSection,
    SectionText,
    Url,
    cut_to,
    estimate_cl100k_tokens,
    find_page,
    quote_section,
)

#: Addresses of further sections in a reply, because a page may have hundreds.
_MAX_LISTED = 20


class ReadArguments(RequestModel):
    url: Annotated[Url, Field(description="Of a page or, with an anchor, of a section, as search_docs returns it.")]
    max_tokens: MaxTokens = 4000
    offset: Annotated[int, Field(ge=0, le=2**31, description="Where to go on: next_offset of the result before.")] = 0


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


def read_section(arguments: ReadArguments, context: ToolContext) -> ReadResult:
    """Read a page or one section of the official documentation as Markdown, within a budget of tokens. Says what is
    left and how to go on."""
    snapshot, sections = find_page(arguments.url, context.service.resources.index)
    reader = _SectionReader(arguments.max_tokens - OVERHEAD_TOKENS, arguments.offset)
    read = [part for section in sections if (part := reader.take(section))]
    if not read:
        raise InputError("There is nothing at that offset: the text ends before it.", field="offset")
    head, first = snapshot.head, sections[0].first
    total = sum(len(section.text) for section in sections)
    end = arguments.offset + sum(len(part.text) for part in read)
    rest = [replace(section, text=section.text[max(0, end - start) :]) for start, section in _with_offsets(sections)]
    rest = [section for section in rest if section.text]
    return ReadResult(
        url=sections[0].url if "#" in arguments.url else sections[0].url.partition("#")[0],
        chapter=first.chapter_title,
        sections=[
            quote_section(part.url, part.first.chapter_title, part.first.section_heading, part.text, head)
            for part in read
        ],
        next_offset=end if end < total else None,
        left=Remainder(
            tokens=sum(estimate_cl100k_tokens(section.text) for section in rest),
            sections=[
                SectionPlace(url=s.url, section=s.first.section_heading, tokens=estimate_cl100k_tokens(s.text))
                for s in rest[:_MAX_LISTED]
            ],
        ),
        version=head.version,
        generation=head.generation,
    )


def _with_offsets(sections: Sequence[SectionText]) -> list[tuple[int, SectionText]]:
    """Return each section with the number of characters before it."""
    starts, at = list[int](), 0
    for section in sections:
        starts.append(at)
        at += len(section.text)
    return list(zip(starts, sections, strict=True))


@dataclass(slots=True)
class _SectionReader:
    """Takes sections in order until a budget of tokens is used.

    Attributes:
        remaining_tokens: tokens of the budget.
        skip: characters before the start.
        ended: whether the budget is used.
    """

    remaining_tokens: int
    skip: int
    ended: bool = False

    def take(self, section: SectionText) -> SectionText | None:
        """Return the part of a section that fits; None if it lies before the start or behind the end."""
        text = section.text[self.skip :]
        self.skip = max(0, self.skip - len(section.text))
        if not text or self.ended:
            return None
        room = self.remaining_tokens - OVERHEAD_TOKENS
        piece = cut_to(text, room) if room > 0 else ""
        self.remaining_tokens -= OVERHEAD_TOKENS + estimate_cl100k_tokens(piece)
        self.ended = len(piece) < len(text)
        return replace(section, text=piece) if piece else None
