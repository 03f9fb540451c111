"""The commands of all rooms. The code of a command is imported when it runs, and not for `--help` or a completion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from chapterverse.cli import messages
from chapterverse.extensions import EXTENSIONS, GROUPS, Command, find_command, list_commands, load


class CommandStub(TyperCommand):
    """A command that is not imported yet, with its line of help."""

    def load(self) -> TyperCommand:
        """Import the command."""
        found = find_command(self.name or "")
        assert found
        function: Callable[..., None] = load(found[0].place, found[1])
        command, options = _command(function, self.name), _command(_options)
        command.params += options.params
        return command

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        return self.load().make_context(*arguments, **extra)


class CommandGroup(TyperGroup):
    """The commands, listed by group. Other distributions are searched only for a name that none of ours has."""

    def list_commands(self, _: object) -> list[str]:
        return [*list_commands()]

    def get_command(self, context: Any, name: str) -> Any:
        if (ours := super().get_command(context, name)) or not (found := find_command(name)):
            return ours
        return _stub(name, found[0])

    def format_commands(self, _: object, formatter: Any) -> None:
        rows = list_commands()
        for group in GROUPS:
            with formatter.section(group):
                formatter.write_dl(
                    [(name.ljust(max(map(len, rows))), row.help) for name, row in rows.items() if row.group == group]
                )


def add_to(app: typer.Typer) -> None:
    """Give an application our commands."""
    for extension in EXTENSIONS:
        for name, command in extension.commands.items():
            app.command(name, cls=CommandStub, help=command.help, hidden=not command.group)(_nothing)


def _stub(name: str, command: Command) -> Any:
    one = typer.Typer(add_completion=False, rich_markup_mode=None)
    one.command(name, cls=CommandStub, help=command.help)(_nothing)
    return typer.main.get_command(one)


def _command(function: Callable[..., None], name: str | None = None) -> TyperCommand:
    one = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    one.command(name)(function)
    command = typer.main.get_command(one)
    assert isinstance(command, TyperCommand)
    return command


def _options(quiet: messages.Quiet = False, verbose: messages.Verbose = False) -> None:
    """Declare what every command takes."""


def _nothing() -> None:
    """Stand where a stub's own function would be."""
