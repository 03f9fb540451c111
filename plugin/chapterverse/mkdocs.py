"""The plugin for MkDocs and ProperDocs: marks pages during a build, indexes them after a clean one.

`on_page_context` marks where a page's content begins and ends. After the build the pages are read as they were written,
as other plugins change them later. `on_shutdown` publishes, because `--strict` fails a build after `on_post_build`."""

from __future__ import annotations

import html
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

from mkdocs.config import config_options as c
from mkdocs.config.base import Config, ConfigErrors, ConfigWarnings, ValidationError
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page as MkDocsPage

from chapterverse.errors import ConfigurationError
from chapterverse.indexing import index_run
from chapterverse.indexing.additions import find_documents
from chapterverse.indexing.options import complete, explain_unknown_options
from chapterverse.local_server import Preview
from chapterverse.model import TARGET_CHUNK_TOKENS, stated_date
from chapterverse.page_kinds import EXCLUDED, OPTED_OUT, known_content_type, unknown_content_type
from chapterverse.project import leads_out
from chapterverse.readers.folder import PageGlobs
from chapterverse.readers.front_matter import tag_values, text_value
from chapterverse.readers.html.dom import apply_edits
from chapterverse.readers.html.page_mark import PageMark, mark_content, seal
from chapterverse.readers.marked_pages import hold_changed, read_marked_pages
from chapterverse.readers.site_pages import SitePages
from chapterverse.readers.urls import clean_base
from chapterverse.site import delivery, overview, starters
from chapterverse.site.agent_files import AgentFiles
from chapterverse.widget.bundle import assets

log = get_plugin_logger(__name__)
#: Later than MkDocs' own examples of a low priority, which are -50 and -100, and what plugins take as last.
_LAST = -1000


class ChapterVerseConfig(Config):
    """The options under `plugins: - chapterverse:`; the variable of one that is a setting overrides it."""

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
    chunk_tokens = c.Type(int, default=TARGET_CHUNK_TOKENS)
    """Size that chunks are packed to, in cl100k tokens, up to `model.MAX_CHUNK_TOKENS`."""
    exclude = c.ListOfItems(c.Type(str), default=[])
    """Pages not to index, as patterns in the style of .gitignore on paths below `docs_dir`."""
    include = c.ListOfItems(c.Type(str), default=[])
    """Listings, archives and search pages to index all the same, as patterns like those of `exclude`."""
    also = c.Type(list, default=[])
    """Sources beyond the site: files, addresses and sitemaps, see `ext.sources.entries.ExternalEntry`."""
    agents = c.Type((bool, dict), default=True)
    """Files for agents: all, none, or a switch for each, see `site.overview.AgentOptions`."""
    report = c.Optional(c.Type(bool))
    """Whether readers' questions are asked again after each build that changes the index."""
    widget = c.Type(dict, default={})
    """Options of the chat, see `widget.options.WidgetOptions`."""

    def validate(self) -> tuple[ConfigErrors, ConfigWarnings]:
        failed, warnings = super().validate()
        unknown = explain_unknown_options(self, self._schema_keys)  # MkDocs only warns of them
        failed += [(name, ValidationError(sentence)) for name, sentence in unknown.items()]
        return failed, [(name, warning) for name, warning in warnings if name not in unknown]


@dataclass(slots=True)
class BuildPages:
    """The pages of a build, which is given each once for every language.

    Attributes:
        base: address of the site, with a slash at its end; "" if it has none.
        globs: the pages that the site's configuration leaves out and keeps.
        documents: paths of files that the index has as documents beside the pages.
        paths: source of each page to index by the path of the built page, relative to the site.
        outside: pages whose files are links out of the project.
        excluded: why other pages are not indexed, by source.
        first_built: the first built page of each source.
    """

    base: str
    globs: PageGlobs
    documents: frozenset[str]
    paths: dict[str, str] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    excluded: dict[str, str] = field(default_factory=dict)
    first_built: dict[str, str] = field(default_factory=dict)

    def shut_out(self, path: str, file: str | None, folder: str | None) -> bool:
        """Leave a page out whose file is a link out of the project. Return whether it is one that was not known yet.

        A generated page has no file.
        """
        if path in self.outside or file is None or folder is None or not leads_out(file, folder):
            return False
        self.outside.add(path)
        return True

    def mark(
        self, path: str, built_path: str, title: str, language: str, meta: Mapping[str, Any], *, is_draft: bool
    ) -> PageMark:
        """Note a page that the build writes, and return its mark.

        Args:
            path: of its source.
            built_path: of the built page, relative to the site.
            meta: its front matter.
            is_draft: only a preview shows it.
        """
        # A translation plugin builds an untranslated page once for each language; the first one counts.
        is_first = self.first_built.setdefault(path, built_path) == built_path
        reason = self._reason_to_exclude(path, built_path, meta, is_draft=is_draft)
        if reason:
            self.excluded[path] = reason
        elif is_first:
            self.paths[built_path] = path
        else:
            reason = "in place of a translation"
        return PageMark(
            path=path,
            built=built_path,
            base=self.base,
            title=title,
            language=language,
            include=self.globs.includes(path, built_path),
            exclude=reason,
            description=text_value(meta.get("description")),
            tags=tag_values(meta.get("tags")),
            date=stated_date(meta.get("date")) or "",
            type=known_content_type(_own_part(meta).get("content_type")),
            template=text_value(meta.get("template")),
        )

    def _reason_to_exclude(self, path: str, built_path: str, meta: Mapping[str, Any], *, is_draft: bool) -> str:
        """Return why a page is not indexed, "" if it is."""
        if is_draft:
            return "draft"
        if any(isinstance(m, dict) and m.get("exclude") for m in map(meta.get, ("search", "chapterverse"))):
            return OPTED_OUT
        if path in self.outside:
            return "a link out of the project"
        if path in self.documents:
            return "knowledge"
        return EXCLUDED if self.globs.excludes(path, built_path) else ""


