"""The tools of one site: the built-in tools that it enables, and the owner's tools, which ask the owner's servers.

The file `tools.yml` lists them. A model's arguments are checked by the tool's schema, and may not change the address
around their places.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from zoneinfo import ZoneInfo

from pydantic import Field, StringConstraints, ValidationError

from chapterverse.errors import ChapterVerseError, ConfigurationError, FetchFailed, InputError
from chapterverse.ext.net.fetch import Fetcher, private_hosts
from chapterverse.settings import TOOL_SECRETS, Settings
from chapterverse.text.json_text import parse_json
from chapterverse_api import log, rejections
from chapterverse_api.answer.resources import Resources
from chapterverse_api.contract import RequestModel, ResponseModel
from chapterverse_api.deadline import ClientDisconnected, Deadline
from chapterverse_api.draft.draft import Writer
from chapterverse_api.draft.requests import Passage, ToolCall, ToolResult, ToolSpec
from chapterverse_api.ext.agents.data import MAX_LEAVES, leaf_line, leaves
from chapterverse_api.ext.agents.schema import parse_schema, problem
from chapterverse_api.ext.agents.tools import documentation
from chapterverse_api.ext.agents.tools.address_template import AddressTemplate
from chapterverse_api.ext.agents.tools.tool import JsonObject, RunTool, Tool, ToolContext, make_tool
from chapterverse_api.service import Service

_MAX_TOOLS, _MAX_BYTES = 16, 32_000
#: Characters of a model's arguments.
_MAX_ARGUMENT_CHARS = 8_000
#: Results of a search that become sources.
_MAX_RESULTS = 3
#: For readers.
_NO_ANSWER = "The tool gave no answer that can be used."
_SCALARS = {"string", "integer", "number", "boolean"}
#: Types of an answer that are read: a page of HTML is for people, and may hold anything.
_JSON, _TEXT = ("application/json", "+json"), ("text/plain", "text/markdown")


def open_tools(resources: Resources) -> Callable[[Service, Deadline], SiteTools]:
    """Return what offers the tools that the settings name to a turn. Raises as `read_tools` does."""
    if not isinstance(resources.models.generator, Writer):
        message = f"CHAPTERVERSE_TOOLS is set, but the generator {resources.models.generator.name} calls no tools."
        log.event("error", code="tools_not_offered", message=message)
    tools = read_tools(resources.settings)
    return lambda service, _: SiteTools(tools, service)


ToolName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
VariableName = Annotated[str, StringConstraints(pattern=rf"^{TOOL_SECRETS}[A-Z0-9_]{{1,64}}$")]
BuiltIn = Literal["search_docs", "read_section", "datetime"]


class ToolEntry(RequestModel):
    """A tool of the owner's.

    Attributes:
        parameters: JSON Schema of its arguments.
        url: HTTPS address with `{name}` at the place of a parameter; the other parameters follow as its query.
        headers: the variable that holds a header's value, by the header.
        seconds: for a whole answer.
        max_bytes: of an answer.
    """

    name: ToolName
    title: Annotated[str, StringConstraints(min_length=1, max_length=60)] | None = None
    description: Annotated[str, StringConstraints(min_length=1, max_length=1000)]
    parameters: dict[str, Any]
    url: Annotated[str, StringConstraints(min_length=1, max_length=2048)]
    headers: Annotated[dict[str, VariableName], Field(default_factory=dict, max_length=8)]
    seconds: Annotated[float, Field(gt=0, le=10)] = 5
    max_bytes: Annotated[int, Field(ge=1, le=1_000_000)] = 65_536


class ToolFile(RequestModel):
    """What `tools.yml` holds."""

    built_in: Annotated[list[BuiltIn], Field(default_factory=list)]
    tools: Annotated[list[ToolEntry], Field(default_factory=list, max_length=_MAX_TOOLS)]


class ClockArguments(RequestModel):
    timezone: Annotated[str, Field(max_length=64, description="IANA name, such as Europe/Berlin.")] = "UTC"


class ClockResult(ResponseModel):
    date: str
    time: str
    weekday: str
    timezone: str


def clock(arguments: ClockArguments, _: ToolContext) -> ClockResult:
    """Tell today's date and the time. Call it for questions that speak of today, or of how long something lasts."""
    try:
        now = datetime.now(UTC).astimezone(ZoneInfo(arguments.timezone))
    except (KeyError, ValueError, OSError):
        raise InputError("timezone is no name of a time zone.", field="timezone") from None
    return ClockResult(date=f"{now:%Y-%m-%d}", time=f"{now:%H:%M}", weekday=f"{now:%A}", timezone=arguments.timezone)


