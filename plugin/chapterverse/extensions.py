"""The rooms, and what each offers to the core.

A room is a manifest of strings, `module:object`. Nothing of a room is imported before it is used, so a room that is off
costs nothing. Another distribution adds its own manifest by an entry point of the group `chapterverse.extensions`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chapterverse.errors import ChapterVerseError, ConfigurationError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from chapterverse.settings import Settings

ENTRY_POINTS = "chapterverse.extensions"
#: A line `name = module:object` for each entry point that was there when a package was made.
PACKED = Path(__file__).with_name("extensions.txt")


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
        parts: by its name, what makes a part of the core's walk that one room has. It is no hook for others: ours come
            first.
        commands: by name.
        routes: the places of routers by the setting that switches them on; "" is always on.
    """

    name: str
    offers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    parts: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, Command] = field(default_factory=dict)
    routes: Mapping[str, str] = field(default_factory=dict)


#: The core offers what needs no service, in the same way.
CORE = Extension(
    "core",
    offers={
        "store": {"edge:PATH": "chapterverse.store.edge:EdgeStore.from_settings"},
        "ledger": {"sqlite:PATH": "chapterverse.ledger:Ledger.from_settings"},
        "embedder": {"none": ""},
        "enricher": {"none": ""},
        "reranker": {"none": "", "local": ""},
        "generator": {"extractive": "chapterverse_api.draft.extractive:Extractive.from_settings"},
        "checker": {"words": ""},
        "limiter": {
            "memory": "chapterverse_api.limits.memory:MemoryLimiter.from_settings",
            "sqlite:PATH": "chapterverse_api.limits.sqlite:SqliteLimiter.from_settings",
        },
        "records": {"sqlite:PATH": "chapterverse_api.records.table:RecordsTable.from_settings"},
    },
    commands={
        "index": Command("Build", "chapterverse.cli.index:index", "Update the index to hold exactly this site."),
        "inject": Command(
            "Build",
            "chapterverse.cli.site:inject",
            "Put the chat into every page of a built site, and write files for agents.",
        ),
        "widget": Command(
            "Build",
            "chapterverse.cli.site:widget",
            "Write the chat's files into a folder, and print the script tag for the pages.",
        ),
        "check": Command("Build", "chapterverse.cli.site:check", "Report mistakes in a built site and its index."),
        "search": Command("Ask", "chapterverse_api.commands.ask:search", "List the chunks that a question finds."),
        "ask": Command("Ask", "chapterverse_api.commands.ask:ask", "Answer a question, or explain a text."),
        "serve": Command("Ask", "chapterverse_api.commands.ask:serve", "Run the API, and optionally serve the site."),
        "feedback": Command(
            "Measure",
            "chapterverse_api.commands.conversations:feedback",
            "Print readers' ratings of answers, newest first.",
        ),
        "status": Command("Operate", "chapterverse.cli.index:status", "Show what is indexed."),
        "remember": Command(
            "Operate",
            "chapterverse.cli.knowledge:remember",
            "Write a fact for the chat into a file beside your docs, or remove one.",
        ),
        "forget": Command(
            "Operate", "chapterverse_api.commands.conversations:forget", "Forget a conversation, or all old ones."
        ),
        "schema": Command(
            "Operate", "chapterverse.cli.knowledge:schema", "Print the fields of a document type, or of all."
        ),
    },
)

