"""The command line. Results go to standard output (with `--json` exactly one document), all else to standard error.

Exit codes: 0 success, 1 failure, 2 usage, 3 if `check` has findings or `eval` misses a bar.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from chapterverse import __version__
from chapterverse.cli import messages
from chapterverse.cli.commands import CommandGroup, add_to
from chapterverse.errors import ChapterVerseError

app = typer.Typer(
    name="chapterverse",
    cls=CommandGroup,
    help="A chat for your documentation site that answers with chapter-and-section citations.",
    epilog="Start with `chapterverse index site/`, then `chapterverse ask QUESTION`. Every setting has an environment "
    "variable: --store is CHAPTERVERSE_STORE. Keys come from there only.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    # Plain text, because frames hinder programs that read it.
    rich_markup_mode=None,
)
add_to(app)


# Public by its subclass alone: whatever is wrong with the arguments.
_UsageError: Any = typer.BadParameter.__bases__[0]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line: a user's mistake gets one sentence on standard error and never a traceback."""
    given = sys.argv[1:] if arguments is None else [*arguments]
    messages.choose(messages.Level.NORMAL)
    try:
        sys.exit(app(given, standalone_mode=False) or 0)
    except typer.Abort:
        sys.exit(_report_failure("Aborted.", "aborted", given))
    except ChapterVerseError as error:
        name = re.sub(r"(?<!^)([A-Z])", r"_\1", type(error).__name__.removesuffix("Error")).lower()
        sys.exit(_report_failure(str(error), name, given))
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        sys.exit(_report_failure(f"{place}{error.strerror or error}.", "os", given))
    except _UsageError as error:
        # It prints how the command is used.
        error.show()
        _print_error(error.format_message(), "usage", given)
        sys.exit(error.exit_code)


def _report_failure(sentence: str, code: str, arguments: Sequence[str]) -> int:
    messages.error(sentence)
    _print_error(sentence, code, arguments)
    return 1


def _print_error(sentence: str, code: str, arguments: Sequence[str]) -> None:
    """Print an error as the document that a program waits for."""
    if "--json" in arguments:
        document = json.dumps({"error": {"code": code, "message": sentence}}, ensure_ascii=False, indent=2)
        # The error may be that nothing can be written there.
        with contextlib.suppress(OSError):
            typer.echo(document)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
    quiet: messages.Quiet = False,
    verbose: messages.Verbose = False,
) -> None: ...