@dataclass(frozen=True, slots=True)
class SiteTools:
    """The tools that the chat's model may call, by name. Implements `chapterverse_api.draft.requests.TurnTools`."""

    by_name: Mapping[str, Tool]
    service: Service

    @property
    def specs(self) -> Sequence[ToolSpec]:
        return [tool.spec for tool in self.by_name.values()]

    def run(self, call: ToolCall, deadline: Deadline) -> ToolResult:
        """Check a call's arguments and make it; see `TurnTools`."""
        try:
            arguments = _arguments(call.arguments)
            tool = self.by_name.get(call.name)
            if tool is None:
                return ToolResult(False, error="There is no such tool.")
            if reason := problem(arguments, tool.arguments) if call.name not in get_args(BuiltIn) else None:
                return ToolResult(False, error=f"The arguments do not fit: {reason}.")
            return ToolResult(True, _sources(tool.title, tool.run(arguments, ToolContext(self.service, deadline))))
        except (InputError, rejections.Rejection) as error:
            return ToolResult(False, error=str(error))
        except ChapterVerseError as error:
            # It may name a host.
            return ToolResult(False, error=_NO_ANSWER, cause=str(error))
        except ClientDisconnected:
            raise
        except Exception as error:
            # A fault of this program costs a result, and never the answer.
            rejections.report(error)
            return ToolResult(False, error="The tool failed.")


def read_tools(settings: Settings) -> dict[str, Tool]:
    """Return the tools of `settings.tools` by name; nothing is sent yet.

    Raises:
        ConfigurationError: the file can't be read, or one of its tools can't be used.
    """
    file = _read_file(settings.tools)
    built_in = {**documentation.documentation_tools(), "datetime": _CLOCK}
    tools = {name: built_in[name] for name in file.built_in} | {one.name: _tool(one, settings) for one in file.tools}
    if not tools:
        raise _unusable("names no tool")
    if len(tools) < len({*file.built_in}) + len(file.tools) or {*built_in} & {entry.name for entry in file.tools}:
        raise _unusable("has two tools of one name, or one with the name of a built-in tool")
    if len(json.dumps([[tool.name, tool.description, tool.arguments] for tool in tools.values()])) > _MAX_BYTES:
        raise _unusable(f"is longer than {_MAX_BYTES} characters in all, which each question would send")
    return tools


def _read_file(path: str) -> ToolFile:
    try:
        text = Path(path).read_text(encoding="utf-8")
        return ToolFile.model_validate(parse_json(text) if path.endswith(".json") else _yaml(text))
    except OSError:
        raise ConfigurationError(f"CHAPTERVERSE_TOOLS names {path}, which can't be read.") from None
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"])) or "it"
        raise _unusable(f"can't be used: {at}: {first['msg'][:200]}") from None
    except ValueError:
        raise _unusable("is no YAML, or no JSON where its name ends so") from None


def _yaml(text: str) -> Any:
    # Not part of the Lambda package, which holds the file as JSON.
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise ValueError("no YAML") from None


def _unusable(reason: str) -> ConfigurationError:
    return ConfigurationError(f"The file of CHAPTERVERSE_TOOLS {reason}.")


