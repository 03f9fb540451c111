"""Commands `search` and `ask`, and the service as these and other commands of its owner use it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note
from chapterverse.cli.parameters import argument, option, print_json, settings_from, switch
from chapterverse.errors import InputError
from chapterverse.extensions import load_part
from chapterverse.filters import NUMBERS, FilterTree
from chapterverse.model import Head
from chapterverse.store import Snapshot
from chapterverse.text.json_text import parse_json
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.detection import FollowUpVerdict, detect_follow_up, rewrite_follow_up
from chapterverse_api.conversation.transcript import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.rejections import make_query
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import (
    SearchRequest,
    order_by_models,
    retrieve,
    search_follow_up,
    site_filter,
)
from chapterverse_api.service import Service

#: Earlier messages of a conversation, as in `ChatQuery.conversation_history`.
History = list[dict[str, str]] | None


class SearchRow(TypedDict):
    """A chunk that a search found. `score` is its evidence, `url` the address for readers."""

    rank: int
    score: float
    url: str
    chapter: str
    section: str | None
    heading_path: list[str]
    source_file_path: str
    chunk_id: str
    text: str


class ServiceSession(Service):
    """The service for its owner.

    A question, its history or a filter that is invalid raises `InputError`, and an index that can't be read
    `IndexFault`.
    """

    __slots__ = ()

    def snapshot(self, version: str | None = None) -> Snapshot:
        return self.resources.index.snapshot(version)

    def answer(self, **fields: Any) -> dict[str, Any]:
        query, deadline = make_query(**without_none(fields)), Deadline()
        *_, response = answer_turn(Turn.open(query, self.resources, deadline=deadline, tools=self.turn_tools(deadline)))
        return response.model_dump(mode="json")

    def search(self, question: str, top_k: int, filters: Mapping[str, Any], history: History = None) -> list[SearchRow]:
        """Return the rows of `search --json` for one question: chunks unexpanded, best first."""
        query = make_query(query=question, conversation_history=history or [], filters=filters)
        return self._rows(*self._search(query), top_k)

    def _search(self, query: ChatQuery, hidden_types: AbstractSet[str] = frozenset()) -> tuple[Retrieval, Head]:
        models, snapshot = self.resources.models, self.snapshot(query.docs_version)
        filters = self._filter(query, snapshot, hidden_types)
        retrieval = self._search_follow_up(
            query, snapshot, lambda text: retrieve(snapshot, models.embedder, SearchRequest(text, filters=filters))
        )
        ordered = order_by_models(retrieval, retrieval.searched, models.reranker, models.reading_model, Deadline())
        return ordered, snapshot.head

    def _filter(self, query: ChatQuery, snapshot: Snapshot, hidden_types: AbstractSet[str]) -> FilterTree | None:
        index = self.resources.index
        return site_filter(query.filters, snapshot, index, entity=query.entity, hidden_types=hidden_types)

    def _search_follow_up(self, query: ChatQuery, snapshot: Snapshot, search: Callable[[str], Retrieval]) -> Retrieval:
        """Search without a model that writes a follow-up in full, in all languages, and with memories."""
        question, conversation = query.query or "", Conversation.from_query(query, self.resources.signer)
        languages = snapshot.head.languages
        verdict: FollowUpVerdict = detect_follow_up(question, languages) if conversation.questions else "no"
        rewrite = partial(rewrite_follow_up, question, conversation, None, Deadline(), languages)
        return search_follow_up(question, verdict, rewrite, search)

    def _rows(self, retrieval: Retrieval, head: Head, top_k: int) -> list[SearchRow]:
        return [
            {
                "rank": rank,
                "score": round(c.evidence, 4),
                "url": self.resources.index.public_url(c.chunk, head),
                "chapter": c.chunk.chapter_title,
                "section": c.chunk.section_heading,
                "heading_path": list(c.chunk.heading_path),
                "source_file_path": c.chunk.source_file_path,
                "chunk_id": c.chunk.chunk_id,
                "text": c.chunk.text,
            }
            for rank, c in enumerate(retrieval.candidates[:top_k], 1)
        ]


def without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def search(
    question: str | None = argument("What to look for.", "QUESTION"),
    questions: Path | None = option('File of {"id", "question"} objects.', "FILE.jsonl"),
    top_k: int = option("Number of results for each question.", default=5, min=1, max=20),
    filters: list[str] | None = option(
        "FIELD=VALUE, FIELD^=PREFIX, or a filter as JSON; may be repeated.", "F", name="--filter"
    ),
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.ServiceFlags],
) -> None:
    """List the chunks that a question finds.

    The best comes first, each with its evidence from 0 to 1. --questions searches for all questions of a file.
    """
    if (question is None) == (questions is None):
        raise typer.BadParameter("Give either a QUESTION or --questions FILE.jsonl.")
    rows: list[_Row] = load_part("questions")(questions) if questions else [_Row("1", question or "")]
    where = _filters(filters or [])
    service = ServiceSession.open(settings_from(**flags))
    results = [_search_row(row, service, top_k, where) for row in rows]
    if as_json:
        print_json(results)
        return
    for row, result in zip(rows, results, strict=True):
        typer.echo(f"{row.question}\n")
        for hit in result["results"]:
            typer.echo(f"{hit['rank']:3} {hit['score']:.2f}  {heading_line(hit)}\n          {hit['url']}")


def ask(
    question: str | None = argument("What to ask.", "QUESTION"),
    selected_text: str | None = option("Answer from this text alone.", "T"),
    page_url: str | None = option("Page of the selected text."),
    history: parameters.History = None,
    schema: str | None = option("Answer with data that fits this schema.", "NAME"),
    plan: bool = switch("--plan", "Answer with a plan of steps."),
    entity: str | None = option("Search this entity's documents too.", "NAME"),
    context: str | None = option("Facts about the reader: 'I use pnpm'.", "T"),
    as_json: parameters.Json = False,
    **flags: Unpack[parameters.ServiceFlags],
) -> None:
    """Answer a question, or explain a text.

    The answer has citations, as in the chat.
    """
    if question is None and selected_text is None:
        raise typer.BadParameter("Give a QUESTION, --selected-text, or both.")
    service = ServiceSession.open(settings_from(**flags))
    if plan:
        if question is None or selected_text or history or schema or entity or context:
            raise typer.BadParameter(
                "--plan takes a QUESTION, and neither a text, a history, a schema, an entity nor a context."
            )
        request = without_none({"query": question, "page_url": page_url})
        if as_json:
            print_json(load_part("plans")(service, **request))
        else:
            read = _prompt if sys.stdin.isatty() else None
            _print_places(load_part("plan_walk")(service, request, typer.echo, note, read))
        return
    answer = service.answer(
        query=question,
        selected_text=selected_text,
        page_url=page_url,
        conversation_history=conversation_from(history),
        output=schema,
        entity=entity,
        user_context=context,
    )
    if as_json:
        print_json(answer)
    else:
        _print_with_places(answer)


def _print_with_places(answer: dict[str, Any]) -> None:
    """Print an answer, the query of its search, and the places that it cites or else the nearest ones."""
    if searched := answer["searched_as"]:
        label = "Following up on" if searched["reason"] == "follow_up" else "Showing results for"
        typer.echo(f"{label}: {searched['query']}\n")
    _print_answer(answer)
    if answer["partial_reason"] == "choice":
        typer.echo("\n".join(f"- {text}" for text in answer["follow_ups"]))
    cited = {i for segment in answer["segments"] for i in segment["citations"]}
    _print_places([s for s in answer["source_chunks"] if s["id"] in cited] or answer["nearest"])


def _print_places(places: list[dict[str, Any]]) -> None:
    for place in places:
        typer.echo(f"[{place.get('id', '·')}] {heading_line(place)}  {place['url'] or ''}")


def _prompt() -> str:
    text: str = typer.prompt("", prompt_suffix="> ", default="", show_default=False)
    return text


class _Row(NamedTuple):
    """A question to search for, as a row of a file is.

    Attributes:
        place: the file and its line; empty for a question of the command line.
    """

    id: str
    question: str
    history: History = None
    place: str = ""


def _search_row(row: _Row, service: ServiceSession, top_k: int, filters: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"id": row.id, "results": service.search(row.question, top_k, filters, row.history)}
    except InputError as error:
        # Every row has the same filters; other errors belong to this row.
        if row.place and error.field != "filters":
            raise InputError(f"{row.place}: {error}") from None
        raise


def _filters(texts: list[str]) -> dict[str, Any]:
    """Return one filter: OR within a field, AND between fields and JSON filters."""
    fields: dict[str, list[dict[str, Any]]] = {}
    for text in texts:
        if not text.startswith("{"):
            name, separator, value = text.partition("=")
            if not separator:
                raise typer.BadParameter("A --filter needs the form field=value, field^=prefix, or JSON.")
            field = name.removesuffix("^")
            condition = _parse_value(field, value) if name == field else {"$prefix": value}
            fields.setdefault(field, []).append({field: condition})
    parts = [_join("$or", conditions) for conditions in fields.values()]
    return _join("$and", [*parts, *(_json(text) for text in texts if text.startswith("{"))]) if texts else {}


def _join(operator: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {operator: parts} if parts[1:] else parts[0]


def _parse_value(field: str, value: str) -> str | int:
    if field in NUMBERS:
        with contextlib.suppress(ValueError):
            return int(value)
    return value


def _json(text: str) -> dict[str, Any]:
    try:
        return dict(parse_json(text, object_pairs_hook=_without_doubles))
    except ValueError:
        raise typer.BadParameter("A --filter in braces needs to be a JSON object without a key twice.") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key occurs twice")
    return dict(pairs)


def heading_line(place: dict[str, Any]) -> str:
    return " › ".join(dict.fromkeys(p for p in (place["chapter"], place["section"]) if p))


def conversation_from(file: Path | None) -> Any:
    """Return the messages of a file, None without one; the service checks their form.

    Raises:
        InputError: the file can't be read, or is no JSON list.
    """
    if file is None:
        return None
    try:
        messages = parse_json(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{file} can't be read ({error.strerror}): name a file of messages.") from None
    except ValueError as error:
        raise InputError(f"{file} is no JSON in UTF-8: {error}.") from None
    if not isinstance(messages, list):
        raise InputError(f"{file} holds no JSON list of messages: write each with a role and its content.")
    return messages


def _print_answer(answer: dict[str, Any]) -> None:
    """Print the answer; on a terminal each quote in a frame, under its heading and its number, after what answers."""
    if not sys.stdout.isatty():
        typer.echo(f"{answer['response']}\n")
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.panel import Panel
    from rich.text import Text

    console = Console()
    places = {place["id"]: place for place in answer["source_chunks"]}
    for segment, following in zip(answer["segments"], [*answer["segments"][1:], None], strict=True):
        headed = following is not None and following["kind"] == "quote" and segment["text"].strip().startswith("**")
        if segment["kind"] == "quote" and segment["citations"]:
            number = segment["citations"][0]
            if segment["mark"]:
                console.print(Text(" ".join(segment["mark"].split()), style="bold green"))
            title = Text(f"[{number}] {heading_line(places[number])}", style="bold cyan")
            console.print(Panel(Markdown(segment["text"]), title=title, title_align="left", border_style="cyan"))
        # The frame has the heading of a quote.
        elif not (segment["kind"] == "framing" and headed):
            console.print(Markdown(segment["text"]))
    console.print()
