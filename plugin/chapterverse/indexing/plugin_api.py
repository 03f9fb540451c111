"""The interface for plugins of documentation generators: collect pages during a build, index them after a clean one.

Readers and `sync` are imported inside functions, so a build that changes nothing doesn't load them.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from chapterverse.errors import ChapterVerseError, ConfigurationError
from chapterverse.external_entries import entries
from chapterverse.knowledge.folder import Documents
from chapterverse.model import Page, Scope, Source, slug, stated_date
from chapterverse.page_globs import PageGlobs
from chapterverse.page_kinds import PageFacts, content_type, known_content_type, listing_kind, unknown_content_type
from chapterverse.settings import DEFAULT_STORE, Settings, document_options
from chapterverse.widget.endpoint import clean_endpoint

#: The attribute of the mark that `marked` puts at the end of a page's content.
READ_MARK = "data-chapterverse-read"
#: Options of a plugin that override a setting of the same name.
SETTINGS = ("publish", "endpoint", "store", "embedder", "site", "persona", "knowledge", "documents", "also")
_EXCLUDED = re.compile(r"(<[a-zA-Z][^<>]*?\s)(data-search-exclude(?=[\s=/>]))")

if TYPE_CHECKING:
    from chapterverse.indexing.report import Report
    from chapterverse.readers import Reading


class Log(Protocol):
    """The messages of a build by their level."""

    def info(self, message: str, /) -> None: ...
    def warning(self, message: str, /) -> None: ...
    def debug(self, message: str, /, *, exc_info: bool) -> None: ...


def source(file_path: str, url: str, title: str, html: str, tags: Iterable[str] = (), **about: str | None) -> Source:
    """Return a page as a source of the index.

    Args:
        html: the rendered content without the theme; parsed only if it changed.
        about: further fields of `model.Page`.
    """

    def read() -> Page:
        from chapterverse.readers.html import read_fragment
        from chapterverse.readers.structured_data import read_structured_data

        fields: dict[str, Any] = {**about, "tags": tuple(tags), "structured_data": read_structured_data(html)}
        return Page(file_path, url, title, sections=read_fragment(html, title), **fields)

    context = json.dumps([url, title, [*tags], about], ensure_ascii=False, sort_keys=True)
    content_hash = hashlib.sha256(html.encode()).hexdigest()
    return Source(file_path, content_hash, context, read, url=url, language=about.get("language") or "")


@dataclass(slots=True)
class PageCollection:
    """The pages of a build that are to be indexed.

    Attributes:
        globs: the pages that the site's configuration leaves out and keeps.
        documents: paths of files that the index has as documents beside the pages.
        outside: pages whose files are links out of their folder.
        sources: the collected pages by path.
        left_out: a reason for each page that is not indexed although no setting excludes it: one of
            `page_kinds.LISTINGS`, or that its text is not shown.
    """

    globs: PageGlobs
    documents: frozenset[str] = frozenset()
    outside: set[str] = field(default_factory=set)
    sources: dict[str, Source] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, exclude: Iterable[str], include: Iterable[str], documents: frozenset[str] = frozenset()
    ) -> PageCollection:
        """Return an empty collection by .gitignore patterns."""
        return cls(PageGlobs.of(exclude, include), documents)

    def shut_out(self, path: str, file: str | None, folder: str | None) -> bool:
        """Leave a page out whose file is a link out of its folder. Return whether it is one that was not known yet."""
        if path in self.outside or not _leaves(file, folder):
            return False
        self.outside.add(path)
        return True

    def takes(self, path: str, address: str, meta: Mapping[str, Any], html: str) -> bool:
        """Return whether a page is indexed: its author didn't opt out, and it is no listing.

        Args:
            path: of its source.
            address: of the built page, relative to the site.
        """
        opted_out = any(isinstance(m, dict) and m.get("exclude") for m in map(meta.get, ("search", "chapterverse")))
        if opted_out or path in self.outside or path in self.documents or self.globs.excludes(path, address):
            return False
        kind = listing_kind(_facts(address, meta, html))
        if kind and not self.globs.includes(path, address):
            self.left_out[path] = kind
        return path not in self.left_out

    def add(self, source: Source) -> str:
        """Collect a page and return its content hash, "" if the path was collected before."""
        # The fallback of an untranslated page comes once for each language; the first one counts.
        return source.content_hash if self.sources.setdefault(source.file_path, source) is source else ""

    def confirm(self, path: str, content: str, page: str) -> bool:
        """Return whether a page is indexed. Give it up if it doesn't show its content, which a plugin may encrypt.

        JSON-LD that the theme wrote around the content counts as the page's.

        Args:
            content: of the page, as `marked` returns it.
            page: HTML of the whole page.
        """
        source = self.sources.get(path)
        if not source or source.content_hash not in content:
            return False
        if source.content_hash not in page:
            del self.sources[path]
            self.left_out[path] = "its page doesn't show its text"
        elif "ld+json" in page:
            self.sources[path] = _with_structured_data(source, page)
        return path in self.sources


def _with_structured_data(source: Source, html: str) -> Source:
    """Return a source with the JSON-LD of its whole page."""
    from chapterverse.readers.structured_data import read_structured_data

    data = read_structured_data(html)

    def read() -> Page:
        return replace(source.read(), structured_data=data)

    return replace(source, context=json.dumps([source.context, data]), read=read) if data else source


def stated(meta: Mapping[str, Any], theme: Mapping[str, Any], address: str, html: str) -> dict[str, Any]:
    """Return the keyword arguments for `source` that a page's front matter and the theme state."""
    tags = meta.get("tags")
    return {
        "tags": [str(tag) for tag in tags] if isinstance(tags, list) else [],
        "language": language(theme),
        "content_type": content_type(_facts(address, meta, html, language(theme)), _stated_type(meta)),
        "created_at": stated_date(meta.get("date")),
    }


