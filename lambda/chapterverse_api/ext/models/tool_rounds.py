"""The rounds in which a model calls tools in place of an answer. What they find joins the sources.

A model may always look again into the documentation that its sources are from; the site's owner may offer more tools.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from contextvars import copy_context
from dataclasses import replace
from itertools import groupby, islice
from typing import Any

from chapterverse.errors import ChapterVerseError, ProviderError
from chapterverse.model import Chunk
from chapterverse.text import lexical
from chapterverse.text.json_text import parse_json
from chapterverse.text.markdown import plain
from chapterverse.text.tokens import PROMPT_TOKEN_BYTES, cut_to_bytes, cut_to_words
from chapterverse_api import rejections
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.contract import ToolUse
from chapterverse_api.deadline import ClientDisconnected, Deadline
from chapterverse_api.draft.requests import GenerationRequest, Passage, ToolCall, ToolResult, ToolSpec, Usage
from chapterverse_api.ext.check.links.address_filter import AddressFilter
from chapterverse_api.ext.check.links.known_text import SiteText
from chapterverse_api.ext.models.draft_reader import DraftReader
from chapterverse_api.ext.models.prompts import MAX_RESULT_TOKENS, MAX_ROUND_TOKENS, SEARCH_TOOL, frame_bytes
from chapterverse_api.ext.models.reasoning import join_surrogates
from chapterverse_api.ext.models.wire import read_written_calls
from chapterverse_api.index.site_index import on_page
from chapterverse_api.log import search_progress
from chapterverse_api.search.passages import choose, make_passages, make_source
from chapterverse_api.search.ranking import section_key
from chapterverse_api.search.site_search import SearchResources, make_reader_filter, search_site

#: How often a model may call tools in place of an answer, and how many calls it gets in all.
_TOOL_ROUNDS, TOOL_CALLS = 2, 6
#: Characters of a reply that is to hold calls alone.
_MAX_CALL_CHARS = 1_000
#: Seconds of a draft in which tools run: half of `deadline.TOTAL_SECONDS`, so that the answer has the other half.
_TOOL_SECONDS = 12.0
#: Sections of one search, and of one page that is read, that become sources.
_MAX_FOUND, _MAX_READ = 3, 10
#: Characters of a query of the model's: more is no search, and is cut.
MAX_QUERY_CHARS = 200

_READ_TOOL = "read_section"
_LATE = "The tool took longer than this answer may wait."


def _make_spec(name: str, description: str, parameter: str, meaning: str) -> ToolSpec:
    properties = {parameter: {"type": "string", "description": meaning}}
    schema = {"type": "object", "properties": properties, "required": [parameter], "additionalProperties": False}
    return ToolSpec(name, description, schema)


#: By name. They have no other arguments: version, language and filters are those of the reader's question.
_DOCS_TOOLS = {
    SEARCH_TOOL: _make_spec(
        SEARCH_TOOL,
        "Searches this documentation again. Its best sections join the sources.",
        "query",
        "A few words as the documentation would use them, for one thing at a time.",
    ),
    _READ_TOOL: _make_spec(
        _READ_TOOL,
        "Reads on: the sections that follow on the page of a source, or at an address that a source links to.",
        "url",
        "The number of a source, or the address.",
    ),
}


class TurnRounds:
    """The rounds of one draft: at most two, with six calls in all. Calls of one round run at once.

    Implements `answer.drafting.ToolRounds`.
    """

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        site_specs = [spec for spec in (turn.tools.specs if turn.tools else ()) if spec.name not in _DOCS_TOOLS]
        self._specs = (*_DOCS_TOOLS.values(), *site_specs)
        # Of all tools, also when no round is left: a model may still write a call of one.
        self._names = tuple(spec.name for spec in self._specs)
        self.has_site_tools = bool(site_specs)
        self._end = turn.deadline.step(_TOOL_SECONDS)
        self._rounds, self._past = 0, set[ToolCall]()

    @property
    def request(self) -> GenerationRequest:
        """The request to the generator: with tools while a round is left, then for an answer from what is there."""
        is_open = self._rounds < _TOOL_ROUNDS and len(self._past) < TOOL_CALLS and self._end.seconds_left
        sources = self._turn.sources
        looked_for = tuple(use.query for use in sources.tool_uses if use.query)
        return replace(sources.request, tools=self._specs if is_open else (), looked_for=looked_for, usage=Usage())

    def run(self, asked: Sequence[ToolCall]) -> Generator[ToolUse, None, None]:
        """Make the calls of a round, and yield each when it starts and when it ends.

        Raises:
            ClientDisconnected: the reader left.
        """
        first = len(self._past)
        calls = [call for call in dict.fromkeys(asked) if call not in self._past][: TOOL_CALLS - first]
        # A model that only repeats itself has found all that it will.
        self._rounds += 1 if calls else _TOOL_ROUNDS
        self._past.update(calls)
        uses = [self._describe(call, number) for number, call in enumerate(calls, first + 1)]
        yield from uses
        max_tokens = min(MAX_RESULT_TOKENS, MAX_ROUND_TOKENS // max(1, len(calls)))
        with self._turn.timing("tools"):
            results = self._run_calls(calls, max_tokens) if calls else []
        self._turn.deadline.check()
        for use, (result, seconds) in zip(uses, results, strict=True):
            yield self._take(use, result, seconds, max_tokens)

    def run_all(self) -> Generator[ToolUse, None, None]:
        """Let the generator call tools for data, which can't be written in the same request. Its text is dropped."""
        turn = self._turn
        while (request := self.request).tools:
            calls, reader = list[ToolCall](), DraftReader(request.passages)
            try:
                with (
                    turn.models.drafting(),
                    turn.deadline.raising_on_disconnect(),
                    closing(turn.models.generator.generate(request)) as draft,
                ):
                    for piece in draft:
                        if isinstance(piece, ToolCall):
                            calls.append(piece)
                        else:
                            deque(reader.read(piece), 0)
                        if len(reader.text) > _MAX_CALL_CHARS:
                            break
            except ProviderError as error:
                turn.log_failure("generator", error)
            calls = calls or self.read_calls(reader.text)
            if not calls:
                return
            yield from self.run(calls)

    def read_calls(self, text: str) -> list[ToolCall]:
        """Return the calls that a reply holds as text, of which nothing is an answer."""
        return read_written_calls(text, self._names)

    def _describe(self, call: ToolCall, number: int) -> ToolUse:
        name, sources = call.name if call.name in self._names else "unknown", self._turn.sources
        # Readers see it, and a model may write anything.
        links = AddressFilter(sources.request.passages, (sources.request.question,), SiteText(sources.snapshot))
        return ToolUse(id=str(number), name=name, query=links.without_foreign(_read_query(call)).strip() or None)

    def _run_calls(self, calls: Sequence[ToolCall], max_tokens: int) -> list[tuple[ToolResult, float]]:
        """Make all calls at once; return their results and seconds in order. A call that takes too long has failed."""
        docs = _DocsTools(self._turn, max_tokens)

        def run_timed(call: ToolCall) -> tuple[ToolResult, float]:
            started, site_tools = time.perf_counter(), self._turn.tools
            if site_tools and call.name not in _DOCS_TOOLS:
                result = site_tools.run(call, self._end)
            else:
                result = docs.run(call, self._end)
            return result, round(time.perf_counter() - started, 6)

        pool = ThreadPoolExecutor(len(calls), "chapterverse-tool")
        started = [pool.submit(copy_context().run, run_timed, call) for call in calls]
        done, _ = wait(started, self._end.seconds_left)
        pool.shutdown(wait=False, cancel_futures=True)
        late = ToolResult(False, error=_LATE), _TOOL_SECONDS
        return [one.result() if one in done else late for one in started]

    def _take(self, use: ToolUse, result: ToolResult, seconds: float, max_tokens: int) -> ToolUse:
        """Add the result of a call to the sources, and return how it ended."""
        reason = {"message": result.cause or result.error} if result.error else {}
        self._turn.log("tool_called", tool=use.name, ok=result.ok, seconds=seconds, **reason)
        use, sources = use.model_copy(update={"ok": result.ok}), self._turn.sources
        uses = (*sources.tool_uses, use)
        failed = dict.fromkeys(one.name for one in uses if not one.ok and one.name in {*self._names} - {*_DOCS_TOOLS})
        failure = f"Tools of the site could not be used: {', '.join(failed)}." if failed else None
        sources = _add_sources(sources, result.output, max_tokens)
        self._turn.sources = replace(sources, tool_uses=uses, tool_failure=failure)
        return use


