"""The plugin for MkDocs and ProperDocs: collects pages during a build, indexes them after a clean one.

Pages are read in `on_page_context`, where `page.content` is final (cross-references are resolved there and not before)
but not yet wrapped in the theme, and before any other plugin of that event. The index is published in `on_shutdown`,
since `--strict` fails a build after `on_post_build`; a dirty or failed build publishes nothing.
"""

from __future__ import annotations

import html
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mkdocs.config import config_options as c
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page as BuiltPage

from chapterverse import __version__
from chapterverse.errors import ConfigurationError
from chapterverse.indexing import plugin_api
from chapterverse.knowledge.persona_lookup import find_persona, no_pages
from chapterverse.model import Source
from chapterverse.widget import assets

if TYPE_CHECKING:
    from chapterverse.entry_points import Preview

log = get_plugin_logger(__name__)

_ASSETS = f"assets/chapterverse/{__version__}"


class ChapterVerseConfig(Config):
    """The options under `plugins: - chapterverse:`; each overrides the environment variable of the same name."""

    enabled = c.Type(bool, default=True)
    """Whether the plugin does anything at all; `!ENV [CI, false]` is a common value."""
    publish = c.Optional(c.Type(bool))
    """Whether a clean build writes the index; unset means yes for the embedded store and no for a remote one."""
    strict = c.Type(bool, default=False)
    """Whether a failure to index fails the build; otherwise it is told and the old index stays."""
    endpoint = c.Optional(c.Type(str))
    """Address of the API that the widget calls; unset means the site's own origin."""
    store = c.Optional(c.Type(str))
    """Where the index lives: `edge:PATH`, relative to this file, `qdrant:URL` or `s3://BUCKET/PREFIX`."""
    embedder = c.Optional(c.Type(str))
    """What makes dense vectors: `none`, or `cohere`, `bedrock`, `openai`, `fastembed` with `:MODEL`."""
    persona = c.Optional(c.Type(str))
    """File that tells the chat how to speak; unset looks for `persona.md` in `docs_dir`, then beside this file."""
    site = c.Optional(c.Type(str))
    """Name of the site's index; unset takes it from `site_name`."""
    chunk_tokens = c.Type(int, default=256)
    """Size that chunks are packed to, in cl100k tokens; the cap is 512."""
    exclude = c.ListOfItems(c.Type(str), default=[])
    """Pages not to index, as patterns in the style of .gitignore on paths below `docs_dir`."""
    include = c.ListOfItems(c.Type(str), default=[])
    """Listings, archives and search pages to index all the same, as patterns like those of `exclude`."""
    widget = c.Type(dict, default={})
    """What the reader sees of the chat: see `widget.options.WidgetOptions`."""


