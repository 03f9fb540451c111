"""The extension for Sphinx: puts the chat on every page and indexes the built pages after a clean build.

It reads the built HTML and not the pages as they are written, because Sphinx writes only pages that changed. So an
index is the same after an incremental build as after a full one, and the same as `chapterverse index` makes.

    extensions = ["chapterverse.sphinx"]
    chapterverse = {"endpoint": "https://api.example.com", "exclude": ["internal/"]}
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.indexing.additions import Documents, find_documents
from chapterverse.indexing.index_run import (
    Site,
    explain_error,
    explain_no_address,
    is_to_index,
    list_problems,
    try_to_index,
    update_index,
)
from chapterverse.indexing.options import Options, complete
from chapterverse.readers.folder import PageGlobs
from chapterverse.settings import Settings
from chapterverse.site import starters
from chapterverse.site.agent_files import AgentFiles
from chapterverse.site.delivery import deliver
from chapterverse.site.overview import AgentOptions
from chapterverse.version import __version__
from chapterverse.widget.bundle import assets

# Sphinx loads this module, and nothing else may: at run time it is imported where it is used.
if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

    from chapterverse.readers.site_pages import SitePages

#: Without a digest: pages that Sphinx does not write again load the files of the last build.
_FOLDER = f"_static/chapterverse/{__version__}"

#: What Sphinx calls a project that its configuration does not name.
_UNNAMED = "Project name not set"

#: Builders that write a page a file, as readers see it.
_BUILDERS = ("html", "dirhtml", "readthedocs", "readthedocsdirhtml")


@dataclass(slots=True)
class _Extension:
    """The hooks of one build."""

    options: Options = field(default_factory=Options)
    settings: Settings = field(default_factory=Settings)
    agent_options: AgentOptions = field(default_factory=AgentOptions)

    def configure(self, app: Sphinx, config: Config) -> None:
        try:
            root, base_url = Path(app.confdir), _base_url(config)
            self.options = complete(config.chapterverse, root, "conf.py", _note, base_url)
            self.settings = self.options.settings(root, config.project, os.environ.get("READTHEDOCS_VERSION"))
            self.options.widget_options()
            self.agent_options = AgentOptions.of(self.options.agents)
        except ConfigurationError as error:
            raise _failure(error) from None

    def add_widget(self, app: Sphinx) -> None:
        """Write the widget's files, and have every page load them."""
        if not self._is_active(app):
            return
        for problem in list_problems(self.settings, self._base_url(app), "html_baseurl"):
            _log().warning("chapterverse: %s", problem)
        name = app.config.project if app.config.project != _UNNAMED else None
        options = {"endpoint": self.settings.endpoint or None, "site": name, **starters.OPTION}
        options |= {**self.options.widget_options(), "version": self.settings.docs_version}
        files = assets(options, app.config.language or "")
        deliver(Path(app.outdir) / _FOLDER, files)
        self._write_starters(app, self._base_url(app))
        app.add_js_file(f"{_FOLDER.removeprefix('_static/')}/launcher.js", type="module")

    def finish(self, app: Sphinx, failure: Exception | None) -> None:
        """Write the files for agents, and make the index hold exactly the built pages."""
        if failure is not None or not self._is_active(app):
            return
        base_url, read = self._base_url(app), cache(partial(self._read, app))
        try:
            if base_url and self.agent_options.any:
                self._write_agent_files(app, read()[0])
        # The docs are built already.
        except ChapterVerseError as error:
            _log().warning("chapterverse: No files for agents were written: %s", error)
        if not is_to_index(self.settings, base_url, _log(), strict=self.options.strict, prefix="chapterverse: "):
            return

        def update() -> None:
            if not base_url:
                raise ConfigurationError(explain_no_address("html_baseurl"))
            reading, documents = read()
            update_index(Site(reading, documents, self.settings, self.options.chunk_tokens), _log())

        if failure := try_to_index(update, _log(), self.options.strict, "chapterverse: "):
            raise _failure(failure)
        self._write_starters(app, base_url)

    def _write_starters(self, app: Sphinx, base_url: str) -> None:
        starters.write((Path(app.outdir) / _FOLDER).with_name(starters.STARTERS_FILE), self.settings, base_url)

    def _write_agent_files(self, app: Sphinx, reading: SitePages) -> None:
        about = self.settings, app.config.project, reading.base_url
        files = AgentFiles.open(Path(app.outdir), self.agent_options, *about, keep=self.settings.may_publish)
        files.add_built_pages(reading)
        files.finish().log(_log(), "chapterverse: ")

    def _read(self, app: Sphinx) -> tuple[SitePages, Documents]:
        """Return the built pages, of which links to files for agents change no content, and the documents."""
        from chapterverse.readers.built_site import read_site

        documents = find_documents(self.settings, Path(app.srcdir), Path(app.confdir))
        globs = PageGlobs.of(include=self.options.include, exclude=self.options.exclude)
        include, exclude = [*self.options.include], [*self.options.exclude]
        for name, source, built in _pages(app):
            if globs.includes(source, built):
                include.append(_pattern(built))
            # `nosearch` keeps a page out of Sphinx' own search too.
            if source in documents.no_pages or "nosearch" in app.env.metadata[name] or globs.excludes(source, built):
                exclude.append(_pattern(built))
        return read_site(Path(app.outdir), self._base_url(app), include=include, exclude=exclude), documents

    def _base_url(self, app: Sphinx) -> str:
        """Return the site's address, "" if nothing states it."""
        return _base_url(app.config) or self.settings.base_url

    def _is_active(self, app: Sphinx) -> bool:
        return self.options.enabled and app.builder.name in _BUILDERS


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the extension; Sphinx calls this."""
    extension = _Extension()
    app.add_config_value("chapterverse", {}, "html", [dict])
    app.connect("config-inited", extension.configure)
    app.connect("builder-inited", extension.add_widget)
    # Last, after extensions that change the built pages.
    app.connect("build-finished", extension.finish, priority=900)
    return {"version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}


def _failure(error: Exception) -> SystemExit:
    """Return what ends the build with one sentence: Sphinx adds a traceback to its own errors."""
    return SystemExit(f"chapterverse: {explain_error(error)}")


def _base_url(config: Config) -> str:
    """Return the site's address as its configuration states it, which Read the Docs knows too."""
    return str(config.html_baseurl or os.environ.get("READTHEDOCS_CANONICAL_URL") or "")


def _pages(app: Sphinx) -> list[tuple[str, str, str]]:
    """Return name, source path and built path of each document."""
    builder: Any = app.builder
    return [
        (
            name,
            Path(app.env.doc2path(name, False)).as_posix(),
            Path(builder.get_outfilename(name)).relative_to(app.outdir).as_posix(),
        )
        for name in sorted(app.env.found_docs)
    ]


def _pattern(path: str) -> str:
    """Return a pattern that matches one path."""
    return "/" + "".join(f"\\{c}" if c in "*?[]!#\\ " else c for c in path)


def _note(sentence: str) -> None:
    _log().info("chapterverse: %s", sentence)


def _log() -> Any:
    from sphinx.util import logging

    return logging.getLogger(__name__)
