"""The command line. Results go to standard output (with `--json` exactly one document), all else to standard error.

Exit codes: 0 success, 1 failure, 2 usage, 3 if `check` has findings or `eval` misses a bar.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from chapterverse import __version__
from chapterverse.cli.commands import CommandGroup, add_to
from chapterverse.errors import ChapterVerseError

app = typer.Typer(
    name="chapterverse",
    cls=CommandGroup,
    help="A chat for your documentation site that answers with chapter-and-section citations.",
    epilog="Start with `chapterverse index site/`, then `chapterverse ask QUESTION`. Every setting has an environment "
    "variable: --store is CHAPTERVERSE_STORE. Keys come from there only.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Plain text, because frames hinder programs that read it.
    rich_markup_mode=None,
)
add_to(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: a user's mistake gets one sentence on standard error and never a traceback."""
    try:
        app(arguments)
    except ChapterVerseError as error:
        sys.exit(_report_failure(str(error)))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        sys.exit(_report_failure(f"{place}{error.strerror or error}."))


def _report_failure(sentence: str) -> int:
    typer.echo(f"Error: {sentence}", err=True)
    return 1


def _print_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None: ...
