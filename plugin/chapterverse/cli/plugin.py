"""Commands `publish` and `preview`: the deeds of a plugin, for generators that are not written in Python.

Their npm packages only call these. So every generator has the same options, and one place that checks them.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from chapterverse import __version__, entry_points
from chapterverse.cli.index import site_scope
from chapterverse.cli.options import Version, with_secrets
from chapterverse.cli.site import agent_files
from chapterverse.errors import ChapterVerseError, ConfigurationError, InputError
from chapterverse.indexing import plugin_api
from chapterverse.indexing.plugin_options import Options
from chapterverse.knowledge.folder import Documents
from chapterverse.readers import Reading, SlugRule, read_site, read_sources
from chapterverse.settings import Settings
from chapterverse.site.agent_files import AgentOptions
from chapterverse.site.delivery import deliver
from chapterverse.site.inject import inject
from chapterverse.widget import assets

_FOLDER = f"chapterverse/{__version__}"


class _Log:
    """Tells of an index on standard error, as `index` does."""

    def info(self, message: object) -> None:
        typer.echo(message, err=True)

    def warning(self, message: object) -> None:
        typer.echo(f"Warning: {message}", err=True)

    def debug(self, message: object, *, exc_info: bool) -> None:
        """Leave out what only the log of a generator written in Python has room for."""


def publish(
    site_dir: Annotated[Path, typer.Argument(help="A built site.", metavar="SITE_DIR")],
    config: Annotated[
        str,
        typer.Option(
            "--config", help="Options of the plugin, as YAML or JSON; - reads standard input.", metavar="FILE"
        ),
    ],
    base_url: Annotated[
        str | None, typer.Option("--base-url", help="Address of the site, where its pages don't state it.")
    ] = None,
    address_setting: Annotated[
        str, typer.Option("--address-setting", help="What the generator calls --base-url.", metavar="NAME")
    ] = "",
    docs_version: Version = None,
) -> None:
    """Put the chat into a built site and index it, as the plugin of its generator does.

    The options have the names of the MkDocs plugin.
    """
    options = Options.of(_mapping(config))
    if not options.enabled:
        return
    settings = with_secrets(options.settings(Path.cwd(), "", docs_version))
    # Without a name the index has that of the site's address, as with `index`.
    settings = settings.override(site=options.site or Settings.from_environment().site)
    address = base_url or settings.base_url or None
    _put_chat(site_dir, options, settings.override(base_url=address))
    unplaced = bool(address_setting) and not address
    for problem in plugin_api.problems(settings, None if unplaced else "stated", address_setting):
        if options.strict:
            raise ConfigurationError(problem)
        _Log().warning(problem)
    if not settings.may_publish:
        if settings.publish is not False:
            _Log().info(f"Nothing was indexed: {plugin_api.withheld(settings)}")
        return
    if unplaced:
        return
    try:
        reading = read_site(site_dir, address, options.include, options.exclude)
        scope, _ = site_scope(settings, reading)
        _index(reading, settings.override(site=scope.site), options, None)
    # The docs are built already, so a failure to index fails the build only with `strict`.
    except Exception as error:
        if options.strict:
            raise
        _Log().warning(f"The index was not updated: {plugin_api.explained(error)}")


def preview() -> None:
    """Run the API beside a generator's own preview, for its plugin, until standard input ends.

    The first line of standard input holds the options of the plugin as JSON. Standard output answers with a line that
    has the `address` of the API and of the `launcher`. Each further line holds what the preview shows now, and is
    indexed: its `base_url`, its `pages` (address below it by file of Markdown or MDX) and the rule of their anchors
    (`slugs`).
    """
    options = Options.of(_line(sys.stdin.readline()))
    settings = options.settings(Path.cwd(), "preview", None, preview=True)
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(entry_points.bind("127.0.0.1", 0))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chapterverse-")))
        origin = entry_points.address(listening)
        deliver(folder / _FOLDER, assets({"endpoint": origin, **options.widget_options(), "version": ""}))
        create_app = entry_points.load("app")
        typer.echo(json.dumps({"address": origin, "launcher": f"{origin}/{_FOLDER}/launcher.js"}))
        sys.stdout.flush()
        service: entry_points.Background | None = None
        for shown in _messages():
            if service is None:
                # Only now its pages have an address, from where the chat asks.
                origins = entry_points.preview_origins(shown.base_url)
                app = create_app(settings=settings.override(allowed_origins=origins), site_dir=folder)
                service = entry_points.Background(app, listening)
                stack.callback(service.stop)
                typer.echo(f"The chat of this preview answers at {origin}", err=True)
            _index_preview(shown, settings, options)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a generator's preview shows; see `preview`."""

    base_url: str
    pages: dict[str, str]
    slugs: SlugRule

    @classmethod
    def of(cls, message: dict[str, Any]) -> _Shown:
        """Return the message of a plugin.

        Raises:
            InputError: it lacks a part, or a part has another form.
        """
        try:
            pages = {str(file): str(path).lstrip("/") for file, path in message["pages"].items()}
            return cls(str(message["base_url"]), pages, SlugRule(message["slugs"]))
        except (KeyError, AttributeError, ValueError):
            raise InputError("A line needs base_url, pages (addresses by file) and slugs.") from None


def _messages() -> Iterator[_Shown]:
    for line in sys.stdin:
        yield _Shown.of(_line(line))


def _line(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InputError("Each line of standard input must be a JSON object: this command is for plugins.")
    return value


def _mapping(config: str) -> dict[str, Any]:
    """Return the options in a file.

    Raises:
        InputError: it can't be read.
        ConfigurationError: it holds no options by name.
    """
    try:
        text = sys.stdin.read() if config == "-" else Path(config).read_text("utf-8")
        value = yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise InputError(f"{config} can't be read: {str(error).splitlines()[0]}.") from None
    if not isinstance(value, dict):
        raise ConfigurationError(f"{config} must hold options by name, such as `endpoint: /`.")
    return value


def _put_chat(site_dir: Path, options: Options, settings: Settings) -> None:
    chosen = {"endpoint": settings.endpoint or None, **options.widget_options()}
    agents = AgentOptions.of(options.agents)
    writer, addresses, problem = agent_files(site_dir, agents, settings, options.exclude, options.include)
    files = assets({**chosen, "version": settings.docs_version})
    result = inject(site_dir, files, agents=writer, addresses=addresses)
    for warning in filter(None, (*result.warnings, problem)):
        _Log().warning(warning)


def _index_preview(shown: _Shown, settings: Settings, options: Options) -> None:
    # A page may be half-written, so the preview goes on.
    try:
        documents = Documents.of(settings, Path(), Path())
        choice = documents.no_pages, options.include, options.exclude
        reading = read_sources(Path(), shown.base_url, shown.slugs, *choice, shown.pages)
        _index(reading, settings, options, Path())
    except (ChapterVerseError, OSError) as error:
        _Log().warning(f"The index was not updated: {plugin_api.explained(error)}")


def _index(reading: Reading, settings: Settings, options: Options, docs: Path | None) -> None:
    documents = Documents.of(settings, docs, Path())
    plugin_api.index_reading(reading, settings, options.chunk_tokens, documents, _Log())