def _require_content_type(meta: Mapping[str, Any]) -> None:
    own = _stated_type(meta)
    if own is not None and not known_content_type(own):
        raise ConfigurationError(unknown_content_type(own))


def _stated_type(meta: Mapping[str, Any]) -> object:
    own = meta.get("chapterverse")
    return own.get("content_type") if isinstance(own, dict) else None


def _facts(address: str, meta: Mapping[str, Any], html: str, language: str = "") -> PageFacts:
    return PageFacts(address, str(meta.get("template") or ""), html, language)


def language(theme: Mapping[str, Any]) -> str:
    """Return the language of the theme's interface, as a BCP 47 tag."""
    return str(theme.get("language") or theme.get("locale") or "en").replace("_", "-")


def widget(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the widget options of a site's configuration, as `widget.assets` takes them.

    Raises:
        ConfigurationError: an option is unknown or has an invalid value.
    """
    if not given:
        return {}
    from chapterverse.widget.options import read_options

    return read_options(given, "widget.").config()


def marked(html: str, content_hash: str) -> str:
    """Return a page's content with marks around the parts that the index read, for `check` and for readers of the page.

    A hidden element at the end has the content's hash; text that a theme adds behind it is no part of the page.
    Excluded elements get a mark of ours, because Material's search strips its own.

    Args:
        content_hash: of the page's source; "" for a page that is left out.
    """
    kept = _EXCLUDED.sub(r"\1data-chapterverse-exclude \2", html) if "data-search-exclude" in html else html
    return f'{kept}<div hidden {READ_MARK}="{content_hash}"></div>'


def page_content(html: str, content_hash: str, meta: Mapping[str, Any], path: str, log: Log) -> str:
    """Return a page's content with our marks (see `marked`) and its starter questions; warn of a wrong `meta`."""
    content = marked(html, content_hash)
    try:
        content += starters(meta)
    except ConfigurationError as error:
        log.warning(f"{path}: {error}")
    return content


def starters(meta: Mapping[str, Any]) -> str:
    """Return a hidden HTML element with the starter questions of a page's front matter, "" if it has none.

    Raises:
        ConfigurationError: they are not a list of questions, or it states an unknown content type.
    """
    _require_content_type(meta)
    own = meta.get("chapterverse")
    if not isinstance(own, dict) or own.get("starters") is None:
        return ""
    from chapterverse.widget.options import starters_element

    return starters_element(own["starters"], "chapterverse.")


def settings(root: Path, site_name: str, version: str | None, *, preview: bool, **chosen: Any) -> Settings:
    """Return the environment's settings, overridden by the options of a site's configuration.

    Args:
        root: the folder that relative paths are resolved against.
        chosen: options by name; None leaves an option to the environment.

    Raises:
        ConfigurationError: a variable can't be read, the endpoint is no address, or an option of `documents` or `also`
            is invalid.
    """
    documents = document_options(chosen.pop("documents", {}))
    chosen["also"] = entries(chosen.get("also") or (), root)
    settings = Settings.from_environment(**chosen, **documents, docs_version=version)
    endpoint = clean_endpoint(settings.endpoint) if settings.endpoint else None
    settings = settings.override(site=settings.site or slug(site_name), endpoint=endpoint)
    if preview:
        # A preview contains drafts and local addresses, so it writes its own index and cites itself.
        version = settings.docs_version or ""
        settings = settings.override(store=f"{DEFAULT_STORE}/preview", ledger="", base_url="", docs_version=version)
    return settings.resolved(root)


def no_address(name: str = "site_url") -> str:
    """Return the sentence about a site without an address, given the generator's setting for it."""
    return f"{name} is not set, so a citation would have no address and nothing is indexed."


def problems(settings: Settings, site_url: str | None, name: str = "site_url") -> list[str]:
    """Return a sentence for each setting that is missing in a build that will be published.

    Args:
        name: the generator's setting for the site's address.
    """
    sentences = []
    if not settings.endpoint:
        sentences.append(
            "endpoint is not set, so the chat of the published site has no API to ask: name its address, or set "
            "`endpoint: /` if it is at the site's own origin."
        )
    if settings.may_publish and not site_url:
        sentences.append(no_address(name))
    return sentences


def unknown_options(given: Iterable[object], known: Collection[str]) -> dict[str, str]:
    """Return a sentence for each unknown option, by its name."""
    unknown = sorted(name for name in map(str, given) if name not in known)
    nearest = {name: difflib.get_close_matches(name, known, 1, 0)[0] for name in unknown}
    return {name: f"There is no option {name[:60]!a}: the nearest is {nearest[name]}." for name in unknown}


def is_preview(site_dir: str, site_url: str | None, address: str) -> bool:
    """Whether a live preview is being built: into a temporary folder, for the preview server's own address."""
    temporary = Path(site_dir).parent == Path(tempfile.gettempdir())
    return temporary and urlsplit(site_url or "").netloc == address


def _leaves(path: str | None, folder: str | None) -> bool:
    """Whether a file's real path is outside its folder. False for a generated file, which has neither."""
    if path is None or folder is None:
        return False
    return not Path(path).resolve().is_relative_to(Path(folder).resolve())


def index_reading(reading: Reading, settings: Settings, chunk_tokens: int, documents: Documents, log: Log) -> None:
    """Make the index hold exactly the pages of a folder and the documents beside. Raises as `update_index`."""
    for warning in reading.warnings:
        log.warning(warning)
    pages = PageCollection.of((), ())
    pages.sources = {source.file_path: source for source in reading.sources}
    pages.left_out = dict(reading.listings)
    update_index(pages, settings, reading.base_url, chunk_tokens, documents, log)


def update_index(
    pages: PageCollection,
    settings: Settings,
    base_url: str | None,
    chunk_tokens: int,
    documents: Documents,
    log: Log,
) -> None:
    """Make the index hold exactly these pages, the documents and the sources beyond the site, and log the result.

    Raises:
        ConfigurationError: the site has no address, or an option is invalid.
        ChapterVerseError: as in `sync.index`; the index stays as it was.
    """
    own = [*pages.sources.values()]
    sources, warnings = documents.sources(own, base_url) if base_url else ([], [])
    keep = None
    if settings.also and base_url:
        from chapterverse.indexing.external_sources import collect

        external = collect(settings, own, base_url, documents.docs)
        sources, warnings, keep = sources + external.sources, warnings + external.warnings, external.keep
    for warning in warnings:
        log.warning(warning)
    done = index([*own, *sources], settings, base_url, chunk_tokens, keep).after((), 0, pages.left_out)
    for warning in done.warnings:
        log.warning(warning)
    for line in done.listing_lines():
        log.info(line)
    log.info(f"Indexed {done}")


def try_to_index(update: Callable[[], None], log: Log, strict: bool, prefix: str = "") -> Exception | None:
    """Update the index, and return the error that is to fail the build.

    The docs are built already, so a failure to index fails the build only if `strict`; else it is logged.

    Args:
        prefix: of the warning, where the log doesn't say whose it is.
    """
    try:
        update()
    except Exception as error:
        if strict:
            return error
        log.warning(f"{prefix}The index was not updated: {explained(error)}")
        log.debug(f"{prefix}The index was not updated", exc_info=True)
    return None


def index(
    sources: Iterable[Source],
    settings: Settings,
    base_url: str | None,
    chunk_tokens: int,
    keep: Callable[[str], bool] | None = None,
) -> Report:
    """Make the index hold exactly these sources and what `keep` keeps. Raises as `update_index`."""
    from chapterverse import progress
    from chapterverse.indexing import publish_policy, sync
    from chapterverse.indexing.reading import keep_none
    from chapterverse.indexing.target import Target

    publish_policy.check(settings)
    if not base_url:
        raise ConfigurationError(no_address())
    scope = Scope(settings.site, settings.docs_version or "")
    warnings: list[str] = []
    if settings.secrets_arn:
        from chapterverse.net.aws.secrets import resolved

        settings = resolved(settings, warnings.append)
    target = Target.open(settings, scope, base_url, chunk_tokens)
    with contextlib.ExitStack() as stack:
        bars: list[progress.Progress] = []

        def report(stage: str, done: int, total: int) -> None:
            # Open the bar on first use: loading it takes longer than a build without changes.
            if not bars:
                bars.append(stack.enter_context(progress.bar()))
            bars[0](stage, done, total)

        done = sync.index(sources, target, report, keep or keep_none)
        return replace(done, warnings=(*warnings, *done.warnings))


def withheld(settings: Settings) -> str:
    """Return the reason why a build does not write to a remote index."""
    if settings.publish and settings.pull_request:
        return (
            "a pull request is being built, and its author may be a stranger; CHAPTERVERSE_PREVIEW_STORE names a store "
            "for such builds."
        )
    return f"{settings.store!r} is not embedded and needs `publish: true` or CHAPTERVERSE_PUBLISH=1."


def explained(error: Exception) -> str:
    """Return an error as one sentence; prefix the type's name if the error is not ours."""
    return str(error) if isinstance(error, ChapterVerseError) else f"{type(error).__name__}: {error}"
