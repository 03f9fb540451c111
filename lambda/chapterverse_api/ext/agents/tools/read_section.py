"""The tool `read_section`: a page or one section as Markdown, within a budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    read, rest = _take(sections, arguments.max_tokens - OVERHEAD_TOKENS, arguments.offset)
    if not read:
        raise InputError("There is nothing at that offset: the text ends before it.", field="offset")
    head, first = snapshot.head, sections[0].first
    return ReadResult(
        url=sections[0].url if "#" in arguments.url else sections[0].url.partition("#")[0],
        chapter=first.chapter_title,
        sections=[
            quote_section(part.url, part.first.chapter_title, part.first.section_heading, part.text, head)
            for part in read
        ],
        next_offset=arguments.offset + sum(len(part.text) for part in read) if rest else None,
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


def _take(
    sections: Sequence[SectionText], remaining_tokens: int, skip: int
) -> tuple[list[SectionText], list[SectionText]]:
    """Return what fits into a budget of tokens behind the first characters, which are skipped, and the rest."""
    read, rest = list[SectionText](), list[SectionText]()
    for section in sections:
        text, skip = section.text[skip:], max(0, skip - len(section.text))
        room = remaining_tokens - OVERHEAD_TOKENS
        piece = cut_to(text, room) if room > 0 and not rest else ""
        if piece:
            read.append(replace(section, text=piece))
            remaining_tokens -= OVERHEAD_TOKENS + estimate_cl100k_tokens(piece)
        if len(piece) < len(text):
            rest.append(replace(section, text=text[len(piece) :]))
    return read, rest
