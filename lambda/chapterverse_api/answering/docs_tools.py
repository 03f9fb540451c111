"""The tools with which a model looks again into the documentation that its sources are from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from chapterverse.errors import ChapterVerseError
from chapterverse.model import Chunk
from chapterverse.text.json_text import parse_json
from chapterverse.text.plain import plain
from chapterverse.text.shortening import cut_to_words
from chapterverse_api import rejections
from chapterverse_api.answering.context import AnswerContext
from chapterverse_api.answering.turn import Turn
from chapterverse_api.answering.turn_tools import ToolResult
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.prompts import SEARCH_TOOL
from chapterverse_api.generation.reasoning import join_surrogates
from chapterverse_api.generation.requests import ToolCall, ToolSpec
from chapterverse_api.index.addresses import on_page
from chapterverse_api.observability.query_state import search_progress
from chapterverse_api.retrieval.passages import choose, make_passages
from chapterverse_api.retrieval.ranking import section
from chapterverse_api.retrieval.site_search import SearchResources, make_reader_filter, search_site

#: Sections of one search, and of one page that is read, that become sources.
_MAX_FOUND, _MAX_READ = 3, 10
_READ_TOOL = "read_section"
#: Characters of a query of the model's: more is no search, and is cut.
MAX_QUERY_CHARS = 200


def _make_spec(name: str, description: str, **parameters: str) -> ToolSpec:
    properties = {name: {"type": "string", "description": text} for name, text in parameters.items()}
    schema = {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}
    return ToolSpec(name, description, schema)


#: By name. They have no other arguments: version, language and filters are those of the reader's question.
DOCS_TOOLS = {
    spec.name: spec
    for spec in (
        _make_spec(
            SEARCH_TOOL,
            "Searches this documentation again. Its best sections join the sources.",
            query="A few words as the documentation would use them, for one thing at a time.",
        ),
        _make_spec(
            _READ_TOOL,
            "Reads on: the sections that follow on the page of a source, or at an address that a source links to.",
            url="The number of a source, or the address.",
        ),
    )
}


def read_query(call: ToolCall) -> str:
    """Return the words that a call searches for, in one line; empty for another call, or without any."""
    query = _read_argument(call, "query") if call.name == SEARCH_TOOL else ""
    line = " ".join(query.split())
    return line if len(line) <= MAX_QUERY_CHARS else cut_to_words(line, MAX_QUERY_CHARS)


def _read_argument(call: ToolCall, name: str) -> str:
    try:
        arguments: Any = parse_json(call.arguments)
    except ValueError:
        return ""
    value = arguments.get(name) if isinstance(arguments, dict) else None
    return join_surrogates(str(value)) if isinstance(value, str | int) else ""


class DocsTools:
    """The tools for one turn: over its index, version and filters, with its models. Implements `TurnTools`.

    Args:
        context: the sources that are there.
        max_tokens: of what a search finds.
    """

    specs: Sequence[ToolSpec] = tuple(DOCS_TOOLS.values())

    def __init__(self, turn: Turn, context: AnswerContext, max_tokens: int) -> None:
        assert context.snapshot is not None
        self._max_tokens = max_tokens
        self._turn, self._snapshot, self._passages = turn, context.snapshot, context.request.passages
        self._index = turn.resources.index

    def run(self, call: ToolCall, deadline: Deadline) -> ToolResult:
        """Make a call; see `TurnTools`."""
        try:
            found = self._search(read_query(call), deadline) if call.name == SEARCH_TOOL else self._read(call)
        except ChapterVerseError as error:
            return ToolResult(False, error="The documentation could not be searched.", cause=str(error))
        except Exception as error:
            # A fault of this program costs a result, and never the answer.
            rejections.report(error)
            return ToolResult(False, error="The tool failed.")
        return ToolResult(bool(found), tuple(found), "" if found else "Nothing further was found.")

    def _search(self, query: str, deadline: Deadline) -> list[Passage]:
        """Return the best sections for a query, as far as they are no sources yet."""
        if not query:
            return []
        models = self._turn.models
        with search_progress(self._turn.id, self._turn.thread_id) as progress:
            # Without the reranker: six more of its searches would cost more than the answer.
            resources = SearchResources(models.embedder, None, models.reader, deadline, progress)
            asked = self._turn.query.model_copy(update={"query": query, "user_context": None})
            retrieval = search_site(asked, self._snapshot, self._index, resources).retrieval
        candidates = choose((c for c in retrieval.candidates if self._is_new(c.chunk)), _MAX_FOUND)
        paths = {c.chunk.source_file_path for c in candidates}
        pages = {path: [c for c in self._snapshot.page(path) if self._is_new(c)] for path in paths}
        return make_passages(candidates, self._public_url, pages, self._max_tokens)

    def _read(self, call: ToolCall) -> list[Passage]:
        """Return the sections of a page, from that of the address on, and then those before it."""
        at = _read_argument(call, "url").strip("[] ")
        at = next((p.url for p in self._passages if p.id == at and p.url), at)
        published = self._index.published_url(at, self._snapshot.head)
        known = on_page(published, self._snapshot)
        if call.name != _READ_TOOL or not known:
            return []
        page = self._snapshot.page(self._snapshot.page(known[0], "url")[0].source_file_path)
        first = next((n for n, chunk in enumerate(page) if chunk.url == published), 0)
        is_for_reader = make_reader_filter(self._turn.query, self._snapshot, self._index)
        chunks = [c for c in (*page[first:], *page[:first]) if is_for_reader(c) and self._is_new(c)]
        return list(islice(self._make_sections(chunks), _MAX_READ))

    def _make_sections(self, chunks: Sequence[Chunk]) -> Iterator[Passage]:
        for _, group in groupby(chunks, section):
            part = list(group)
            text = "\n\n".join(plain(chunk.text) for chunk in part)
            url = self._public_url(part[0]) or None
            yield Passage("", part[0].heading_path, text, text, url=url, chunk_id=part[0].chunk_id)

    def _is_new(self, chunk: Chunk) -> bool:
        text = plain(chunk.text)
        return not any(text in passage.section for passage in self._passages)

    def _public_url(self, chunk: Chunk) -> str:
        return self._index.public_url(chunk, self._snapshot.head)
