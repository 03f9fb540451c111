"""The command line. Results go to standard output (with `--json` exactly one document), all else to standard error.

Exit codes: 0 success, 1 failure, 2 usage, 3 if `check` finds errors (or what its options name) or `eval` misses a bar.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Unpack, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from chapterverse.cli import messages
from chapterverse.errors import ChapterVerseError
from chapterverse.extensions import foreign, list_commands, load
from chapterverse.manifests import EXTENSIONS, GROUPS, Command, Extension
from chapterverse.version import __version__

# Plain text, because frames hinder programs that read it.
_STYLE: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}


class _CommandStub(TyperCommand):
    """A command that is imported when it runs, and not for the list of commands or a completion."""

    def __init__(self, name: str, manifest: Command, extension: Extension) -> None:
        super().__init__(name, help=manifest.help, hidden=not manifest.group)
        self._place, self._extension = manifest.place, extension

    def load(self) -> TyperCommand:
        """Import the command."""
        command = _make(_spread_flags(load(self._place, self._extension)), self.name)
        command.params += _make(_common).params
        return command

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        return self.load().make_context(*arguments, **extra)


class _CommandGroup(TyperGroup):
    """The commands, listed by group. Other distributions are searched only for a name that none of ours has."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": dict(_stubs(EXTENSIONS))})

    def list_commands(self, _: object) -> list[str]:
        return [*list_commands()]

    def get_command(self, context: Any, name: str) -> Any:
        # Of two with one name the first counts.
        return super().get_command(context, name) or dict(_stubs(reversed(foreign()))).get(name)

    def format_commands(self, _: object, formatter: Any) -> None:
        rows = list_commands()
        for group in GROUPS:
            with formatter.section(group):
                formatter.write_dl(
                    [(name.ljust(max(map(len, rows))), row.help) for name, row in rows.items() if row.group == group]
                )


app = typer.Typer(
    name="chapterverse",
    cls=_CommandGroup,
    help="A chat for your documentation site that answers with chapter-and-section citations.",
    epilog="Start with `chapterverse index site/`, then `chapterverse ask QUESTION`. Every setting has an environment "
    "variable: --store is CHAPTERVERSE_STORE. Keys come from there only.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    **_STYLE,
)

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


def _common(quiet: messages.Quiet = False, verbose: messages.Verbose = False) -> None:
    """Declare what every command takes."""


def _stubs(extensions: Iterable[Extension]) -> Iterator[tuple[str, _CommandStub]]:
    for extension in extensions:
        for name, manifest in extension.commands.items():
            yield name, _CommandStub(name, manifest, extension)


def _make(function: Callable[..., None], name: str | None = None) -> TyperCommand:
    one = typer.Typer(add_completion=False, **_STYLE)
    one.command(name)(function)
    command = typer.main.get_command(one)
    assert isinstance(command, TyperCommand)
    return command


def _spread_flags(function: Callable[..., None]) -> Callable[..., None]:
    """Declare each option of `**flags: Unpack[IndexFlags]` as Typer asks for it."""
    signature = inspect.signature(function, eval_str=True)
    parameters = [*signature.parameters.values()]
    if parameters and get_origin(parameters[-1].annotation) is Unpack:
        (flags,) = get_args(parameters.pop().annotation)
        for name, kind in get_type_hints(flags, include_extras=True).items():
            option = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
            parameters.append(option)
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return function
