"""Parameters shared by the commands, settings made from them, and JSON output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from chapterverse.cli.messages import warn
from chapterverse.settings import Settings, explain_unknown_variables

Store = Annotated[
    str | None,
    typer.Option("--store", help="Where the index lives: edge:PATH, qdrant:URL, s3://BUCKET/PREFIX.", metavar="URI"),
]
Site = Annotated[str | None, typer.Option("--site", help="Name of the site's index; needed if there are several.")]
Version = Annotated[str | None, typer.Option("--docs-version", help="Docs version; needed if there are several.")]
Embedder = Annotated[
    str | None,
    typer.Option(
        "--embedder",
        help="none, cohere[:MODEL], bedrock:MODEL, openai:MODEL or fastembed:MODEL-or-PATH.",
        metavar="NAME",
    ),
]
Ledger = Annotated[
    str | None,
    typer.Option("--ledger", help="Where file states are kept: sqlite:PATH or postgresql://HOST/NAME.", metavar="URI"),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", help="Pages to leave out, as in .gitignore; may be repeated.", metavar="GLOB"),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        help="Listings, archives and search pages to keep, as in .gitignore; may be repeated.",
        metavar="GLOB",
    ),
]
Questions = Annotated[Path, typer.Argument(help="File of questions, one JSON object a line.", metavar="QUESTIONS")]
QuestionsBaseUrl = Annotated[
    str | None, typer.Option("--base-url", help="Address of the site in QUESTIONS, if the index has another.")
]
SiteDir = Annotated[Path, typer.Argument(help="A built site.", metavar="SITE_DIR")]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Address of the site, if its pages don't state it.")]
History = Annotated[
    Path | None,
    typer.Option(
        "--history", help="The conversation so far: a JSON list of {role, content}, oldest first.", metavar="FILE"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]


def settings_from(store: str | None, site: str | None, docs_version: str | None, **overrides: Any) -> Settings:
    """Return the environment's settings, overridden by a command's options, with the secrets that they name.

    Name each variable of ours that nothing reads.
    """
    for sentence in explain_unknown_variables():
        warn(sentence)
    return with_secrets(Settings.from_environment(store=store, site=site, docs_version=docs_version, **overrides))


def with_secrets(settings: Settings) -> Settings:
    """Return settings with the secrets that they name.

    Raises:
        ConfigurationError: the secrets can't be read.
    """
    if not settings.secrets_arn:
        return settings
    from chapterverse.net.aws.secrets import resolve_secrets

    return resolve_secrets(settings, warn)


def print_json(document: object) -> None:
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