def _add_sources(sources: Sources, output: Sequence[Passage], max_tokens: int) -> Sources:
    """Return the sources with further ones, without the texts that they have already."""
    request, shown = sources.request, list(sources.shown)
    passages, remaining_bytes = list(request.passages), int(max_tokens * PROMPT_TOKEN_BYTES)
    number = 1 + max((int(passage.id) for passage in passages), default=0)
    links = AddressFilter(passages, site=SiteText(sources.snapshot))
    for found in output:
        # An address that another server names must not be shown under this site's name.
        text = found.section if found.url else links.without_foreign(found.section)
        room = remaining_bytes - frame_bytes(replace(found, id=str(number)))
        text = cut_to_bytes(text, max(0, room)).strip()
        if not text or any(text in passage.section for passage in passages):
            continue
        remaining_bytes = room - len(text.encode())
        terms = found.terms or lexical.terms_of(lexical.words("\n".join((*found.path, text)), request.language))
        shorter = found.text if found.text in text else text
        passages.append(replace(found, id=str(number), text=shorter, section=text, terms=terms))
        shown.append(make_source(passages[-1], found.path[0], found.path[-1] if len(found.path) > 1 else None))
        number += 1
    count = request.from_tools + len(passages) - len(request.passages)
    return replace(sources, request=replace(request, passages=tuple(passages), from_tools=count), shown=tuple(shown))


