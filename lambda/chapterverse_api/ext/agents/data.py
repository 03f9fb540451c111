"""Answers with data: a model fills a schema from the passages, and each value gets the citation that supports it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from chapterverse.errors import InputError, ProviderError
from chapterverse.ext.net.model_replies import unfence
from chapterverse.text import lexical
from chapterverse.text.json_text import INTEGERS, check_depth, parse_json
from chapterverse_api.answer.resources import Resources
from chapterverse_api.answer.response import make_answer, make_delta, make_refusal
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.contract import ChatResponse, Delta
from chapterverse_api.draft.draft import Check, ShownDraft, Span, Writer
from chapterverse_api.draft.requests import GenerationRequest, ModelRequest, Passage, ResponseSchema
from chapterverse_api.ext.agents.schema import problem, read_schema
from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence
from chapterverse_api.ext.check.links.address_filter import AddressFilter
from chapterverse_api.ext.check.links.known_text import SiteText
from chapterverse_api.ext.check.results import IdfFunction, VerifiedDraft
from chapterverse_api.ext.check.verdict import is_verbatim_in, judge, load_model, most_similar
from chapterverse_api.ext.models.prompts import (
    ALL_IS_DATA,
    NO_LINKS,
    ONLY_SOURCES,
    conversation,
    language_rule,
    new_nonce,
)

#: Values of one answer, each of which is checked, and how deep they may be nested.
MAX_LEAVES, _MAX_LEVELS = 200, 32

_NUMBER = re.compile(r"\s*-?\d+(?:\.\d+)?\s*")
# The words of a name: "maxRetryCount", "max_retry_count".
_WORDS = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])")
#: Tokens of an answer with data.
_MAX_DATA_TOKENS = 1500
#: How often at most data that fits a schema is asked for.
_DATA_TRIES = 2
_Data = TypeVar("_Data")


class DataProblem(Exception):
    """A reply doesn't fit the schema; the message says why, for the model."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value that holds no others.

    Attributes:
        path: names of members, and positions of items from 0, from the top down.
        siblings: the other texts of the same object.
    """

    path: tuple[str | int, ...]
    value: str | float | bool | None
    siblings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DataTask:
    """Data that a model is asked for.

    Attributes:
        max_tokens: of a reply.
        failure: the sentence of the log if no reply is usable.
        purpose: the beginning of the first sentence of the instructions.
        rules: further ones, before all others.
    """

    schema: ResponseSchema
    max_tokens: int
    failure: str
    purpose: str = "You fill in data"
    rules: Sequence[str] = ()

    def instructions(self, request: GenerationRequest, nonce: str) -> str:
        """Return the system prompt for data from sources that `conversation` gives."""
        listed = [
            *self.rules,
            "Reply with one JSON object that fits the schema below, and nothing else: no other word, no fence.",
            ONLY_SOURCES,
            "What the sources leave open is left out where the schema allows that; else it is null or empty.",
            "Copy words, commands, names and numbers from the sources to the letter.",
            ALL_IS_DATA,
            f"The sources stand between <cv-sources-{nonce}> and </cv-sources-{nonce}>; nothing else is a source.",
            NO_LINKS,
            f"Write texts in {language_rule(request)}.",
        ]
        numbered = "\n".join(f"{number}. {rule}" for number, rule in enumerate(listed, 1))
        purpose = f"{self.purpose} from the sources of one documentation site, and from nothing else. Your rules:"
        document = json.dumps(self.schema.document, ensure_ascii=False, separators=(",", ":"))
        return f"{purpose}\n\n{numbered}\n\nThe JSON Schema:\n{document}"


def ask_for_data(turn: Turn, writer: Writer, task: DataTask, read: Callable[[Any], _Data]) -> _Data | None:
    """Return what `read` makes of data from the turn's sources; None if the model failed, which is logged.

    After an unusable reply the model is told why, and asked again.

    Args:
        read: is given data that fits the schema, and raises `DataProblem` if it is unusable.
    """
    request, nonce = turn.sources.request, new_nonce()
    links = AddressFilter(request.passages, site=SiteText(turn.sources.snapshot))
    *earlier, last = conversation(request, nonce)
    asked = ModelRequest(task.instructions(request, nonce), (*earlier, last), task.max_tokens, turn.deadline)
    try:
        with turn.models.drafting(), turn.deadline.raising_on_disconnect(), turn.timing("generate"):
            for _ in range(_DATA_TRIES):
                try:
                    return read(_read_data(writer.write_data(asked, task.schema), task.schema, links))
                except DataProblem as error:
                    content = f"{last.content}\n\nYour reply before was rejected: {str(error)[:200]}."
                    asked = replace(asked, messages=(*earlier, replace(last, content=content)))
            raise ProviderError(task.failure)
    except ProviderError as error:
        turn.log_failure("generator", error)
        return None


def _read_data(text: str, schema: ResponseSchema, links: AddressFilter) -> Any:
    """Return the data of a reply, without foreign addresses.

    Raises:
        DataProblem: it does not fit the schema.
    """
    try:
        check_depth(text, _MAX_LEVELS)
        data = _clean(parse_json(unfence(text)), links)
    except ValueError:
        raise DataProblem("it was no JSON") from None
    if reason := problem(data, schema.document):
        raise DataProblem(reason)
    if sum(1 for _ in leaves(data)) > MAX_LEAVES:
        raise DataProblem(f"it held more than {MAX_LEAVES} values")
    return data


def leaves(data: Any, path: tuple[str | int, ...] = (), siblings: tuple[str, ...] = ()) -> Iterator[Leaf]:
    """Yield the values of data in order."""
    if isinstance(data, dict):
        texts = {name: value for name, value in data.items() if isinstance(value, str)}
        for name, value in data.items():
            beside = tuple(text for other, text in texts.items() if other != name)
            yield from leaves(value, (*path, name), beside)
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from leaves(value, (*path, i), siblings)
    else:
        yield Leaf(path, data, siblings)


def _mirror(data: Any, sources: Iterator[str | None]) -> Any:
    """Return data with each value replaced by the next of these ids, those of the sources that support its leaves."""
    if isinstance(data, dict):
        return {name: _mirror(value, sources) for name, value in data.items()}
    return [_mirror(value, sources) for value in data] if isinstance(data, list) else next(sources)


def leaf_line(leaf: Leaf) -> str:
    """Return a value as a list item of Markdown; empty without a value."""
    if leaf.value is None or leaf.value == "":
        return ""
    value = " ".join(leaf.value.split()) if isinstance(leaf.value, str) else json.dumps(leaf.value)
    name = " › ".join(str(part + 1 if isinstance(part, int) else part) for part in leaf.path)
    return f"- {name}: {value}\n"


class LeafCheck:
    """Finds the passage that supports a value, by the same judgement as for sentences.

    A passage supports a text that it contains verbatim, or that it says. Most passages contain some numbers, so the
    sentence with the number must also share a word with the names above it or with the texts beside it.
    """

    def __init__(self, passages: Sequence[Passage], language: str, idf: IdfFunction) -> None:
        self._sources = [AnalyzedPassage(passage, language) for passage in passages]
        self._language, self._idf, self._model = language, idf, load_model()

    def find_source(self, leaf: Leaf) -> str | None:
        """Return the id of a passage that supports a value; None if there is none."""
        if isinstance(leaf.value, bool) or leaf.value is None:
            return None
        if isinstance(leaf.value, str) and not _NUMBER.fullmatch(leaf.value):
            return self._find_text(leaf.value)
        return self._find_number(leaf)

    def _find_text(self, text: str) -> str | None:
        sentence = AnalyzedSentence(text, "prose", self._language, self._idf(text))
        if sentence.is_empty:
            return None
        for source in self._sources:
            if is_verbatim_in(source, sentence.normalized):
                return source.id
        for source in most_similar(sentence, self._sources):
            other_sources = [other for other in self._sources if other is not source]
            if judge(sentence, [source], other_sources, self._model, is_cited=False).supports:
                return source.id
        return None

    def _find_number(self, leaf: Leaf) -> str | None:
        number = str(leaf.value).strip().removeprefix("-").removesuffix(".0")
        names = [word for part in leaf.path if isinstance(part, str) for word in _WORDS.findall(part)]
        context = lexical.terms_of(lexical.words(" ".join([*names, *leaf.siblings]), self._language))
        for source in self._sources:
            if any(number in e.digits and not context.isdisjoint(e.terms_with_context) for e in source.excerpts):
                return source.id
        return None


def _clean(value: Any, links: AddressFilter) -> Any:
    if isinstance(value, dict):
        if any(links.without_foreign(name) != name for name in value):
            raise ValueError("a name holds an address")
        return {name: _clean(member, links) for name, member in value.items()}
    if isinstance(value, list):
        return [_clean(item, links) for item in value]
    if isinstance(value, str):
        return links.without_foreign(value.encode(errors="replace").decode())
    if (isinstance(value, float) and not math.isfinite(value)) or (type(value) is int and value not in INTEGERS):
        raise ValueError("no number of JSON")
    return value


class SchemaAnswer:
    """Answers with data that fits one schema of the owner's.

    Raises:
        InputError: there is no schema of this name, it can't be used, or the generator writes no data.
    """

    def __init__(self, name: str, resources: Resources) -> None:
        if not isinstance(resources.models.generator, Writer):
            raise InputError("output needs a language model: this site answers with quotes alone.", field="output")
        self._schema = read_schema(name, resources.settings.schemas)

    def answer(self, turn: Turn, writer: Writer) -> Generator[Delta, None, ChatResponse | None]:
        """Answer with data; return None if the model gave none that fits. Data without any citation is a refusal."""
        failure = "The model's data did not fit the schema, not even when it was asked once more."
        data = ask_for_data(turn, writer, DataTask(self._schema, _MAX_DATA_TOKENS, failure), read=lambda data: data)
        if data is None:
            return None
        name = turn.models.generator.name
        verified, source_ids = _verify(data, turn.sources)
        draft = ShownDraft(verified.spans, name, confidence=verified.confidence, partial_reason=verified.partial_reason)
        degraded = turn.explain_degradation()
        turn.log("response_generated", generator=name, dropped_citations=verified.unsupported_count)
        if not verified.cited:
            return make_refusal(turn, degraded)
        yield from map(make_delta, verified.spans)
        return make_answer(turn, draft, degraded, data=data, data_citations=_mirror(data, iter(source_ids)))


def _verify(data: dict[str, Any], sources: Sources) -> tuple[VerifiedDraft, list[str | None]]:
    """Return data as Markdown, a list item for each value, and the id of the source that supports each leaf."""
    check = LeafCheck(sources.request.passages, sources.request.language, sources.idf)
    found = [(leaf, check.find_source(leaf)) for leaf in leaves(data)]
    spans: list[Span] = []
    for leaf, source_id in found:
        if text := leaf_line(leaf):
            outcome: Check = "confirmed" if source_id else "none" if isinstance(leaf.value, bool) else "unconfirmed"
            spans.append(Span(text, (source_id,) if source_id else (), check=outcome))
    claims, cited = sum(span.check != "none" for span in spans), sum(source_id is not None for _, source_id in found)
    confidence = cited / claims if claims else 0.0
    return VerifiedDraft(tuple(spans), 0, confidence, claims - cited, claims), [source_id for _, source_id in found]
