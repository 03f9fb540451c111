"""The extension for Sphinx: puts the chat on every page and indexes the built pages after a clean build.

It reads the built HTML and not the pages as they are written, because Sphinx writes only pages that changed. So an
index is the same after an incremental build as after a full one, and the same as `chapterverse index` makes.

    extensions = ["chapterverse.sphinx"]
    chapterverse = {"endpoint": "https://api.example.com", "exclude": ["internal/"]}
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chapterverse import __version__
from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.indexing.plugins.index_run import explain_error, try_to_index, update_index
from chapterverse.indexing.plugins.options import Options
from chapterverse.indexing.plugins.problems import explain_no_address, explain_withheld, list_problems
from chapterverse.indexing.plugins.project_file import complete
from chapterverse.knowledge.folder import Documents
from chapterverse.page_globs import PageGlobs
from chapterverse.settings import Settings
from chapterverse.site import starters
from chapterverse.site.agent_files import AgentFiles, AgentOptions
from chapterverse.site.delivery import deliver
from chapterverse.widget.bundle import assets

# Sphinx loads this module, and nothing else may: at run time it is imported where it is used.
if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.config import Config

    from chapterverse.readers.sources.site_pages import SitePages

#: Without a digest: pages that Sphinx does not write again load the files of the last build.
_FOLDER = f"_static/chapterverse/{__version__}"

#: Builders that write a page a file, as readers see it.
_BUILDERS = ("html", "dirhtml", "readthedocs", "readthedocsdirhtml")


@dataclass(slots=True)
class _Extension:
    """The hooks of one build."""

    options: Options = field(default_factory=Options)
    settings: Settings = field(default_factory=Settings)
    agent_options: AgentOptions = field(default_factory=AgentOptions)
    reading: SitePages | None = None

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
        options = {"endpoint": self.settings.endpoint or None, "site": app.config.project, **starters.OPTION}
        options |= {**self.options.widget_options(), "version": self.settings.docs_version}
        files = assets(options, app.config.language or "")
        deliver(Path(app.outdir) / _FOLDER, files)
        self._write_starters(app, self._base_url(app))
        app.add_js_file(f"{_FOLDER.removeprefix('_static/')}/launcher.js", type="module")

    def finish(self, app: Sphinx, failure: Exception | None) -> None:
        """Write the files for agents, and make the index hold exactly the built pages."""
        if failure is not None or not self._is_active(app):
            return
        base_url = self._base_url(app)
        if base_url and self.agent_options.any:
            try:
                self._write_agent_files(app, base_url)
            # The docs are built already.
            except ChapterVerseError as error:
                _log().warning("chapterverse: No files for agents were written: %s", error)
        if not self.settings.may_publish:
            if self.settings.publish is not False:
                _log().info("chapterverse: Nothing was indexed: %s", explain_withheld(self.settings))
            return
        if not base_url and not self.options.strict:
            return
        update = partial(self._index, app, base_url)
        if failure := try_to_index(update, _log(), self.options.strict, "chapterverse: "):
            raise _failure(failure)
        self._write_starters(app, base_url)

    def _write_starters(self, app: Sphinx, base_url: str) -> None:
        starters.write((Path(app.outdir) / _FOLDER).with_name(starters.FILE), self.settings, base_url)

    def _write_agent_files(self, app: Sphinx, base_url: str) -> None:
        reading, out = self._reading(app, base_url), Path(app.outdir)
        about = self.settings, app.config.project, reading.base_url
        files = AgentFiles.open(out, self.agent_options, *about, keep=self.settings.may_publish)
        files.add_built_pages(reading)
        files.finish().log(_log(), "chapterverse: ")

    def _reading(self, app: Sphinx, base_url: str) -> SitePages:
        """Return the built pages: read once, as links to files for agents change no content."""
        from chapterverse.readers.sources.built_site import read_site

        if self.reading is not None:
            return self.reading
        documents = Documents.of(self.settings, Path(app.srcdir), Path(app.confdir))
        exclude = [*self.options.exclude, *self._omitted_patterns(app, documents.no_pages)]
        self.reading = read_site(Path(app.outdir), base_url, self._including(app), exclude)
        return self.reading

    def _index(self, app: Sphinx, base_url: str) -> None:
        if not base_url:
            raise ConfigurationError(explain_no_address("html_baseurl"))
        docs = Path(app.srcdir)
        documents = Documents.of(self.settings, docs, Path(app.confdir))
        reading = self._reading(app, base_url)
        update_index(reading, self.settings, self.options.chunk_tokens, documents, _log())

    def _omitted_patterns(self, app: Sphinx, no_pages: frozenset[str]) -> list[str]:
        """Return patterns for the pages of sources that `exclude` names or that keep themselves out of search."""
        globs = PageGlobs.of(self.options.exclude, ())
        metadata = app.env.metadata
        return [
            _pattern(built)
            for name, source, built in _pages(app)
            if source in no_pages or "nosearch" in metadata[name] or globs.excludes(source, built)
        ]

    def _including(self, app: Sphinx) -> list[str]:
        globs = PageGlobs.of((), self.options.include)
        pages = (_pattern(built) for _, source, built in _pages(app) if globs.includes(source, built))
        return [*self.options.include, *pages]

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
    out = Path(app.outdir)
    return [
        (name, app.env.doc2path(name, False).replace(os.sep, "/"), _built_path(app, name, out))
        for name in sorted(app.env.found_docs)
    ]


def _built_path(app: Sphinx, name: str, out: Path) -> str:
    builder: Any = app.builder
    return Path(builder.get_outfilename(name)).relative_to(out).as_posix()


def _pattern(path: str) -> str:
    """Return a pattern that matches one path."""
    return "/" + "".join(f"\\{c}" if c in "*?[]!#\\ " else c for c in path)


def _note(sentence: str) -> None:
    _log().info("chapterverse: %s", sentence)


def _log() -> Any:
    from sphinx.util import logging

    return logging.getLogger(__name__)
