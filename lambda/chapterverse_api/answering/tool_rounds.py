"""The rounds in which a model calls tools in place of an answer. What they find joins the sources."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import replace

from chapterverse.text import lexical
from chapterverse.text.shortening import cut_to_bytes
from chapterverse.text.utf8 import PROMPT_TOKEN_BYTES
from chapterverse_api.answering.context import AnswerContext, DraftSources, make_source
from chapterverse_api.answering.docs_tools import DOCS_TOOLS, DocsTools, read_query
from chapterverse_api.answering.turn import Turn
from chapterverse_api.answering.turn_tools import ToolResult, TurnTools
from chapterverse_api.contract import ToolUse
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.prompts import MAX_RESULT_TOKENS, MAX_ROUND_TOKENS, frame_bytes
from chapterverse_api.generation.requests import GenerationRequest, ToolCall, Usage
from chapterverse_api.grounding.links.address_filter import AddressFilter
from chapterverse_api.grounding.links.known_text import SiteText

#: How often a model may call tools in place of an answer, and how many calls it gets in all.
TOOL_ROUNDS, TOOL_CALLS = 2, 6
#: Seconds of a draft in which tools run: half of `deadline.TOTAL_SECONDS`, so that the answer has the other half.
TOOL_SECONDS = 12.0

_LATE = "The tool took longer than this answer may wait."


class ToolRounds:
    """The rounds of one draft: at most two, with six calls in all. Calls of one round run at once.

    Args:
        site_tools: the tools of the site's owner; None without any.

    Attributes:
        sources: those of the documentation, and what the calls found.
    """

    def __init__(self, sources: DraftSources, turn: Turn, site_tools: TurnTools | None = None) -> None:
        self.sources = sources
        self._turn, self._site_tools = turn, site_tools
        site_specs = [spec for spec in (site_tools.specs if site_tools else ()) if spec.name not in DOCS_TOOLS]
        self._specs = (*DOCS_TOOLS.values(), *site_specs)
        self._end = turn.deadline.step(TOOL_SECONDS)
        self._rounds, self._past = 0, set[ToolCall]()
        self._first = len(sources.context.request.passages)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools, also when no round is left: a model may still write a call of one."""
        return tuple(spec.name for spec in self._specs)

    @property
    def has_site_tools(self) -> bool:
        """Whether the model may find something that the documentation does not hold."""
        return len(self._specs) > len(DOCS_TOOLS)

    @property
    def request(self) -> GenerationRequest:
        """The request to the generator: with tools while a round is left, then for an answer from what is there."""
        is_open = self._rounds < TOOL_ROUNDS and len(self._past) < TOOL_CALLS and self._end.seconds_left
        looked_for = tuple(use.query for use in self.sources.tool_uses if use.query)
        request = self.sources.context.request
        found, tools = len(request.passages) - self._first, self._specs if is_open else ()
        return replace(request, tools=tools, looked_for=looked_for, found=found, usage=Usage())

    def run(self, asked: Sequence[ToolCall]) -> Generator[ToolUse, None, None]:
        """Make the calls of a round, and yield each when it starts and when it ends.

        Raises:
            ClientDisconnected: the reader left.
        """
        calls = [call for call in dict.fromkeys(asked) if call not in self._past][: TOOL_CALLS - len(self._past)]
        # A model that only repeats itself has found all that it will.
        self._rounds += 1 if calls else TOOL_ROUNDS
        self._past.update(calls)
        uses = [self._describe(call, number) for number, call in enumerate(calls, len(self._past) - len(calls) + 1)]
        yield from uses
        with self._turn.timing("tools"):
            results = self._run_calls(calls)
        self._turn.deadline.check()
        for use, (result, seconds) in zip(uses, results, strict=True):
            yield self._take(use, result, seconds, _result_tokens(len(calls)))

    def _describe(self, call: ToolCall, number: int) -> ToolUse:
        name = call.name if call.name in self.names else "unknown"
        request = self.sources.context.request
        # Readers see it, and a model may write anything.
        links = AddressFilter(request.passages, (request.question,), SiteText(self.sources.context.snapshot))
        return ToolUse(id=str(number), name=name, query=links.without_foreign(read_query(call)).strip() or None)

    def _run_calls(self, calls: Sequence[ToolCall]) -> list[tuple[ToolResult, float]]:
        """Make all calls at once; return their results and seconds in order. A call that takes too long has failed."""
        docs = DocsTools(self._turn, self.sources.context, _result_tokens(len(calls)))

        def run_timed(call: ToolCall) -> tuple[ToolResult, float]:
            started = time.perf_counter()
            tools = self._site_tools if self._site_tools and call.name not in DOCS_TOOLS else docs
            result = tools.run(call, self._end)
            return result, round(time.perf_counter() - started, 6)

        if not calls:
            return []
        pool = ThreadPoolExecutor(len(calls), "chapterverse-tool")
        started = [pool.submit(copy_context().run, run_timed, call) for call in calls]
        done, _ = wait(started, self._end.seconds_left)
        pool.shutdown(wait=False, cancel_futures=True)
        late = ToolResult(False, error=_LATE), TOOL_SECONDS
        return [one.result() if one in done else late for one in started]

    def _take(self, use: ToolUse, result: ToolResult, seconds: float, max_tokens: int) -> ToolUse:
        """Add the result of a call to the sources, and return how it ended."""
        reason = {"message": result.cause or result.error} if result.error else {}
        self._turn.log("tool_called", tool=use.name, ok=result.ok, seconds=seconds, **reason)
        use, before = use.model_copy(update={"ok": result.ok}), self.sources
        uses = (*before.tool_uses, use)
        names = {name for name in self.names if name not in DOCS_TOOLS}
        failed = ", ".join(dict.fromkeys(one.name for one in uses if not one.ok and one.name in names))
        self.sources = replace(
            before,
            context=_add_sources(before.context, result.output, max_tokens),
            tool_uses=uses,
            tool_failure=f"Tools of the site could not be used: {failed}." if failed else None,
        )
        return use


def _result_tokens(calls: int) -> int:
    """Return the tokens of the result of each call of a round."""
    return min(MAX_RESULT_TOKENS, MAX_ROUND_TOKENS // max(1, calls))


def _add_sources(context: AnswerContext, output: Sequence[Passage], max_tokens: int) -> AnswerContext:
    """Return a context with further sources, without the texts that it has already."""
    request, sources = context.request, list(context.sources)
    passages, remaining_bytes = list(request.passages), int(max_tokens * PROMPT_TOKEN_BYTES)
    number = 1 + max((int(passage.id) for passage in passages), default=0)
    links = AddressFilter(passages, site=SiteText(context.snapshot))
    for found in output:
        # An address that another server names must not be shown under this site's name.
        text = found.section if found.url else links.without_foreign(found.section)
        room = remaining_bytes - frame_bytes(replace(found, id=str(number)))
        text = cut_to_bytes(text, max(0, room)).strip()
        if not text or any(text in passage.section for passage in passages):
            continue
        remaining_bytes = room - len(text.encode())
        terms = found.terms or lexical.terms_of(lexical.words("\n".join((*found.path, text)), request.language))
        passage = replace(
            found, id=str(number), text=found.text if found.text in text else text, section=text, terms=terms
        )
        passages.append(passage)
        sources.append(make_source(passage, *_chapter_and_section(passage)))
        number += 1
    return replace(context, request=replace(request, passages=tuple(passages)), sources=tuple(sources))


def _chapter_and_section(passage: Passage) -> tuple[str, str | None]:
    return passage.path[0], passage.path[-1] if len(passage.path) > 1 else None
