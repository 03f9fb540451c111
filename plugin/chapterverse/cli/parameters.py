"""Parameters shared by the commands, settings made from them, and JSON output."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer

from chapterverse.cli.messages import detail, warn
from chapterverse.extensions import find_settings, load_part
from chapterverse.indexing.options import Options, ProjectFile
from chapterverse.settings import Settings, explain_unknown_variables
from chapterverse.text.secrets_in_text import mask


def argument(text: str, metavar: str, default: Any = None, **more: Any) -> Any:
    """Declare an argument of a command by its line of help; `...` is the default of one that must be given."""
    return typer.Argument(default, help=text, metavar=metavar, **more)


def option(text: str, metavar: str | None = None, default: Any = None, name: str = "", **limits: Any) -> Any:
    """Declare an option of a command by its line of help. Its name is that of the parameter unless it has another."""
    return typer.Option(default, *[name] if name else [], help=text, metavar=metavar, **limits)


def switch(name: str, text: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(False, name, help=text)


Store = Annotated[
    str | None, typer.Option(help="Where the index lives: edge:PATH, qdrant:URL, s3://BUCKET/PREFIX.", metavar="URI")
]
Site = Annotated[str | None, typer.Option(help="Name of the site's index; needed if there are several.")]
Version = Annotated[str | None, typer.Option(help="Docs version; needed if there are several.")]
Embedder = Annotated[
    str | None,
    typer.Option(help="none, cohere[:MODEL], bedrock:MODEL, openai:MODEL or fastembed:MODEL-or-PATH.", metavar="NAME"),
]
Ledger = Annotated[
    str | None, typer.Option(help="Where file states are kept: sqlite:PATH or postgresql://HOST/NAME.", metavar="URI")
]
Exclude = Annotated[
    list[str] | None, typer.Option(help="Pages to leave out, as in .gitignore; may be repeated.", metavar="GLOB")
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        help="Listings, archives and search pages to keep, as in .gitignore; may be repeated.", metavar="GLOB"
    ),
]
SiteDir = Annotated[Path, typer.Argument(help="A built site.", metavar="SITE_DIR")]
BaseUrl = Annotated[str | None, typer.Option(help="Address of the site, if its pages don't state it.")]
History = Annotated[
    Path | None,
    typer.Option(help="The conversation so far: a JSON list of {role, content}, oldest first.", metavar="FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


class IndexFlags(TypedDict):
    """The options of a command that opens an index: it takes them as `**flags: Unpack[IndexFlags]`."""

    store: Store
    site: Site
    docs_version: Version


class ServiceFlags(IndexFlags):
    """The options of a command that asks the service."""

    embedder: Embedder


def settings_from(**flags: Any) -> Settings:
    """Return the settings of a command's options, the environment and the project's file, with the secrets they name.

    Name each variable of ours that nothing reads.
    """
    for sentence in explain_unknown_variables():
        warn(sentence)
    return with_secrets(configure(**flags))


def configure(**flags: Any) -> Settings:
    """Return the settings of a command's options, the environment and the project's file."""
    file = ProjectFile.find(Path())
    settings = Settings.from_environment(below=file.settings, **flags)
    for name, setting in find_settings(dict(settings.foreign)).items():
        value, variable = settings[setting], setting.variable
        if value != setting.default and setting.kind != "secret":
            place = variable if os.environ.get(variable) else file.path.name
            shown = mask(repr(value))
            detail(f"{name} = {shown} is from {place if flags.get(name) is None else 'a flag'}.")
    return settings


def project_options() -> Options:
    """Return the options of a plugin that the project's file states."""
    return ProjectFile.find(Path()).options({})


def with_secrets(settings: Settings) -> Settings:
    """Return settings with the secrets that they name.

    Raises:
        ConfigurationError: the secrets can't be read.
    """
    if not settings.secrets_arn:
        return settings
    resolved: Settings = load_part("secrets_arn")(settings, warn)
    return resolved


def print_json(document: object) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
