"""What a tool is, and how a function becomes one. This module knows no tool and no protocol."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, get_type_hints

from pydantic import BaseModel

from chapterverse.text.json_text import parse_json
from chapterverse_api.contract import dump
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.requests import ToolSpec
from chapterverse_api.rejections import parse_request

if TYPE_CHECKING:
    from chapterverse_api.service import Service

#: A JSON Schema, or a value that one describes.
JsonObject: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The resources of a call.

    Attributes:
        origins: further addresses that a reader's page may be on, besides the site's own.
    """

    service: Service
    deadline: Deadline = field(default_factory=Deadline)
    origins: Collection[str] = ()


#: Runs a tool: its arguments in, its result out, both as JSON. Blocks. Raises `InputError` for arguments that it can't
#: use, and other errors of `chapterverse.errors`.
RunTool: TypeAlias = Callable[[JsonObject, ToolContext], JsonObject]


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that reads and changes nothing.

    Attributes:
        title: the name of the tool for people.
        description: what it does and when to call it, for a model.
        arguments: JSON Schema (2020-12) of its arguments, an object.
        result: JSON Schema of its result, an object.
    """

    name: str
    title: str
    description: str
    arguments: JsonObject
    result: JsonObject
    run: RunTool

    @property
    def spec(self) -> ToolSpec:
        """The tool as it is offered to a model."""
        return ToolSpec(self.name, self.description, dict(self.arguments))


def make_tool(name: str, title: str, function: Callable[[Any, ToolContext], BaseModel]) -> Tool:
    """Wrap a function over models as a tool. Its annotations become the schemas, its docstring the description."""
    types = get_type_hints(function, include_extras=True)
    arguments: type[BaseModel] = types["arguments"]

    def run(document: JsonObject, context: ToolContext) -> JsonObject:
        present = _present(document, arguments)
        return dump(function(parse_request(arguments, present, subject="The object of arguments"), context))

    description = " ".join((function.__doc__ or "").split())
    schemas = _make_schema(arguments), _make_schema(types["return"], "serialization")
    return Tool(name, title, description, *schemas, run)


def _present(document: JsonObject, arguments: type[BaseModel]) -> dict[str, Any]:
    """Return the arguments that a client gives: some send null or "" for what they leave out, and texts of JSON."""
    present = dict[str, Any]()
    for name, value in document.items():
        field = arguments.model_fields.get(name)
        if value in (None, "") and field and not field.is_required():
            continue
        present[name] = _read_json(value) if field and field.default_factory in (dict, list) else value
    return present


def _read_json(value: Any) -> Any:
    """Return the object or the list that a text holds as JSON; else the value as it is."""
    try:
        parsed = parse_json(value) if isinstance(value, str) else value
    except ValueError:
        return value
    return parsed if isinstance(parsed, dict | list) else value


def _make_schema(model: type[BaseModel], mode: Any = "validation") -> JsonObject:
    """Return a model's JSON Schema without references, and without titles, which only repeat the names.

    Not every client resolves references.
    """
    schema = model.model_json_schema(mode=mode)
    definitions = schema.pop("$defs", {})

    def plain(node: Any) -> Any:
        if isinstance(node, list):
            return [plain(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            node = {**definitions[node["$ref"].rpartition("/")[2]], **{k: v for k, v in node.items() if k != "$ref"}}
        properties = {name: plain(value) for name, value in node.get("properties", {}).items()}
        rest = {k: plain(v) for k, v in node.items() if k not in ("title", "properties", "description")}
        # A model's docstring is for readers of the code.
        description = {"description": node["description"]} if "description" in node and "properties" not in node else {}
        return {**description, **rest, **({"properties": properties} if properties else {})}

    return dict(plain(schema))
