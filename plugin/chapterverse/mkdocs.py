"""The plugin for MkDocs and ProperDocs: collects pages during a build, indexes them after a clean one.

`on_page_context` reads a page: there `page.content` has its cross-references resolved, but no theme around it and no
changes by other plugins of that event. `on_shutdown` publishes, because `--strict` fails a build after `on_post_build`.
"""

from __future__ import annotations

import html
import os
from functools import partial
from pathlib import Path

from mkdocs.config import config_options as c
from mkdocs.config.base import Config, ConfigErrors, ConfigWarnings, ValidationError
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page as MkDocsPage

from chapterverse.entry_points import Preview
from chapterverse.errors import ConfigurationError
from chapterverse.indexing.plugins import index_run, page_marks, problems
from chapterverse.indexing.plugins.options import Options, explain_unknown_options, is_preview
from chapterverse.indexing.plugins.pages import PageCollection, page_fields, page_source, theme_language
from chapterverse.knowledge.folder import Documents
from chapterverse.model import Source
from chapterverse.site.agent_files import AgentFiles, AgentOptions
from chapterverse.site.delivery import FOLDER, build_folder
from chapterverse.site.markdown_page import BuiltPage
from chapterverse.widget.bundle import assets

log = get_plugin_logger(__name__)


class ChapterVerseConfig(Config):
    """The options under `plugins: - chapterverse:`; each overrides the environment variable of the same name."""

    enabled = c.Type(bool, default=True)
    """Whether the plugin is active; `!ENV [CI, false]` is a common value."""
    publish = c.Optional(c.Type(bool))
    """Whether a clean build writes the index; unset means yes for the embedded store and no for a remote one."""
    strict = c.Type(bool, default=False)
    """Whether a failure to index fails the build, as under `--strict`; else it is logged and the old index stays."""
    endpoint = c.Optional(c.Type(str))
    """Address of the API that the widget calls; `/` is the site's own origin, and without one a build warns."""
    store = c.Optional(c.Type(str))
    """Place of the index: `edge:PATH`, relative to this file, `qdrant:URL` or `s3://BUCKET/PREFIX`."""
    embedder = c.Optional(c.Type(str))
    """Maker of dense vectors: `none`, or `cohere`, `bedrock`, `openai`, `fastembed` with `:MODEL`."""
    persona = c.Optional(c.Type(str))
    """The chat's name, language and tone; unset looks for `persona.md` in `docs_dir`, then beside this file."""
    knowledge = c.Optional(c.Type(str))
    """Folder with `persona`, `faq` and `memory`; unset looks for `knowledge` in `docs_dir`."""
    documents = c.Type(dict, default={})
    """Switches and counts of documents by type, see `settings.document_options`."""
    site = c.Optional(c.Type(str))
    """Name of the site's index; unset takes it from `site_name`."""
    chunk_tokens = c.Type(int, default=256)
    """Size that chunks are packed to, in cl100k tokens; the cap is 512."""
    exclude = c.ListOfItems(c.Type(str), default=[])
    """Pages not to index, as patterns in the style of .gitignore on paths below `docs_dir`."""
    include = c.ListOfItems(c.Type(str), default=[])
    """Listings, archives and search pages to index all the same, as patterns like those of `exclude`."""
    also = c.Type(list, default=[])
    """Sources beyond the site: files, addresses and sitemaps, see `external_entries.ExternalEntry`."""
    agents = c.Type((bool, dict), default=True)
    """Files for agents: all, none, or a switch for each, see `site.agent_files.AgentOptions`."""
    widget = c.Type(dict, default={})
    """Options of the chat, see `widget.options.WidgetOptions`."""

    def validate(self) -> tuple[ConfigErrors, ConfigWarnings]:
        failed, warnings = super().validate()
        # MkDocs only warns of them.
        unknown = explain_unknown_options(self, self._schema_keys)
        failed += [(name, ValidationError(sentence)) for name, sentence in unknown.items()]
        return failed, [(name, warning) for name, warning in warnings if name not in unknown]


