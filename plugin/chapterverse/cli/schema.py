"""Command `schema`: prints the JSON Schemas of the types of documents."""

from __future__ import annotations

from typing import Annotated

import typer

from chapterverse.cli import parameters
from chapterverse.cli.parameters import print_json
from chapterverse.model import DOCUMENT_TYPES


def schema(
    kind: Annotated[
        str | None, typer.Argument(help="page, persona, faq, memory, turn or summary.", metavar="TYPE")
    ] = None,
    as_json: parameters.Json = False,
) -> None:
    """Print the fields of a document type, or of all.

    Front matter, `import` and the API use the same fields.
    """
    if kind is not None and kind not in DOCUMENT_TYPES:
        raise typer.BadParameter(f"TYPE must be one of {', '.join(DOCUMENT_TYPES)}.")
    from chapterverse.knowledge.metadata import get_all_schemas, get_schema

    schemas = {kind: get_schema(kind)} if kind else get_all_schemas()
    if as_json:
        print_json(schemas[kind] if kind else schemas)
        return
    for name, one in schemas.items():
        typer.echo(f"{name}: {', '.join(one['fields'])} (required: {', '.join(one['required_fields'])})")
