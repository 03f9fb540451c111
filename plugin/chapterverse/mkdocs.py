"""The plugin for MkDocs and ProperDocs: collects pages while they are built, indexes them when the build was clean.

Pages are read in `on_page_context`, where `page.content` is final (cross-references are resolved there and not before)
but not yet wrapped in the theme, and before any other plugin of that event. The index is published in `on_shutdown`,
since `--strict` fails a build after `on_post_build`; a dirty or failed build publishes nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from mkdocs.config import config_options as c
from mkdocs.config.base import Config
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page as BuiltPage
from mkdocs.utils.templates import TemplateContext
from pathspec import PathSpec

from chapterverse import __version__, progress, serving, sync
from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.model import Page, Scope, Source, slug, stated_date
from chapterverse.readers.html import read_fragment
from chapterverse.settings import DEFAULT_STORE, Settings
from chapterverse.widget import assets

log = get_plugin_logger(__name__)

_ASSETS = f"assets/chapterverse/{__version__}"


class WidgetConfig(Config):
    """What the reader sees of the chat."""

    title = c.Type(str, default="Ask the docs")
    """Heading of the panel and label of its button."""
    greeting = c.Type(str, default="")
    """First line of an empty conversation; empty takes the widget's own."""
    placeholder = c.Type(str, default="")
    """Text in the empty question field; empty takes the widget's own."""
    starters = c.ListOfItems(c.Type(str), default=[])
    """Questions offered in an empty conversation."""


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
    """Where the index lives: `edge:PATH`, relative to this file."""
    embedder = c.Optional(c.Type(str))
    """What makes dense vectors: `none`, `cohere[:MODEL]` or `fastembed:MODEL-or-PATH`."""
    site = c.Optional(c.Type(str))
    """Name of the site's index; unset takes it from `site_name`."""
    chunk_tokens = c.Type(int, default=256)
    """Size that chunks are packed to, in cl100k tokens; the cap is 512."""
    exclude = c.ListOfItems(c.Type(str), default=[])
    """Pages not to index, as patterns in the style of .gitignore on paths below `docs_dir`."""
    widget = c.SubConfig(WidgetConfig)
    """What the reader sees of the chat."""