class ChapterVersePlugin(BasePlugin[ChapterVerseConfig]):
    """The hooks in the order of a build. With the first and the last MkDocs keeps this object across rebuilds, and a
    translation plugin builds each further language inside the build of the first one."""

    _serving, _dirty, _depth = False, False, 0
    _pages = BuildPages("", PageGlobs.of(), frozenset())
    _site_pages: SitePages | None = None
    _preview: Preview | None = None
    _known: frozenset[tuple[str, str, str]] = frozenset()

    def on_startup(self, *, command: str, dirty: bool) -> None:
        self._serving, self._dirty = command == "serve", dirty

    def on_config(self, config: MkDocsConfig) -> None:
        if self._depth:
            return
        self._serving = self._serving or _is_preview(config.site_dir, config.site_url, str(config.dev_addr))
        root, tell = Path(config.config_file_path or ".").resolve().parent, log.debug if self._preview else log.info
        try:
            options = self._options = complete(self.config.user_configs[-1], root, "mkdocs.yml", tell, config.site_url)
            self._settings = options.settings(root, config.site_name, _docs_version(), preview=self._serving)
            self._documents = find_documents(self._settings, Path(config.docs_dir), root)
            self._widget, self._agent_options = options.widget_options(), overview.AgentOptions.of(options.agents)
        except ConfigurationError as error:
            raise PluginError(f"chapterverse: {error}") from error

    # Other plugins may change the site's address in `on_config`. After this event MkDocs removes the last build.
    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        self._depth += 1
        if self._depth > 1:
            return
        self._site_pages, self._strict = None, self._options.strict or config.strict
        mike, address = config.plugins.get("mike"), config.site_url or self._settings.base_url
        self._base = _site_address(address, mike.config.get("canonical_version") if mike else None)
        globs = PageGlobs.of(include=self._options.include, exclude=self._options.exclude)
        paths = {**self._pages.paths} if self._dirty else {}  # a dirty build writes again only what changed
        self._pages = BuildPages(self._base, globs, self._documents.entries, paths)
        about = self._settings, config.site_name, self._base, config.site_description or ""
        self._agents = AgentFiles.open(config.site_dir, self._agent_options, *about, keep=self._settings.may_publish)
        # Now, because `--strict` counts warnings until the site is written.
        for problem in [] if self._serving else index_run.list_problems(self._settings, self._base):
            log.warning(problem)
        if self._serving and self._preview is None:
            self._preview = Preview.start(self._settings, str(config.dev_addr), log.info)

    # After static-i18n, which fails on a file without a source.
    @event_priority(-110)
    def on_files(self, files: Files, config: MkDocsConfig) -> None:
        endpoint = (self._preview.address if self._preview else self._settings.endpoint) or None
        chosen = {"endpoint": endpoint, "version": self._settings.docs_version, "site": config.site_name}
        widget = assets(
            chosen | self._widget | starters.BUILD_OPTION, _theme_language(config.theme), self._agents.cache
        )
        folder, included = delivery.build_folder(widget), InclusionLevel.INCLUDED  # even if `exclude_docs` matches
        for name, content in widget.items():
            files.append(File.generated(config, f"{folder}/{name}", content=content, inclusion=included))
        questions = starters.module(self._settings, self._base)  # of the last index, as `gh-deploy` doesn't wait
        files.append(File.generated(config, starters.PATH, content=questions, inclusion=included))
        launcher = c.ExtraScriptValue(f"{folder}/launcher.js")
        launcher.type = "module"
        # In place of the launcher of another language, which was built with this same configuration.
        config.extra_javascript[:] = [*(s for s in config.extra_javascript if not delivery.is_ours(str(s))), launcher]
        for file in filter(None, map(files.get_file_from_path, self._documents.hidden_paths(config.nav))):
            files.remove(file)
        for file in files.documentation_pages():
            if self._pages.shut_out(file.src_uri, file.abs_src_path, file.src_dir):
                log.warning(f"{file.src_uri} is a link out of the project, so it is not indexed: put the file there.")

    # Before the search plugins of MkDocs and Material: the latter strips `data-search-exclude` from the content.
    @event_priority(100)
    def on_page_context(self, context: object, *, page: MkDocsPage, config: MkDocsConfig, nav: object) -> None:
        # MkDocs takes titles from headings as HTML, and from the navigation as text.
        title, language = html.unescape(text_value(page.title) or page.file.name), _theme_language(config.theme)
        place, is_draft = (page.file.src_uri, page.file.dest_uri), page.file.inclusion.is_excluded()
        mark = self._pages.mark(*place, title, language, page.meta, is_draft=is_draft)
        # Inside what a theme's instant navigation replaces.
        page.content = mark_content(page.content or "", mark)
        try:
            page.content += _render_starters(page.meta)
        except ConfigurationError as error:
            log.warning(f"{mark.path}: {error}")

    # After any plugin that minifies or encrypts the page.
    @event_priority(_LAST)
    def on_post_page(self, output: str, *, page: MkDocsPage, config: object) -> str:
        path = page.file.dest_uri
        links = self._agents.link(path, output) if path in self._pages.paths and not self._dirty else []
        return apply_edits(output, seal(output) + links)

    @event_priority(_LAST)
    def on_post_build(self, config: MkDocsConfig) -> None:
        self._depth -= 1
        if self._depth or (self._dirty and not self._serving):
            return
        out, built, agents = Path(config.site_dir), self._pages, self._agents
        self._site_pages = read_marked_pages(
            out, built.paths, built.excluded, self._base, agents.cache, agents.add_marked
        )
        if not self._dirty:
            agents.finish().log(log)
        if self._preview is not None:
            # Parsed later, as the writer wants the page at once; the next rebuild removes these files.
            self._known, pages = hold_changed(self._site_pages, self._known)
            self._preview.submit(partial(self._index, pages))

    def on_build_error(self, *, error: Exception) -> None:
        self._depth, self._site_pages = 0, None

    def on_shutdown(self) -> None:
        if self._preview is not None:
            self._preview.stop()
        # Ctrl-C raises no build error, so only the end of `on_post_build` proves that every page was seen.
        if self._site_pages is None or self._serving:
            return
        if index_run.is_to_index(self._settings, self._base, log, strict=self._strict):
            self._index(self._site_pages)

    def _index(self, pages: SitePages) -> None:
        site = index_run.Site(pages, self._documents, self._settings, self._options.chunk_tokens)
        update = partial(index_run.update_index, site, log)
        if error := index_run.try_to_index(update, log, self._strict and not self._serving):
            raise PluginError(f"chapterverse: {index_run.explain_error(error)}")
        starters.write(self._agents.site / starters.PATH, self._settings, self._base)


