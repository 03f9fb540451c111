"""Commands `widget` and `inject`: add the chat to a built site."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from chapterverse.cli import parameters
from chapterverse.cli.messages import note, progress_bar, warn
from chapterverse.cli.parameters import argument, configure, option, print_json, project_options
from chapterverse.errors import ConfigurationError, InputError
from chapterverse.indexing.index_run import read_known_site
from chapterverse.readers.site_pages import SitePages
from chapterverse.settings import Settings
from chapterverse.site import starters
from chapterverse.site.agent_files import AgentFiles, rendered_page
from chapterverse.site.delivery import deliver, widget_files
from chapterverse.site.inject import inject as inject_into
from chapterverse.site.overview import AgentOptions
from chapterverse.site.tags import plain_tag

EndpointOption = Annotated[
    str | None, typer.Option(help="Address of the API; / is the site's own origin.", metavar="URL")
]
TitleOption = Annotated[str | None, typer.Option(help="Heading of the chat and label of its button.")]
ConfigOption = Annotated[
    Path | None, typer.Option(help="Options of the chat, as YAML or JSON.", metavar="FILE", exists=True, dir_okay=False)
]
QuestionsVersionOption = Annotated[str | None, typer.Option(help="Docs version of these pages.")]


def widget(
    folder: Path = argument("Folder that the generator copies as it is.", "DIR", default=...),
    endpoint: EndpointOption = None,
    title: TitleOption = None,
    config: ConfigOption = None,
    as_json: parameters.Json = False,
    docs_version: QuestionsVersionOption = None,
) -> None:
    """Write the chat's files into a folder, and print the script tag for the pages.

    Use it if your generator adds the tag to its pages. DIR should contain nothing else.
    """
    files = _files(configure(endpoint=endpoint or None, docs_version=docs_version), title, config, {})
    written = deliver(folder, files)
    tag = plain_tag(f"{folder.resolve().name}/launcher.js")
    if as_json:
        print_json({"folder": str(folder), "files": sorted(files), "written": written, "tag": tag})
        return
    note(f"{folder}: {written} of {len(files)} files written. Every page needs this tag, with its own path:")
    typer.echo(tag)


def inject(
    site_dir: parameters.SiteDir,
    endpoint: EndpointOption = None,
    title: TitleOption = None,
    config: ConfigOption = None,
    base_url: parameters.BaseUrl = None,
    exclude: parameters.Exclude = None,
    include: parameters.Include = None,
    markdown: bool | None = option("Write the Markdown of each page, for agents."),
    llms_txt: bool | None = option("Write the list of pages, for agents."),
    llms_full_txt: bool | None = option("Write all pages as one file, for agents."),
    skill: bool | None = option("Write a skill for agents and its index."),
    overwrite: bool | None = option("Replace your own files with these names.", name="--overwrite"),
    as_json: parameters.Json = False,
    docs_version: QuestionsVersionOption = None,
) -> None:
    """Put the chat into every page of a built site, and write files for agents.

    Adds one script tag before </body>. A second run changes nothing. Run it after each build.
    """
    settings = configure(endpoint=endpoint or None, docs_version=docs_version, base_url=base_url)
    files = _files(settings, title, config, starters.OPTION)
    project = project_options()
    flags = {
        "markdown": markdown,
        "llms_txt": llms_txt,
        "llms_full_txt": llms_full_txt,
        "skill": skill,
        "overwrite": overwrite,
    }
    stated = {name: value for name, value in flags.items() if value is not None}
    options = replace(AgentOptions.of(project.agents), **stated)
    patterns = include or project.include, exclude or project.exclude
    agents, reading, problems = open_agent_files(site_dir, options, settings, *patterns)
    with progress_bar() as report:
        result = inject_into(site_dir, files, report, agents, reading)
    if result.changed or result.unchanged:
        # Nothing is published, so a remote store too is read.
        readable = settings.override(publish=True)
        starters.write(site_dir / starters.PATH, readable, reading.base_url if reading else "", warn)
    result = replace(result, warnings=result.warnings + problems)
    for warning in result.warnings:
        warn(warning)
    if as_json:
        print_json(result.to_json())
        return
    note(f"{result.changed} pages changed, {result.unchanged} unchanged, {result.skipped} skipped.")


def open_agent_files(
    site: Path, options: AgentOptions, settings: Settings, include: Iterable[str], exclude: Iterable[str]
) -> tuple[AgentFiles | None, SitePages | None, tuple[str, ...]]:
    """Return what writes the files for agents, with the name and description of the site's first page, and the pages.

    Without an address both are None, and the sentence says so.
    """
    try:
        reading = read_known_site(site, settings, include=include, exclude=exclude)
    except (InputError, ConfigurationError) as error:
        return None, None, (f"No files for agents were written: {error}",) if options.any else ()
    home = rendered_page(site, "index.html", reading.base_url, reading.parts.get("index.html"))
    name = home.name if home and home.name else reading.site
    about = home.description if home else ""
    return AgentFiles.open(site, options, settings, name, reading.base_url, about), reading, ()


def _files(settings: Settings, title: str | None, config: Path | None, more: Mapping[str, str]) -> dict[str, bytes]:
    """Return the widget's files, with the options of flags, else of the file, else of the project's."""
    from chapterverse.widget.options import read_file, read_options

    if not settings.endpoint:
        raise typer.BadParameter("Give --endpoint URL, or --endpoint / where the API is at the site's own origin.")
    try:
        file_options = read_file(config) if config else project_options().widget
        options = read_options({**file_options, "title": title or file_options.get("title")})
        return widget_files(settings.endpoint, {**options.config(), **more}, settings.docs_version or "")
    except (ConfigurationError, InputError) as error:
        raise typer.BadParameter(str(error)) from None
