"""The table of commands. The code of a command is imported when it runs, and not for `--help` or a completion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from chapterverse.cli import messages

#: By the part of a site's life: each command, its function from `chapterverse.cli`, and the first line of its help.
COMMANDS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Build": {
        "index": ("index:index", "Update the index to hold exactly this site."),
        "inject": ("site:inject", "Put the chat into every page of a built site, and write files for agents."),
        "widget": ("site:widget", "Write the chat's files into a folder, and print the script tag for the pages."),
        "check": ("site:check", "Report mistakes in a built site and its index."),
    },
    "Ask": {
        "search": ("ask:search", "List the chunks that a question finds."),
        "ask": ("ask:ask", "Answer a question, or explain a text."),
        "serve": ("ask:serve", "Run the API, and optionally serve the site."),
        "mcp": ("ask:mcp", "Answer a program over the Model Context Protocol."),
    },
    "Measure": {
        "eval": ("evaluate:eval_", "Measure how well questions are answered."),
        "calibrate": ("calibrate:calibrate", "Fit refusals to readers' questions."),
        "trace": ("trace:trace", "Show how a question is answered."),
        "feedback": ("feedback:feedback", "Print readers' ratings of answers, newest first."),
        "report": (".ext.report.command:report", "Show what readers ask, and what the docs lack."),
    },
    "Operate": {
        "status": ("index:status", "Show what is indexed."),
        "export": ("transfer:export", "Write an index to a file."),
        "import": ("transfer:import_", "Make an index hold exactly the content of a file."),
        "repair": ("transfer:repair", "Remove what no live index uses, and rebuild a lost ledger from the index."),
        "remember": ("remember:remember", "Write a fact for the chat into a file beside your docs, or remove one."),
        "forget": ("forget:forget", "Forget a conversation, or all old ones."),
        "schema": ("schema:schema", "Print the fields of a document type, or of all."),
    },
    # Called by plugins and by workflows.
    "": {
        "publish": ("plugin:publish", "Put the chat into a built site and index it."),
        "preview": ("plugin:preview", "Run the API beside a generator's own preview, for its plugin."),
        "unpublish": ("transfer:unpublish", "Remove a site's index, or that of one docs version, from the store."),
    },
}


class CommandStub(TyperCommand):
    """A command that is not imported yet, with its line of help."""

    def load(self) -> TyperCommand:
        """Import the command."""
        places = {name: place for rows in COMMANDS.values() for name, (place, _) in rows.items()}
        module, _, name = places[self.name or ""].partition(":")
        function: Callable[..., None] = getattr(import_module(f".{module}", "chapterverse.cli"), name)
        command, options = _command(function, self.name), _command(_options)
        command.params += options.params
        return command

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        return self.load().make_context(*arguments, **extra)


class CommandGroup(TyperGroup):
    """The commands, listed by group."""

    def format_commands(self, _: object, formatter: Any) -> None:
        width = max(len(name) for rows in COMMANDS.values() for name in rows)
        for group, rows in COMMANDS.items():
            if group:
                with formatter.section(group):
                    formatter.write_dl([(name.ljust(width), line) for name, (_, line) in rows.items()])


def add_to(app: typer.Typer) -> None:
    """Give an application the commands of the table."""
    for group, rows in COMMANDS.items():
        for name, (_, line) in rows.items():
            app.command(name, cls=CommandStub, help=line, hidden=not group)(_nothing)


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