class ChapterVersePlugin(BasePlugin[ChapterVerseConfig]):
    """Hooks in the order of a build. Having the first and the last of them keeps this object across rebuilds."""

    def on_startup(self, *, command: Literal["build", "gh-deploy", "serve"], dirty: bool) -> None:
        self._serving = command == "serve"
        self._clean = not dirty
        self._build: MkDocsConfig | None = None
        self._sources: dict[str, Source] = {}
        self._outside: set[str] = set()
        self._preview: serving.Preview | None = None

    def on_config(self, config: MkDocsConfig) -> None:
        if not self.config.enabled:
            return
        # A plugin for translations builds each language with this same object; a rebuild of `serve` brings a new one.
        if config is not self._build:
            self._build, self._sources = config, {}
            self._outside.clear()
        # `serve --clean` calls itself a build, but its address gives it away.
        self._serving = self._serving or urlsplit(config.site_url or "").netloc == str(config.dev_addr)
        self._settings = _settings(self.config, config, serving=self._serving)
        if self._serving and self._preview is None:
            self._preview = serving.Preview.start(self._settings, str(config.dev_addr), log.info)
        launcher = c.ExtraScriptValue(f"{_ASSETS}/launcher.js")
        launcher.type = "module"
        if str(launcher) not in map(str, config.extra_javascript):
            config.extra_javascript.append(launcher)

    def on_files(self, files: Files, config: MkDocsConfig) -> None:
        if not self.config.enabled:
            return
        endpoint = self._preview.address if self._preview else self._settings.endpoint
        for name, content in assets({**self.config.widget, "endpoint": endpoint}).items():
            files.append(File.generated(config, f"{_ASSETS}/{name}", content=content))
        for file in files.documentation_pages():
            if _leaves(file) and file.src_uri not in self._outside:
                self._outside.add(file.src_uri)
                log.warning(
                    f"{file.src_uri} is a link out of its folder and is not indexed: put the file itself there."
                )

    # Before the search plugins of core and Material: the latter strips `data-search-exclude` from the content.
    @event_priority(100)
    def on_page_context(self, context: TemplateContext, *, page: BuiltPage, config: MkDocsConfig, nav: object) -> None:
        if self.config.enabled and not self._excluded(page):
            # A fallback of a page that isn't translated comes again for each language: the first one counts.
            self._sources.setdefault(page.file.src_uri, _source(page, config))

    # After a plugin that builds further languages in this event.
    @event_priority(-100)
    def on_post_build(self, config: MkDocsConfig) -> None:
        if self.config.enabled and self._preview is not None:
            # Beside the preview and not before it: a writer wants the page at once.
            self._preview.submit(partial(self._index, list(self._sources.values()), config))

    def on_build_error(self, *, error: Exception) -> None:
        self._clean = False

    def on_shutdown(self) -> None:
        if self._preview is not None:
            self._preview.stop()
        if self._build is not None and not self._serving and self._clean and self._settings.may_publish:
            self._index(list(self._sources.values()), self._build)

    def _excluded(self, page: BuiltPage) -> bool:
        """Whether the author keeps the page out of search, out of our index, or out of the site."""
        search, own = (page.meta.get(k) or {} for k in ("search", "chapterverse"))
        opted_out = any(isinstance(m, dict) and m.get("exclude") for m in (search, own))
        path = page.file.src_uri
        matched = PathSpec.from_lines("gitwildmatch", self.config.exclude).match_file(path)
        return opted_out or matched or path in self._outside or page.file.inclusion.is_excluded()

    def _index(self, sources: list[Source], config: MkDocsConfig) -> None:
        try:
            if not config.site_url:
                raise ConfigurationError("site_url is not set in mkdocs.yml, so a citation would have no address.")
            scope = Scope(self.config.site or slug(config.site_name), self._settings.docs_version or "")
            target = sync.Target.open(self._settings, scope, config.site_url, self.config.chunk_tokens)
            with progress.bar() as report:
                done = sync.index(sources, target, report)
        except ChapterVerseError as error:
            if self.config.strict and not self._serving:
                raise PluginError(f"chapterverse: {error}") from error
            log.warning(f"The index was not updated: {error}")
            return
        for warning in done.warnings:
            log.warning(warning)
        log.info(f"Indexed {done}")


def _settings(own: ChapterVerseConfig, config: MkDocsConfig, *, serving: bool) -> Settings:
    """Return the environment's settings with the options of mkdocs.yml over them; paths are relative to that file."""
    chosen = {k: own[k] for k in ("publish", "endpoint", "store", "embedder")}
    version = os.environ.get("MIKE_DOCS_VERSION")
    settings = Settings.from_environment(**chosen, docs_version=version)
    if serving:
        # A preview holds drafts and local addresses: it never touches the published index.
        settings = settings.override(store=f"{DEFAULT_STORE}/preview", ledger="")
    return settings.resolved(Path(config.config_file_path or ".").resolve().parent)


def _leaves(file: File) -> bool:
    """Whether the file's real path is outside the folder it was listed in; a generated file has none."""
    if file.abs_src_path is None or file.src_dir is None:
        return False
    return not Path(file.abs_src_path).resolve().is_relative_to(Path(file.src_dir).resolve())


def _source(page: BuiltPage, config: MkDocsConfig) -> Source:
    html, url, title = page.content or "", page.canonical_url or "", str(page.title or page.file.name)
    own = page.meta.get("chapterverse")
    about: dict[str, Any] = {
        "language": str(config.theme.get("language") or config.theme.get("locale") or "en"),
        "content_type": str(own.get("content_type", "documentation")) if isinstance(own, dict) else "documentation",
        "tags": [str(t) for t in page.meta.get("tags") or []],
        "created_at": stated_date(page.meta.get("date")),
    }

    def read() -> Page:
        tags = tuple(about["tags"])
        return Page(page.file.src_uri, url, title, sections=read_fragment(html, title), **{**about, "tags": tags})

    context = json.dumps([url, title, about], ensure_ascii=False, sort_keys=True)
    return Source(page.file.src_uri, hashlib.sha256(html.encode()).hexdigest(), context, read)
