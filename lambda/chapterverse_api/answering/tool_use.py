"""Lets a model call the site's tools before it answers. A tool's result is a source, and is checked like one."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from dataclasses import dataclass, replace
from typing import Protocol

from chapterverse.errors import ProviderError
from chapterverse.text import lexical
from chapterverse.text.shortening import cut_to_bytes
from chapterverse.text.utf8 import PROMPT_TOKEN_BYTES
from chapterverse_api.answering.context import AnswerContext, DraftSources, make_source
from chapterverse_api.answering.turn import Turn
from chapterverse_api.answering.turn_cost import TOOL_CALLS, TOOL_ROUNDS
from chapterverse_api.contract import ToolUse
from chapterverse_api.deadline import Deadline
from chapterverse_api.generation.passage import Passage
from chapterverse_api.generation.prompts import (
    MAX_RESULT_TOKENS,
    MAX_TOOL_TOKENS,
    conversation,
    new_nonce,
    tool_instructions,
)
from chapterverse_api.generation.protocols import ToolCaller
from chapterverse_api.generation.requests import ModelRequest, ToolCall, ToolSpec
from chapterverse_api.grounding.links.address_filter import AddressFilter
from chapterverse_api.grounding.links.site_text import SiteText
from chapterverse_api.observability import log

#: Seconds of a turn for choosing and calling: half of `deadline.TOTAL_SECONDS`, so that the answer has the other half.
TOOL_SECONDS = 12.0

_NOT_CHOSEN = "The site's tools were not used, since the model failed."
_LATE = "The tool took longer than this answer may wait."


@dataclass(frozen=True, slots=True)
class ToolSource:
    """The result of a tool.

    Attributes:
        title: the title of the tool, or of the section that it read.
        text: Markdown.
        url: of a section of this documentation; None for what another server says.
    """

    title: str
    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of a call.

    Attributes:
        error: one sentence for readers about the failure, without the arguments and any host; empty if the call
            succeeded.
        cause: one sentence for the log, if it may say more.
    """

    ok: bool
    output: tuple[ToolSource, ...] = ()
    error: str = ""
    cause: str = ""


class TurnTools(Protocol):
    """The tools that one turn may use."""

    @property
    def specs(self) -> Sequence[ToolSpec]: ...

    def run(self, call: ToolCall, deadline: Deadline) -> ToolResult:
        """Check a call's arguments and make it. Every failure is a result. Threads may call it at once."""
        ...


@dataclass(frozen=True, slots=True)
class _CallRecord:
    call: ToolCall
    result: ToolResult
    seconds: float


def add_tool_results(sources: DraftSources, turn: Turn, tools: TurnTools) -> DraftSources:
    """Return the sources with the results of the tools that the model calls, and a sentence about failed tools.

    A model asks for its calls at most twice, the second time with the first results, and gets three in all. Calls of
    one request run at once.

    Raises:
        ClientDisconnected: the reader left.
    """
    caller, end = turn.models.tool_caller, turn.deadline.step(TOOL_SECONDS)
    if caller is None:
        return sources
    names, past_calls = {spec.name for spec in tools.specs}, set[ToolCall]()
    with turn.timing("tools"):
        for _ in range(TOOL_ROUNDS):
            try:
                with turn.models.circuit.calling(), turn.deadline.raising_on_disconnect():
                    chosen = _choose(caller, sources.context, tools, end)
            except ProviderError as error:
                turn.log_failure("generator", error)
                return replace(sources, tool_failure=_NOT_CHOSEN)
            calls = [call for call in dict.fromkeys(chosen) if call not in past_calls][: TOOL_CALLS - len(past_calls)]
            past_calls.update(calls)
            for record in _run_calls(calls, tools, end):
                sources = _add_result(sources, record, names, turn)
            turn.deadline.check()
            if not calls or len(past_calls) >= TOOL_CALLS or not end.seconds_left:
                break
    failed = ", ".join(dict.fromkeys(use.name for use in sources.tool_uses if not use.ok))
    return replace(sources, tool_failure=f"Tools of the site could not be used: {failed}.") if failed else sources


def _choose(caller: ToolCaller, context: AnswerContext, tools: TurnTools, end: Deadline) -> tuple[ToolCall, ...]:
    nonce = new_nonce()
    request = ModelRequest(tool_instructions(nonce), conversation(context.request, nonce), MAX_TOOL_TOKENS, end)
    calls = caller.choose_tools(request, tools.specs)
    if calls is None:
        log.event("error", code="tools_not_offered", message="The generator's model takes no tools.")
    return calls or ()


def _run_calls(calls: Sequence[ToolCall], tools: TurnTools, end: Deadline) -> list[_CallRecord]:
    """Make all calls at once and return their records in order. A call that takes too long has failed."""

    def run_timed(call: ToolCall) -> _CallRecord:
        started = time.perf_counter()
        result = tools.run(call, end)
        return _CallRecord(call, result, round(time.perf_counter() - started, 6))

    if not calls:
        return []
    pool = ThreadPoolExecutor(len(calls), "chapterverse-tool")
    started = [pool.submit(copy_context().run, run_timed, call) for call in calls]
    done, _ = wait(started, end.seconds_left)
    pool.shutdown(wait=False, cancel_futures=True)
    late = ToolResult(False, error=_LATE)
    return [
        one.result() if one in done else _CallRecord(call, late, TOOL_SECONDS)
        for call, one in zip(calls, started, strict=True)
    ]


def _add_result(sources: DraftSources, record: _CallRecord, names: Collection[str], turn: Turn) -> DraftSources:
    """Return the sources with the result of a call, after logging it."""
    result, name = record.result, record.call.name if record.call.name in names else "unknown"
    reason = {"message": result.cause or result.error} if result.error else {}
    turn.log("tool_called", tool=name, ok=result.ok, seconds=record.seconds, **reason)
    use = ToolUse(id=str(_next_number(sources.context)), name=name, ok=result.ok)
    return replace(sources, context=_add_sources(sources.context, result.output), tool_uses=(*sources.tool_uses, use))


def _next_number(context: AnswerContext) -> int:
    return 1 + max((int(passage.id) for passage in context.request.passages), default=0)


def _add_sources(context: AnswerContext, output: Sequence[ToolSource]) -> AnswerContext:
    """Return a context with further sources, without the sections that it has already."""
    request, sources, remaining_bytes = (
        context.request,
        list(context.sources),
        int(MAX_RESULT_TOKENS * PROMPT_TOKEN_BYTES),
    )
    urls, passages = {passage.url for passage in request.passages if passage.url}, list(request.passages)
    number = _next_number(context)
    links = AddressFilter(request.passages, site=SiteText(context.snapshot))
    for source in output:
        # An address that another server names must not be shown under this site's name.
        text = source.text if source.url else links.without_foreign(source.text)
        text = cut_to_bytes(text, remaining_bytes).strip()
        if not text or source.url in urls:
            continue
        remaining_bytes -= len(text.encode())
        terms = lexical.terms_of(lexical.words(f"{source.title}\n{text}", request.language))
        passages.append(Passage(str(number), (source.title,), text, text, terms, score=0.0, url=source.url))
        sources.append(make_source(passages[-1], source.title))
        number += 1
    return replace(context, request=replace(request, passages=tuple(passages)), sources=tuple(sources))