EXTENSIONS = (
    CORE,
    Extension(
        "sources",
        parts={
            "also_entries": "chapterverse.ext.sources.entries:parse_entries",
            "also": "chapterverse.ext.sources.external_sources:collect_external",
            "single_source": "chapterverse.ext.sources.single_source:add_source",
            "markdown_folder": "chapterverse.ext.sources.markdown_folder:read_markdown_folder",
        },
    ),
    Extension(
        "transfer",
        commands={
            "export": Command("Operate", "chapterverse.ext.transfer.command:export", "Write an index to a file."),
            "import": Command(
                "Operate",
                "chapterverse.ext.transfer.command:import_",
                "Make an index hold exactly the content of a file.",
            ),
            "repair": Command(
                "Operate",
                "chapterverse.ext.transfer.command:repair",
                "Remove what no live index uses, and rebuild a lost ledger from the index.",
            ),
            "unpublish": Command(
                "",
                "chapterverse.ext.transfer.command:unpublish",
                "Remove a site's index, or that of one docs version, from the store.",
            ),
        },
    ),
    Extension(
        "npm",
        commands={
            "publish": Command(
                "", "chapterverse.ext.npm.command:publish", "Put the chat into a built site and index it."
            ),
            "preview": Command(
                "",
                "chapterverse.ext.npm.command:preview",
                "Run the API beside a generator's own preview, for its plugin.",
            ),
        },
    ),
    Extension("leases"),
    Extension("net"),
    Extension("embedders"),
    Extension("qdrant", offers={"store": {"qdrant[:URL]": "chapterverse.ext.qdrant.store:QdrantStore.from_settings"}}),
    Extension("s3", offers={"store": {"s3://BUCKET/PREFIX": "chapterverse.ext.s3.store:S3Store.from_settings"}}),
    Extension(
        "postgres",
        offers={
            "ledger": {"postgres[ql]://USER:PASSWORD@HOST/NAME": "chapterverse.ext.postgres.ledger:open_ledger"},
            "records": {"postgres[ql]://USER:PASSWORD@HOST/NAME": "chapterverse_api.ext.postgres.records:open_records"},
        },
    ),
    Extension("aws", parts={"secrets_arn": "chapterverse.ext.aws.secrets:resolve_secrets"}),
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
        parts={"cold_models": "chapterverse_api.ext.openai.model_loader:load_models"},
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
    ),
    Extension(
        "fastembed",
        offers={
            "embedder": {"fastembed:MODEL-or-PATH": "chapterverse.ext.fastembed.embedder:FastEmbedder.from_settings"}
        },
    ),
    Extension(
        "enrichment",
        offers={
            "enricher": dict.fromkeys(
                ("cohere:MODEL", "openai:MODEL", "bedrock:MODEL"),
                "chapterverse.ext.enrichment.setting:EnricherSetting.from_settings",
            )
        },
    ),
    Extension("work", parts={"proof_of_work": "chapterverse_api.ext.work.proof_of_work:ProofOfWork"}),
    Extension(
        "evaluation",
        parts={"questions": "chapterverse_api.ext.evaluation.questions:read_questions"},
        commands={
            "eval": Command(
                "Measure",
                "chapterverse_api.ext.evaluation.eval_command:eval_",
                "Measure how well questions are answered.",
            ),
            "calibrate": Command(
                "Measure",
                "chapterverse_api.ext.evaluation.calibrate_command:calibrate",
                "Fit refusals to readers' questions.",
            ),
            "trace": Command(
                "Measure", "chapterverse_api.ext.evaluation.trace_command:trace", "Show how a question is answered."
            ),
        },
    ),
    Extension(
        "report",
        parts={"report": "chapterverse.ext.report.command:after_build"},
        commands={
            "report": Command(
                "Measure", "chapterverse.ext.report.command:report", "Show what readers ask, and what the docs lack."
            )
        },
    ),
    Extension(
        "agents",
        parts={
            "plans": "chapterverse_api.ext.agents.plans.requests:plan_for_owner",
            "plan_walk": "chapterverse_api.ext.agents.plans.walk:walk_plan",
            "schemas": "chapterverse_api.ext.agents.structured_output.data:SchemaAnswer",
            "tools": "chapterverse_api.ext.agents.tools.site_tools:open_tools",
        },
        commands={
            "mcp": Command(
                "Ask",
                "chapterverse_api.ext.agents.command:mcp",
                "Answer a program over the Model Context Protocol.",
            )
        },
        routes={
            "": "chapterverse_api.ext.agents.routes.completions:router chapterverse_api.ext.agents.routes.plans:router",
            "mcp": "chapterverse_api.ext.agents.routes.mcp:router",
        },
    ),
)