class ChapterVersePlugin(BasePlugin[ChapterVerseConfig]):
    """Hooks in the order of a build. Having the first and the last of them keeps this object across rebuilds."""

    _serving = False
    _dirty = False
    _whole = False
    _build: MkDocsConfig | None = None
    _preview: Preview | None = None

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        self._serving = command == "serve"
        self._dirty = dirty

    def on_config(self, config: MkDocsConfig) -> None:
        if not self.config.enabled:
            return
        self._whole = False
        # A plugin for translations builds each language with this same object; a rebuild of `serve` brings a new one.
        if config is not self._build:
            self._build = config
            self._sources: dict[str, Source] = {}
            self._selection = plugin_api.PageSelection.of(self.config.exclude, self.config.include)
        self._serving = self._serving or plugin_api.is_preview(config.site_dir, config.site_url, str(config.dev_addr))
        self._read(config)
        if self._serving and self._preview is None:
            from chapterverse.entry_points import Preview

            self._preview = Preview.start(self._settings, str(config.dev_addr), log.info)
        launcher = c.ExtraScriptValue(f"{_ASSETS}/launcher.js")
        launcher.type = "module"
        if str(launcher) not in map(str, config.extra_javascript):
            config.extra_javascript.append(launcher)

    # After static-i18n, which can't stand a file without a source.
    @event_priority(-110)
    def on_files(self, files: Files, config: MkDocsConfig) -> None:
        if not self.config.enabled:
            return
        endpoint = self._preview.address if self._preview else self._settings.endpoint
        chosen = {"endpoint": endpoint, **self._widget, "version": self._settings.docs_version}
        for name, content in assets(chosen, plugin_api.language(config.theme)).items():
            # Included whatever `exclude_docs` says of its path.
            included = InclusionLevel.INCLUDED
            files.append(File.generated(config, f"{_ASSETS}/{name}", content=content, inclusion=included))
        for file in filter(None, map(files.get_file_from_path, no_pages(*self._persona))):
            files.remove(file)
        for file in files.documentation_pages():
            outside = self._selection.outside
            if file.src_uri not in outside and plugin_api.leaves(file.abs_src_path, file.src_dir):
                outside.add(file.src_uri)
                log.warning(f"{file.src_uri} is a link out of its folder, so it is not indexed: put the file there.")

    # Before the search plugins of core and Material: the latter strips `data-search-exclude` from the content.
    @event_priority(100)
    def on_page_context(self, context: object, *, page: BuiltPage, config: MkDocsConfig, nav: object) -> None:
        if not self.config.enabled:
            return
        file, content = page.file, page.content or ""
        excluded = file.inclusion.is_excluded()
        if not excluded and self._selection.takes(file.src_uri, file.dest_uri, page.meta, content):
            # A fallback of a page that isn't translated comes again for each language: the first one counts.
            self._sources.setdefault(file.src_uri, _source(page, config))
        try:
            # Behind what is indexed, and inside of what a theme's instant navigation takes along.
            page.content = content + plugin_api.starters(page.meta)
            plugin_api.require_content_type(page.meta)
        except ConfigurationError as error:
            log.warning(f"{file.src_uri}: {error}")

    # After a plugin that builds further languages in this event.
    @event_priority(-100)
    def on_post_build(self, config: MkDocsConfig) -> None:
        self._whole = True
        if self.config.enabled and self._preview is not None:
            # Beside the preview and not before it: a writer wants the page at once.
            self._preview.submit(partial(self._index, list(self._sources.values()), config))

    def on_build_error(self, *, error: Exception) -> None:
        self._whole = False

    def on_shutdown(self) -> None:
        if self._preview is not None:
            self._preview.stop()
        # Ctrl-C is no build error, so nothing but the end of a build tells that every page was seen.
        if self._build is None or not self._whole or self._dirty or self._serving:
            return
        if self._settings.may_publish:
            self._index(list(self._sources.values()), self._build)
        elif self._settings.publish is not False:
            log.info(f"Nothing was indexed: {plugin_api.withheld(self._settings)}")

    def _read(self, config: MkDocsConfig) -> None:
        chosen = {k: self.config[k] for k in ("publish", "endpoint", "store", "embedder", "site", "persona")}
        root, docs = Path(config.config_file_path or ".").resolve().parent, Path(config.docs_dir)
        version = os.environ.get("MIKE_DOCS_VERSION")
        try:
            self._settings = plugin_api.settings(root, config.site_name, version, preview=self._serving, **chosen)
            self._persona = find_persona(self._settings.persona, docs, root), docs
            self._widget = plugin_api.widget(self.config.widget)
        except ConfigurationError as error:
            raise PluginError(f"chapterverse: {error}") from error

    def _index(self, sources: list[Source], config: MkDocsConfig) -> None:
        try:
            site = self._settings, config.site_url, self.config.chunk_tokens
            done = plugin_api.index(sources, *site, *self._persona, listings=self._selection.listings)
        # Whatever it is, the docs were built: only `strict` lets a failure to index fail them.
        except Exception as error:
            if self.config.strict and not self._serving:
                raise PluginError(f"chapterverse: {plugin_api.explained(error)}") from error
            log.warning(f"The index was not updated: {plugin_api.explained(error)}")
            log.debug("The index was not updated", exc_info=True)
            return
        for warning in done.warnings:
            log.warning(warning)
        for line in done.listing_lines():
            log.info(line)
        log.info(f"Indexed {done}")


def _source(page: BuiltPage, config: MkDocsConfig) -> Source:
    return plugin_api.source(
        page.file.src_uri,
        page.canonical_url or "",
        # MkDocs takes a title from a heading as HTML, and one from the navigation as text.
        html.unescape(str(page.title or page.file.name)),
        page.content or "",
        **plugin_api.stated(page.meta, config.theme, page.file.dest_uri, page.content or ""),
    )