def _is_preview(site_dir: str, site_url: str | None, address: str) -> bool:
    """Whether a live preview is being built: into a temporary folder, for the preview server's own address."""
    temporary = Path(site_dir).parent == Path(tempfile.gettempdir())
    return temporary and urlsplit(site_url or "").netloc == address


def _docs_version() -> str | None:
    """Return the docs version that mike is deploying, None without one."""
    return os.environ.get("MIKE_DOCS_VERSION")


def _site_address(site_url: str | None, canonical_version: str | None) -> str:
    """Return the address of the site that is being built, with a slash at its end; "" if it has none.

    Args:
        site_url: as other plugins left it. With a canonical version mike puts that one in place of the version that it
            deploys, so that search engines prefer it.
        canonical_version: of mike's configuration.
    """
    address, version = site_url or "", _docs_version()
    if address and version and canonical_version:
        address = urljoin(address.rstrip("/"), version)
    return clean_base(address) or ""


def _theme_language(theme: Mapping[str, Any]) -> str:
    """Return the language of the theme's interface, as a BCP 47 tag."""
    return str(theme.get("language") or theme.get("locale") or "en").replace("_", "-")


def _own_part(meta: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a page's front matter says to us."""
    own = meta.get("chapterverse")
    return own if isinstance(own, dict) else {}


def _render_starters(meta: Mapping[str, Any]) -> str:
    """Return a hidden HTML element with the starter questions of a page's front matter, "" if it has none.

    Raises:
        ConfigurationError: they are not a list of questions, or it states an unknown content type.
    """
    own = _own_part(meta)
    content_type = own.get("content_type")
    if content_type is not None and not known_content_type(content_type):
        raise ConfigurationError(unknown_content_type(content_type))
    if own.get("starters") is None:
        return ""
    from chapterverse.widget.options import starters_element

    return starters_element(own["starters"], "chapterverse.")
