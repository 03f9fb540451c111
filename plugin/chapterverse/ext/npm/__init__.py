"""Commands `publish` and `preview`: what a plugin does, for generators that are not written in Python. State: stable.

Their npm packages only call these commands. So every generator has the same options, and one place checks them.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import typer
import yaml

from chapterverse import local_server
from chapterverse.cli import parameters
from chapterverse.cli.index import site_scope
from chapterverse.cli.messages import LOG, note, warn
from chapterverse.cli.parameters import option, with_secrets
from chapterverse.cli.site import open_agent_files
from chapterverse.errors import ChapterVerseError, ConfigurationError, InputError
from chapterverse.ext.site_check.index_check import no_pages_of
from chapterverse.ext.transfer.maintenance import unpublish
from chapterverse.extensions import load, load_part
from chapterverse.indexing.additions import find_documents
from chapterverse.indexing.index_run import (
    Site,
    explain_error,
    is_to_index,
    list_problems,
    read_known_site,
    try_to_index,
    update_index,
)
from chapterverse.indexing.options import Options, complete
from chapterverse.ledger import open_ledger
from chapterverse.model import Source
from chapterverse.readers.site_pages import SitePages
from chapterverse.readers.urls import SiteGenerator
from chapterverse.settings import Settings
from chapterverse.site import starters
from chapterverse.site.delivery import deliver
from chapterverse.site.inject import inject
from chapterverse.site.overview import AgentOptions
from chapterverse.store import open_store
from chapterverse.text.json_text import parse_json
from chapterverse.version import __version__
from chapterverse.widget.bundle import assets

_FOLDER = f"chapterverse/{__version__}"


def publish(
    site_dir: parameters.SiteDir,
    config: str = option("Options of the plugin, as YAML or JSON; - reads standard input.", "FILE", default=...),
    base_url: parameters.BaseUrl = None,
    address_setting: str = option("The generator's own name for --base-url.", "NAME", default=""),
    version_path: list[str] | None = option("A docs version and the folder of its pages.", "VERSION=FOLDER"),
    docs_version: parameters.Version = None,
) -> None:
    """Put the chat into a built site and index it. Plugins of generators call this.

    The options are those of the MkDocs plugin.
    """
    options = _options(_read_options(config))
    if not options.enabled:
        return
    # Without a name the index has that of the site's address, as with `index`.
    settings = with_secrets(options.settings(Path.cwd(), None, docs_version))
    placed = settings.override(base_url=base_url or None)
    reading = _put_chat(site_dir, options, placed)
    unplaced = bool(address_setting) and not placed.base_url
    for problem in list_problems(settings, None if unplaced else "stated", address_setting):
        if options.strict:
            raise ConfigurationError(problem)
        warn(problem)
    if not is_to_index(settings, "" if unplaced else "stated", LOG, strict=False):
        return

    def update() -> None:
        # `reading` is None if the site could not be read. Reading it again raises the reason.
        read = reading or read_known_site(site_dir, placed, include=options.include, exclude=options.exclude)
        _index_versions(read, settings, options, version_path or ())
        if (site_dir / starters.PATH).is_file():
            starters.write(site_dir / starters.PATH, settings, read.base_url)

    if error := try_to_index(update, LOG, options.strict):
        raise error


def _index_versions(reading: SitePages, settings: Settings, options: Options, version_paths: Sequence[str]) -> None:
    """Index each docs version of a site, and remove or name the versions that are no longer in it."""
    scope, _ = site_scope(settings, reading)
    settings = settings.override(site=scope.site)
    addresses: dict[str, str] = {}
    for version, part in _by_version(reading, version_paths):
        version_settings = settings.override(docs_version=version)
        _index(part, version_settings, options, None)
        addresses[part.base_url] = version_settings.docs_version or ""
    if settings.docs_version is None:
        _note_old_versions(settings, addresses, reading.base_url if version_paths else None)


def preview() -> None:
    """Run the API beside a generator's own preview, for its plugin. It ends with standard input.

    The first line of standard input holds the options of the plugin as JSON. Standard output answers with a line that
    has the `address` of the API and of the `launcher`. Each further line holds what the preview shows now, and is
    indexed: its `base_url`, its `pages` (address below it by file of Markdown or MDX) and the rule of their anchors
    (`slugs`).
    """
    options = _options(_line(sys.stdin.readline()))
    settings = options.settings(Path.cwd(), "preview", None, preview=True)
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(local_server.bind("127.0.0.1", 0))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="chapterverse-")))
        origin = local_server.socket_origin(listening)
        deliver(folder / _FOLDER, assets({"endpoint": origin, **options.widget_options(), "version": ""}))
        create_app = load("chapterverse_api.app:create_app")
        typer.echo(json.dumps({"address": origin, "launcher": f"{origin}/{_FOLDER}/launcher.js"}))
        sys.stdout.flush()
        service: local_server.Background | None = None
        for state in _states():
            if service is None:
                # Only now its pages have an address, from where the chat asks.
                origins = local_server.preview_origins(state.base_url)
                app = create_app(settings=settings.override(allowed_origins=origins), site_dir=folder)
                service = local_server.Background(app, listening)
                stack.callback(service.stop)
                note(f"The chat of this preview answers at {origin}")
            _index_preview(state, settings, options)


class _PreviewState(NamedTuple):
    """The site as a generator's preview shows it; see `preview`."""

    base_url: str
    pages: dict[str, str]
    slugs: SiteGenerator