class _DocsTools:
    """The tools over the documentation, in the version, with the filters and the models of one turn.

    Args:
        max_tokens: of what a search finds.
    """

    def __init__(self, turn: Turn, max_tokens: int) -> None:
        assert turn.sources.snapshot is not None
        self._turn, self._max_tokens, self._index = turn, max_tokens, turn.resources.index
        self._snapshot, self._passages = turn.sources.snapshot, turn.sources.request.passages

    def run(self, call: ToolCall, deadline: Deadline) -> ToolResult:
        """Make a call; see `TurnTools`."""
        try:
            found = self._search(_read_query(call), deadline) if call.name == SEARCH_TOOL else self._read(call)
        except ChapterVerseError as error:
            return ToolResult(False, error="The documentation could not be searched.", cause=str(error))
        except ClientDisconnected:
            raise
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
            resources = SearchResources(
                index=self._index,
                settings=self._turn.resources.settings,
                embedder=models.embedder,
                reranker=None,
                reading_model=models.reading_model,
                deadline=deadline,
                progress=progress,
            )
            asked = self._turn.query.model_copy(update={"query": query, "user_context": None})
            retrieval = search_site(asked, self._snapshot, resources)
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
        for _, group in groupby(chunks, section_key):
            part = list(group)
            text = "\n\n".join(plain(chunk.text) for chunk in part)
            url = self._public_url(part[0]) or None
            yield Passage("", part[0].heading_path, text, text, url=url, chunk_id=part[0].chunk_id)

    def _is_new(self, chunk: Chunk) -> bool:
        text = plain(chunk.text)
        return not any(text in passage.section for passage in self._passages)

    def _public_url(self, chunk: Chunk) -> str:
        return self._index.public_url(chunk, self._snapshot.head)


def _read_query(call: ToolCall) -> str:
    """Return the words that a call searches for, in one line; empty for another call, or without any."""
    line = " ".join(_read_argument(call, "query").split()) if call.name == SEARCH_TOOL else ""
    return cut_to_words(line, MAX_QUERY_CHARS)


def _read_argument(call: ToolCall, name: str) -> str:
    try:
        arguments: Any = parse_json(call.arguments)
    except ValueError:
        return ""
    value = arguments.get(name) if isinstance(arguments, dict) else None
    return join_surrogates(str(value)) if isinstance(value, str | int) else ""