#: The parts of a site's life by which `--help` lists the commands.
GROUPS = ("Build", "Ask", "Measure", "Operate")


def open_offer(setting: str, settings: Settings, variable: str = "") -> Any:
    """Open what a setting names; None if its value names nothing to open.

    Args:
        variable: that states the value, if it isn't the setting's own.

    Raises:
        ConfigurationError: no room offers such a value, or the one that does can't use it.
    """
    value: str = getattr(settings, setting)
    kind, colon, rest = value.partition(":")
    for extension in _every_extension():
        offers = extension.offers.get(setting, {})
        forms = [form for form in offers if kind in _kinds(form)]
        for form in forms:
            if _is_complete(form, colon, rest):
                return _open(offers[form], extension, settings, rest)
        if forms and extension in EXTENSIONS:
            break
    declared = next(field.metadata for field in fields(settings) if field.name == setting)
    # An address may hold a password.
    shown = f"{kind}:…" if "://" in value or "@" in value else value
    named = "nothing that is known" if declared.get("secret") else repr(shown)
    *most, last = (form for extension in _every_extension() for form in extension.offers.get(setting, ()))
    use = f"{', '.join(most)} or {last}" if most else last
    raise ConfigurationError(f"{variable or declared['env']} is {named}: use {use}.")


def load_part(name: str) -> Any:
    """Return what makes a part of the core's walk that a room has."""
    return next(load(extension.parts[name], extension) for extension in _every_extension() if name in extension.parts)


def load_part_of_offer(name: str, setting: str, settings: Settings) -> Any:
    """Return the part of the room that offers what a setting names; None if that room has no such part."""
    kind = getattr(settings, setting).partition(":")[0]
    rooms = (room for room in EXTENSIONS if any(kind in _kinds(form) for form in room.offers.get(setting, ())))
    return next((load(room.parts[name], room) for room in rooms if name in room.parts), None)


def load(place: str, extension: Extension | None = None) -> Any:
    """Return the object at `module:object`.

    Raises:
        ConfigurationError: what it imports is not installed, or it is not ours and fails at its import.
    """
    module, _, path = place.partition(":")
    try:
        found: Any = import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
    # Whatever a stranger's module raises.
    except (Exception, SystemExit) as error:
        if extension and extension not in EXTENSIONS:
            raise ConfigurationError(f"The extension {extension.name} can't be loaded ({_line(error)}).") from error
        missing = getattr(error, "name", None) or "chapterverse"
        is_ours = missing.startswith("chapterverse") and "." in missing
        if not isinstance(error, ImportError) or not module.startswith("chapterverse_api") or is_ours:
            raise
        raise ConfigurationError(
            f'The service can\'t be loaded ({missing} is missing): pip install "chapterverse[api]".'
        ) from error
    return found


def list_commands() -> dict[str, Command]:
    """Return every command by name. A foreign one with the name of another is left out, and that is said."""
    found: dict[str, Command] = {}
    for extension in _every_extension():
        for name, command in extension.commands.items():
            if name in found:
                _complain(f"The command {name} of the extension {extension.name} is left out: another has that name.")
            found.setdefault(name, command)
    return found


def load_routers(settings: Settings, extensions: Iterable[Extension]) -> Iterator[Any]:
    """Yield the routers of these that are on. One of a stranger that can't be loaded is named and left out."""
    for extension in extensions:
        places = (p for setting, p in extension.routes.items() if not setting or getattr(settings, setting))
        for place in " ".join(places).split():
            try:
                router = load(place, extension)
                if not hasattr(router, "include_router"):
                    raise ConfigurationError(f"The extension {extension.name} has no router at {place}.")
                yield router
            except ConfigurationError as error:
                if extension in EXTENSIONS:
                    raise
                _complain(str(error))