class ChapterVersePlugin(BasePlugin[ChapterVerseConfig]):
    """The hooks in the order of a build. With the first and the last MkDocs keeps this object across rebuilds."""

    _serving = _dirty = _is_complete = False
    _build: MkDocsConfig | None = None
    _preview: Preview | None = None

    def on_startup(self, *, command: str, dirty: bool) -> None:
        self._serving, self._dirty = command == "serve", dirty

    def on_config(self, config: MkDocsConfig) -> None:
        if not self.config.enabled:
            return
        self._is_complete = False
        self._serving = self._serving or is_preview(config.site_dir, config.site_url, str(config.dev_addr))
        self._read(config)
        # A translation plugin builds each language with this same object; a rebuild of `serve` has a new config.
        if config is not self._build:
            self._build = config
            self._pages = PageCollection.of(self.config.exclude, self.config.include, self._documents.entries)
            about = self._settings, config.site_name, config.site_url or "", config.site_description or ""
            self._agents = AgentFiles.open(config.site_dir, self._agent_options, *about)
            # Now, because `--strict` counts warnings until the site is written.
            for problem in [] if self._serving else problems.list_problems(self._settings, config.site_url):
                log.warning(problem)
        if self._serving and self._preview is None:
            self._preview = Preview.start(self._settings, str(config.dev_addr), log.info)

    # After static-i18n, which fails on a file without a source.
    @event_priority(-110)
    def on_files(self, files: Files, config: MkDocsConfig) -> None:
        if not self.config.enabled:
            return
        endpoint = (self._preview.address if self._preview else self._settings.endpoint) or None
        chosen = {"endpoint": endpoint, **self._widget, "version": self._settings.docs_version}
        widget = assets(chosen, theme_language(config.theme))
        folder, included = build_folder(widget), InclusionLevel.INCLUDED  # even if `exclude_docs` matches
        for name, content in widget.items():
            files.append(File.generated(config, f"{folder}/{name}", content=content, inclusion=included))
        launcher = c.ExtraScriptValue(f"{folder}/launcher.js")
        launcher.type = "module"
        # In place of the launcher of another language, which was built with this same configuration.
        config.extra_javascript[:] = [*(s for s in config.extra_javascript if not str(s).startswith(FOLDER)), launcher]
        for file in filter(None, map(files.get_file_from_path, self._documents.hidden_paths(config.nav))):
            files.remove(file)
        for file in files.documentation_pages():
            if self._pages.shut_out(file.src_uri, file.abs_src_path, file.src_dir):
                log.warning(f"{file.src_uri} is a link out of its folder, so it is not indexed: put the file there.")

    # Before the search plugins of MkDocs and Material: the latter strips `data-search-exclude` from the content.
    @event_priority(100)
    def on_page_context(self, context: object, *, page: MkDocsPage, config: MkDocsConfig, nav: object) -> None:
        if not self.config.enabled:
            return
        file, content, read = page.file, page.content or "", ""
        if not file.inclusion.is_excluded() and self._pages.takes(file.src_uri, file.dest_uri, page.meta, content):
            read = self._pages.add(_source(page, config))
        # After the indexed content, and inside the element that a theme's instant navigation replaces.
        page.content = page_marks.render_content(content, read, page.meta, file.src_uri, log)

    # After a plugin that encrypts the page.
    @event_priority(-100)
    def on_post_page(self, output: str, *, page: MkDocsPage, config: MkDocsConfig) -> str | None:
        is_shown = self.config.enabled and self._pages.confirm(page.file.src_uri, page.content or "", output)
        return self._agents.add_page(output, _built_page(page, config)) if is_shown else None

    # After a plugin that builds further languages in this event.
    @event_priority(-100)
    def on_post_build(self, config: MkDocsConfig) -> None:
        self._is_complete = True
        # A dirty build has only the pages that changed.
        if self.config.enabled and not self._dirty:
            self._agents.finish().log(log)
        if self.config.enabled and self._preview is not None:
            self._preview.submit(partial(self._index, self._pages, config))  # later: a writer wants the page at once

    def on_build_error(self, *, error: Exception) -> None:
        self._is_complete = False

    def on_shutdown(self) -> None:
        if self._preview is not None:
            self._preview.stop()
        # Ctrl-C raises no build error, so only `on_post_build` proves that every page was seen.
        if not self.config.enabled or self._build is None or not self._is_complete or self._dirty or self._serving:
            return
        if self._settings.may_publish and (self._build.site_url or self.config.strict):
            self._index(self._pages, self._build)
        elif not self._settings.may_publish and self._settings.publish is not False:
            log.info(f"Nothing was indexed: {problems.explain_withheld(self._settings)}")

    def _read(self, config: MkDocsConfig) -> None:
        options = Options(**self.config)
        root, version = Path(config.config_file_path or ".").resolve().parent, os.environ.get("MIKE_DOCS_VERSION")
        try:
            self._settings = options.settings(root, config.site_name, version, preview=self._serving)
            self._documents = Documents.of(self._settings, Path(config.docs_dir), root)
            self._widget, self._agent_options = options.widget_options(), AgentOptions.of(options.agents)
        except ConfigurationError as error:
            raise PluginError(f"chapterverse: {error}") from error

    def _index(self, pages: PageCollection, config: MkDocsConfig) -> None:
        site = self._settings, config.site_url, self.config.chunk_tokens
        update = partial(index_run.update_index, pages, *site, self._documents, log)
        strict = (self.config.strict or config.strict) and not self._serving
        if error := index_run.try_to_index(update, log, strict):
            raise PluginError(f"chapterverse: {index_run.explain_error(error)}")


def _source(page: MkDocsPage, config: MkDocsConfig) -> Source:
    built = _built_page(page, config)
    stated = page_fields(page.meta, config.theme, built.path, built.html)
    return page_source(page.file.src_uri, built.url, built.title, built.html, **stated)


def _built_page(page: MkDocsPage, config: MkDocsConfig) -> BuiltPage:
    # MkDocs takes titles from headings as HTML, and from the navigation as text.
    url, title = page.canonical_url or "", html.unescape(str(page.title or page.file.name))
    language, about = theme_language(config.theme), str(page.meta.get("description") or "")
    return BuiltPage(page.file.dest_uri, url, title, language, page.content or "", description=about)