def _tool(entry: ToolEntry, settings: Settings) -> Tool:
    """Return a tool that asks a server.

    Raises:
        ConfigurationError: its schema, its address or a header can't be used.
    """
    try:
        schema = parse_schema(entry.name, {"type": "object", "properties": {}, **entry.parameters}, empty=True)
    except InputError as error:
        raise _unusable(f"can't be used: {str(error).rstrip('.')}") from None
    template, secrets = _read_template(entry, settings), dict(settings.tool_secrets)
    for name, part in schema["properties"].items():
        if part.get("type") not in _SCALARS:
            raise _unusable(f"can't be used: {entry.name}: {name[:60]!a} must be text, a number or a boolean")
    if missing := sorted(template.names - {*schema.get("required", ())}):
        raise _unusable(f"can't be used: {entry.name}: {missing[0][:60]!a} of its address is no required parameter")
    if unset := [name for name in entry.headers.values() if name not in secrets]:
        raise _unusable(f"can't be used: {entry.name} needs the variable {unset[0]}, which is not set")
    headers = {header: secrets[name] for header, name in entry.headers.items()}
    closed = {**schema, "additionalProperties": False}
    run = _make_request(entry, template, headers, settings.allow_private)
    return Tool(entry.name, entry.title or entry.name, entry.description, closed, {"type": "object"}, run)


def _read_template(entry: ToolEntry, settings: Settings) -> AddressTemplate:
    try:
        template = AddressTemplate.parse(entry.url)
        if template.parts.scheme == "http" and template.place not in private_hosts(settings.allow_private):
            raise ValueError("must begin with https://")
    except ValueError as error:
        raise _unusable(f"can't be used: {entry.name}: its address {error}") from None
    return template


def _make_request(
    entry: ToolEntry, template: AddressTemplate, headers: Mapping[str, str], allow_private: str
) -> RunTool:
    """Return what asks a tool's server for one result."""
    headers = {"Accept": "application/json, text/plain;q=0.9, text/markdown;q=0.9", **headers}
    fetcher = Fetcher(
        allow_private=allow_private,
        # Not even its own redirect may lead elsewhere, since the owner's key goes along.
        below=template.folder,
        max_bytes=entry.max_bytes,
        seconds=entry.seconds,
    )

    def run(arguments: JsonObject, context: ToolContext) -> JsonObject:
        deadline = context.deadline
        seconds = min(entry.seconds, deadline.seconds_left)
        got = fetcher.get(template.fill(arguments), headers, seconds=seconds, closing=deadline.closing)
        if got.status != 200:
            raise FetchFailed(f"The tool's server answered with the status {got.status}.")
        kind = got.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            text = got.body.decode()
            if kind.endswith(_JSON):
                return {"output": _read_json(text)}
        except ValueError:
            raise FetchFailed("The tool's server answered with something that can't be read.") from None
        if kind not in _TEXT:
            raise FetchFailed("The tool's server answered with neither JSON nor plain text.")
        return {"output": text}

    return run


def _read_json(text: str) -> Any:
    return parse_json(text, parse_constant=lambda _: None)


def _arguments(text: str) -> dict[str, Any]:
    try:
        arguments = _read_json(text) if len(text) <= _MAX_ARGUMENT_CHARS else None
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise InputError("The arguments are no JSON object, or too long.")
    return arguments


def _sources(title: str, result: JsonObject) -> tuple[Passage, ...]:
    """Return a result's texts: each quoted section of the documentation alone, anything else as one text."""
    quoted = result.get("results") or result.get("sections")
    if isinstance(quoted, list):
        return tuple(
            _source((one["chapter"], *filter(None, (one["section"],))), one["quote"], one["url"])
            for one in quoted[:_MAX_RESULTS]
        )
    output = result.get("output", result)
    if isinstance(output, str):
        return (_source((title,), output),)
    lines = [text for _, leaf in zip(range(MAX_LEAVES), leaves(output), strict=False) if (text := leaf_line(leaf))]
    return (_source((title,), "".join(lines)),)


def _source(path: tuple[str, ...], text: str, url: str | None = None) -> Passage:
    return Passage("", path, text, text, score=0.0, url=url)


_CLOCK = make_tool("datetime", "Date and time", clock)
