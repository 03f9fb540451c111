"""The rooms, and what each offers to the core.

A room is a manifest of strings, `module:object`. Nothing of a room is imported before it is used, so a room that is off
costs nothing. Another distribution adds its own manifest by an entry point of the group `chapterverse.extensions`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from chapterverse.errors import ConfigurationError

if TYPE_CHECKING:
    from chapterverse.settings import Settings

ENTRY_POINTS = "chapterverse.extensions"


@dataclass(frozen=True, slots=True)
class Command:
    """A command, by its place and the first line of its help.

    Attributes:
        group: the part of a site's life under which `--help` lists it; empty if it doesn't.
    """

    group: str
    place: str
    help: str


@dataclass(frozen=True, slots=True)
class Extension:
    """What a room offers.

    Attributes:
        offers: by setting, and by the form of a value (`cohere[:MODEL]`), a function of the settings and of what
            follows the colon, which opens what the value names. A form without a function names nothing to open.
        commands: by name.
        routes: the place of a router by the settings that switch it on, separated by spaces; "" is always on.
        extra: the extra of this distribution that installs what the room imports.
    """

    name: str
    offers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    routes: Mapping[str, str] = field(default_factory=dict)
    extra: str = ""


#: The core offers what needs no service, in the same way.
CORE = Extension(
    "core",
    offers={
        "store": {"edge:PATH": "chapterverse.store.edge:EdgeStore.from_settings"},
        "ledger": {"sqlite:PATH": "chapterverse.ledger.table:Ledger.from_settings"},
        "embedder": {"none": ""},
        "reranker": {"none": "", "local": ""},
        "generator": {"extractive": "chapterverse_api.generation.extractive:Extractive.from_settings"},
        "checker": {"words": ""},
        "limiter": {
            "memory": "chapterverse_api.limits.memory:MemoryLimiter.from_settings",
            "sqlite:PATH": "chapterverse_api.limits.sqlite:SqliteLimiter.from_settings",
        },
        "records": {"sqlite:PATH": "chapterverse_api.records.table:RecordsTable.from_settings"},
    },
)

EXTENSIONS = (
    CORE,
    Extension("qdrant", offers={"store": {"qdrant:URL": "chapterverse.ext.qdrant.store:QdrantStore.from_settings"}}),
    Extension("s3", offers={"store": {"s3://BUCKET/PREFIX": "chapterverse.ext.s3.store:S3Store.from_settings"}}),
    Extension(
        "postgres",
        offers={
            "ledger": {"postgres[ql]://USER:PASSWORD@HOST/NAME": "chapterverse.ext.postgres.ledger:open_ledger"},
            "records": {"postgres[ql]://USER:PASSWORD@HOST/NAME": "chapterverse_api.ext.postgres.records:open_records"},
        },
        extra="postgres",
    ),
    Extension("aws", offers={"secrets_arn": {"ARN": "chapterverse.ext.aws.secrets:resolve_secrets"}}),
    Extension(
        "dynamodb",
        offers={
            "records": {"dynamodb:TABLE": "chapterverse_api.ext.dynamodb.records:DynamoRecords.from_settings"},
            "limiter": {"dynamodb:TABLE": "chapterverse_api.ext.dynamodb.limiter:DynamoLimiter.from_settings"},
        },
    ),
    Extension(
        "cohere",
        offers={
            "embedder": {"cohere[:MODEL]": "chapterverse.ext.cohere.embedder:CohereEmbedder.from_settings"},
            "reranker": {"cohere[:MODEL]": "chapterverse_api.ext.cohere.reranker:CohereReranker.from_settings"},
            "generator": {"cohere[:MODEL]": "chapterverse_api.ext.cohere.generator:CohereGenerator.from_settings"},
        },
    ),
    Extension(
        "openai",
        offers={
            "embedder": {"openai:MODEL": "chapterverse.ext.openai.embedder:OpenAIEmbedder.from_settings"},
            "generator": {"openai:MODEL": "chapterverse_api.ext.openai.generator:OpenAIGenerator.from_settings"},
            "checker": {"openai:MODEL": "chapterverse_api.ext.openai.checker:OpenAIChecker.from_settings"},
        },
    ),
    Extension(
        "bedrock",
        offers={
            "embedder": {"bedrock:MODEL": "chapterverse.ext.bedrock.embedder:BedrockEmbedder.from_settings"},
            "reranker": {"bedrock:MODEL": "chapterverse_api.ext.bedrock.reranker:BedrockReranker.from_settings"},
            "generator": {"bedrock:MODEL": "chapterverse_api.ext.bedrock.generator:BedrockGenerator.from_settings"},
            "checker": {
                "bedrock:guardrail/ID[:VERSION]": "chapterverse_api.ext.bedrock.checker:GuardrailChecker.from_settings"
            },
        },
        extra="aws",
    ),
    Extension(
        "fastembed",
        offers={
            "embedder": {"fastembed:MODEL-or-PATH": "chapterverse.ext.fastembed.embedder:FastEmbedder.from_settings"}
        },
        extra="local",
    ),
)


def open_offer(setting: str, settings: Settings) -> Any:
    """Open what a setting names; None if its value names nothing to open.

    Raises:
        ConfigurationError: no room offers such a value, or the one that does can't use it.
    """
    value: str = getattr(settings, setting)
    kind, colon, rest = value.partition(":")
    for extension in _extensions_for(setting, kind):
        form = _find_form(extension, setting, kind) or ""
        name, needs_rest, _ = form.partition(":")
        if bool(rest) == bool(needs_rest) or name.endswith("["):
            place = extension.offers[setting][form]
            return load(place, extension)(settings, rest) if place else None
    is_secret = next(field.metadata.get("secret") for field in fields(settings) if field.name == setting)
    shown = f"{kind}{colon}" if is_secret and colon else "" if is_secret else value
    raise ConfigurationError(f"There is no {setting} named {shown!r}: use {_list_forms(setting)}.")


def load_offer(setting: str) -> Any:
    """Return what the one room offers for a setting whose values have no kinds."""
    return next(
        load(place, extension)
        for extension in (*EXTENSIONS, *foreign())
        for place in extension.offers.get(setting, {}).values()
    )


def load(place: str, extension: Extension | None = None) -> Any:
    """Return the object at `module:object`.

    Raises:
        ConfigurationError: what it imports is not installed.
    """
    module, _, path = place.partition(":")
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError) as error:
        if extension is None or extension in EXTENSIONS:
            raise
        raise ConfigurationError(f"The extension {extension.name} can't be loaded ({error}).") from error
    return found


@cache
def foreign() -> tuple[Extension, ...]:
    """Return the manifests of other distributions, searched once. One that can't be used is named and left out."""
    found = dict[str, Extension]()
    for entry in entry_points(group=ENTRY_POINTS):
        try:
            extension = entry.load()
            if not isinstance(extension, Extension):
                raise TypeError(f"{entry.value} is no Extension")
            if extension.name in {*found, *(own.name for own in EXTENSIONS)}:
                raise ValueError(f"another is named {extension.name}")
        # Whatever a stranger's module raises at its import, everything else works on.
        except Exception as error:
            print(f"The extension {entry.name} is left out: {error}.", file=sys.stderr)  # noqa: T201
        else:
            found[extension.name] = extension
    return tuple(found.values())


def _extensions_for(setting: str, kind: str) -> Iterator[Extension]:
    """Yield those that offer a value of this kind: others than ours are searched only if none of ours does."""
    for extension in EXTENSIONS:
        if _find_form(extension, setting, kind):
            yield extension
            return
    yield from (extension for extension in foreign() if _find_form(extension, setting, kind))


def _find_form(extension: Extension, setting: str, kind: str) -> str | None:
    return next((form for form in extension.offers.get(setting, ()) if kind in _kinds(form)), None)


def _kinds(form: str) -> set[str]:
    """Return what a value of this form may begin with: `postgres[ql]://HOST` is "postgres" or "postgresql"."""
    name, _, more = form.partition(":")[0].partition("[")
    return {name, name + more.rstrip("]")}


def _list_forms(setting: str) -> str:
    *forms, last = (form for extension in (*EXTENSIONS, *foreign()) for form in extension.offers.get(setting, ()))
    return f"{', '.join(forms)} or {last}" if forms else last