def _states() -> Iterator[_PreviewState]:
    """Yield the states that a plugin sends. Raises `InputError` if one lacks a part, or a part has another form."""
    for line in sys.stdin:
        message = _line(line)
        try:
            pages = {str(file): str(path).lstrip("/") for file, path in message["pages"].items()}
            state = _PreviewState(str(message["base_url"]), pages, SiteGenerator(message["slugs"]))
        except (KeyError, AttributeError, ValueError):
            raise InputError("A line needs base_url, pages (addresses by file) and slugs.") from None
        yield state


def _by_version(reading: SitePages, paths: Iterable[str]) -> Iterator[tuple[str | None, SitePages]]:
    """Yield each docs version of a site with its pages; without `paths` the whole site, which has none.

    A version is published at its first folder. Pages outside of all folders belong to the version whose folder is "".

    Raises:
        InputError: a path is not VERSION=FOLDER.
    """
    folders: dict[str, str | None] = {}
    for stated in paths:
        version, sign, folder = stated.partition("=")
        if not sign or not version:
            raise InputError(f"--version-path {stated[:60]!a} is not VERSION=FOLDER, such as 1.0=docs/1.0.")
        folders[reading.base_url + f"{folder.strip('/')}/".lstrip("/")] = version
    folders.setdefault(reading.base_url, None)
    parts: dict[str | None, list[Source]] = {version: [] for version in folders.values()}
    for source in reading.sources:
        # The first page of a folder may have no slash at its end.
        above = max((f for f in folders if f"{source.url}/".startswith(f)), key=len, default=reading.base_url)
        parts[folders[above]].append(source)
    for name, sources in parts.items():
        if sources:
            base = next(folder for folder, version in folders.items() if version == name)
            yield name, replace(reading, sources=tuple(sources), base_url=base)
            # They are of the site and not of one version.
            reading = replace(reading, warnings=(), left_out={})


def _note_old_versions(settings: Settings, addresses: Mapping[str, str], base_url: str | None) -> None:
    """Remove a docs version at whose address there is another one now, and name the others that are not in this build.

    Only the first kind is in the way: a page there would be of two versions.

    Args:
        addresses: the versions of this build by address.
        base_url: of the site, where its generator builds all versions at once; else others have builds of their own.
    """
    store = open_store(settings)
    for head in store.heads():
        if head.site != settings.site or head.version in addresses.values():
            continue
        if head.base_url in addresses:
            unpublish(store, open_ledger(settings), head.scope)
            new = addresses[head.base_url]
            note(f"Removed the docs version {head.version!r}, at whose address {new!r} is now.")
        elif base_url and head.base_url.startswith(base_url):
            warn(no_pages_of(head))


def _line(text: str) -> dict[str, Any]:
    try:
        value = parse_json(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InputError("Each line of standard input must be a JSON object: this command is for plugins.")
    return value


def _read_options(config: str) -> dict[str, Any]:
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


def _options(values: Mapping[str, Any]) -> Options:
    return complete(values, Path(), "The generator's configuration", note)


def _put_chat(site_dir: Path, options: Options, settings: Settings) -> SitePages | None:
    """Put the chat into the pages and write the files for agents. Return the pages, None if they have no address.

    The pages are read after the chat's tag is in them, and once: a link in their heads changes no content.
    """
    chosen = {"endpoint": settings.endpoint or None, **options.widget_options(), **starters.OPTION}
    agents = AgentOptions.of(options.agents)
    result = inject(site_dir, assets({**chosen, "version": settings.docs_version}))
    files, reading, problems = open_agent_files(site_dir, agents, settings, options.include, options.exclude)
    warnings = [*result.warnings, *problems]
    if files and reading:
        files.add_built_pages(reading)
        # The plugin of a generator may have written files into the same folder.
        outcome = files.finish(remove=not result.other_widgets)
        warnings += [*outcome.warnings, *outcome.notes]
    for warning in warnings:
        warn(warning)
    if result.changed or result.unchanged:
        starters.write(site_dir / starters.PATH, settings, reading.base_url if reading else "")
    return reading


def _index_preview(state: _PreviewState, settings: Settings, options: Options) -> None:
    # A page may be half-written, so the preview goes on.
    try:
        documents = find_documents(settings, Path(), Path())
        reading = load_part("markdown_folder")(
            Path(),
            state.base_url,
            include=options.include,
            exclude=options.exclude,
            generator=state.slugs,
            no_pages=documents.no_pages,
            listed=state.pages,
        )
        _index(reading, settings, options, Path())
    except (ChapterVerseError, OSError) as error:
        warn(f"The index was not updated: {explain_error(error)}")


def _index(reading: SitePages, settings: Settings, options: Options, docs: Path | None) -> None:
    documents = find_documents(settings, docs, Path())
    update_index(Site(reading, documents, settings, options.chunk_tokens), LOG)