@cache
def foreign() -> tuple[Extension, ...]:
    """Return the manifests of other distributions, searched once. One that can't be used is named and left out."""
    found = {own.name: own for own in EXTENSIONS}
    for entry in sorted(_find_entry_points(), key=lambda entry: entry.name):
        try:
            extension = entry.load()
            if not isinstance(extension, Extension):
                raise TypeError(f"{entry.value} is no Extension")
            if extension.name in found:
                raise ValueError(f"another is named {extension.name}")
            _check(extension)
            found[extension.name] = extension
        # Whatever a stranger's module raises at its import, everything else works on.
        except (Exception, SystemExit) as error:
            _complain(f"The extension {entry.name} is left out: {_line(error)}.")
    return tuple(found.values())[len(EXTENSIONS) :]


def _find_entry_points() -> Iterable[EntryPoint]:
    """Return the entry points of other distributions. A package for Lambda lists them, as a search takes time."""
    # Lazy: a command of ours does without it.
    from importlib.metadata import EntryPoint, entry_points

    if not PACKED.exists():
        return entry_points(group=ENTRY_POINTS)
    lines = (line.partition(" = ") for line in PACKED.read_text(encoding="utf-8").splitlines())
    return [EntryPoint(name, value, ENTRY_POINTS) for name, _, value in lines]


def _complain(sentence: str) -> None:
    print(sentence, file=sys.stderr)  # noqa: T201


def _every_extension() -> Iterator[Extension]:
    """Yield the extensions, ours first. Others are searched only where none of ours ends that."""
    yield from EXTENSIONS
    yield from foreign()


def _open(place: str, extension: Extension, settings: Settings, rest: str) -> Any:
    try:
        return load(place, extension)(settings, rest) if place else None
    except ChapterVerseError:
        raise
    except Exception as error:
        if extension in EXTENSIONS:
            raise
        # What it says may hold a password.
        message = f"The extension {extension.name} can't open what a setting names ({type(error).__name__})."
        raise ConfigurationError(message) from error


def _check(extension: Extension) -> None:
    """Raise `ValueError` if a field of a manifest can't be used."""
    from chapterverse.settings import SETTINGS

    try:
        forms = [(setting, *form) for setting, offers in extension.offers.items() for form in offers.items()]
        commands = [(name, row.group, row.place, row.help) for name, row in extension.commands.items()]
        texts = [extension.name, *chain(*forms, *commands, *extension.routes.items())]
    except (AttributeError, TypeError, ValueError):
        raise ValueError("offers and routes are tables of texts, and commands one of `Command`") from None
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a name, a form or a place is no text")
    if unknown := {*extension.offers, *filter(None, extension.routes)} - {*SETTINGS}:
        raise ValueError(f"there is no setting {min(unknown)}")
    if groups := {group for _, group, _, _ in commands} - {*GROUPS, ""}:
        raise ValueError(f"there is no group {min(groups)} of commands")
    kinds = [(setting, kind) for setting, form, _ in forms for kind in _kinds(form)]
    if len({*kinds}) < len(kinds):
        raise ValueError("two forms of a setting begin alike")


def _line(error: BaseException) -> str:
    """Return an error's message as part of a sentence."""
    first = next(iter(str(error).strip().splitlines()), "")
    return first.rstrip(".") or type(error).__name__


def _kinds(form: str) -> set[str]:
    """Return what a value of this form may begin with: `postgres[ql]://HOST` is "postgres" or "postgresql"."""
    name, _, more = form.partition(":")[0].partition("[")
    return {name, name + more.rstrip("]")}


def _is_complete(form: str, colon: str, rest: str) -> bool:
    """Return whether a value has what its form asks for."""
    name, needs_rest, _ = form.partition(":")
    return name.endswith("[") or (bool(colon), bool(rest)) == (bool(needs_rest), bool(needs_rest))
