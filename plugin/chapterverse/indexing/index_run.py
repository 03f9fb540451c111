"""From a site to its index: where the site is, whether a build may publish, and the one call that every adapter makes.

An adapter hands a `Site` to `update_index`, a command to `index_site`. `sync` has the steps from there. What writes an
index is imported inside functions, so a build that changes nothing doesn't load it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chapterverse import progress
from chapterverse.errors import ChapterVerseError, ConfigurationError, InputError, PublishingDenied
from chapterverse.extensions import load_part
from chapterverse.indexing.additions import Documents, ExternalSources
from chapterverse.model import Head, Scope
from chapterverse.settings import Settings, explain_unknown_variables
from chapterverse.store import Store, only_head, open_store

if TYPE_CHECKING:
    from chapterverse.indexing.report import Report
    from chapterverse.progress import Progress
    from chapterverse.readers.site_pages import SitePages


class Log(Protocol):
    """The messages of a build by their level."""

    def info(self, message: str, /) -> None: ...
    def warning(self, message: str, /) -> None: ...
    def debug(self, message: str, /, *, exc_info: bool) -> None: ...


@dataclass(frozen=True, slots=True)
class Site:
    """A site to index: its pages, not read yet, the documents beside them, and the size that chunks are packed to."""

    pages: SitePages
    documents: Documents
    settings: Settings
    chunk_tokens: int


# Where the site is


def read_known_site(
    folder: Path,
    settings: Settings,
    *,
    include: Iterable[str],
    exclude: Iterable[str],
    read: Callable[..., SitePages] | None = None,
) -> SitePages:
    """Return the pages of a built site, or of what `read` reads, as `read_site` does.

    The address of a site that states none is that of its index, so `--base-url` is said once.

    Raises:
        ConfigurationError: the store can't be opened, or holds these files at several addresses.
    """
    from chapterverse.readers.built_site import read_site

    read = partial(read or read_site, folder, include=tuple(include), exclude=tuple(exclude))
    try:
        return read(settings.base_url or None)
    except InputError:
        if settings.base_url or not (address := _indexed_address(folder, settings)):
            raise
        # Whatever else is wrong with the site is raised again.
        return read(address)


def _indexed_address(folder: Path, settings: Settings) -> str:
    """Return the address of the site's index, "" if it can't be read or is of other files."""
    try:
        store = open_store(settings)
        named = (
            h for h in store.heads() if settings.site in ("", h.site) and settings.docs_version in (None, h.version)
        )
        heads = {head.base_url: head for head in named if _is_of(folder, store, head)}
        return only_head([*heads.values()]).base_url if heads else ""
    except ConfigurationError:
        raise
    except ChapterVerseError:
        return ""


def _is_of(folder: Path, store: Store, head: Head) -> bool:
    """Whether a folder has most of the files that an index names."""
    files = store.snapshot(head.scope).values("source_file_path")
    return sum((folder / str(file)).is_file() for file in files) * 2 > len(files)


# Whether a build may publish


def require_permission(settings: Settings) -> None:
    """Raise unless a build with these settings may write its index. Pull requests may publish previews only.

    Raises:
        PublishingDenied: a pull request is built, and the store is neither embedded nor a separate preview store.
    """
    if settings.store.startswith("edge:") or not settings.pull_request:
        return
    if not settings.preview_of:
        raise PublishingDenied(
            "A pull request is being built, and its author may be a stranger, so nothing but an embedded index is "
            "written: name a store for such builds in CHAPTERVERSE_PREVIEW_STORE."
        )
    if _identity(settings, settings.store) == _identity(settings, settings.preview_of):
        raise PublishingDenied(
            "CHAPTERVERSE_PREVIEW_STORE names the site's own store, which no pull request may write: name another "
            "server, bucket, prefix or collection."
        )
    if not settings.may_publish:
        raise PublishingDenied("A pull request is being built: to write its preview, set CHAPTERVERSE_PUBLISH=1.")


def _identity(settings: Settings, store: str) -> str:
    # Without the key, so that parsing doesn't reject one sent over plain HTTP.
    return open_store(settings.override(store=store, qdrant_api_key="")).identity


def list_problems(settings: Settings, site_url: str | None, name: str = "site_url") -> list[str]:
    """Return a sentence for each setting that is missing or unknown in a build that will be published.

    One that may not publish has none: with `--strict` they would fail the build of a pull request.

    Args:
        name: the generator's setting for the site's address.
    """
    if not settings.may_publish and settings.publish is not False:
        return []
    sentences = explain_unknown_variables()
    if not settings.endpoint:
        sentences.append(
            "endpoint is not set, so the chat of the published site has no API to ask: name its address, or set "
            "`endpoint: /` if it is at the site's own origin."
        )
    if settings.may_publish and not site_url:
        sentences.append(explain_no_address(name))
    return sentences


def explain_no_address(name: str = "site_url") -> str:
    """Return the sentence about a site without an address, given the generator's setting for it."""
    return f"{name} is not set, so a citation would have no address and nothing is indexed."


def explain_withheld(settings: Settings) -> str:
    """Return the reason why a build does not write to a remote index."""
    if settings.publish and settings.pull_request:
        return (
            "a pull request is being built, and its author may be a stranger; CHAPTERVERSE_PREVIEW_STORE names a store "
            "for such builds."
        )
    return f"{settings.store!r} is not embedded and needs `publish: true` or CHAPTERVERSE_PUBLISH=1."


def is_to_index(settings: Settings, address: str, log: Log, *, strict: bool, prefix: str = "") -> bool:
    """Whether a finished build writes its index; tell why not. Without an address only a strict one tries, and fails.

    Args:
        prefix: the beginning of the message, if the log doesn't name the plugin.
    """
    if not settings.may_publish and settings.publish is not False:
        log.info(f"{prefix}Nothing was indexed: {explain_withheld(settings)}")
    return settings.may_publish and (bool(address) or strict)


# The call


def try_to_index(update: Callable[[], None], log: Log, strict: bool, prefix: str = "") -> Exception | None:
    """Update the index, and return the error that is to fail the build.

    The docs are built already, so a failure to index fails the build only if `strict`; else it is logged. A build that
    may not publish never fails by that.

    Args:
        prefix: the beginning of the warning, if the log doesn't name the plugin.
    """
    try:
        update()
    except PublishingDenied as error:
        log.info(f"{prefix}Nothing was indexed: {error}")
    except Exception as error:
        if strict:
            return error
        log.warning(f"{prefix}The index was not updated: {explain_error(error)}")
        log.debug(f"{prefix}The index was not updated", exc_info=True)
    return None


def update_index(site: Site, log: Log) -> None:
    """Index a site as `index_site` does, and log the result; then ask readers' questions again if the settings say so.

    Raises:
        ConfigurationError: the site has no address, or an option is invalid.
        ChapterVerseError: as in `sync.index`; the index stays as it was.
    """
    require_permission(site.settings)
    if not site.pages.base_url:
        raise ConfigurationError(explain_no_address())
    if site.settings.secrets_arn:
        site = replace(site, settings=load_part("secrets_arn")(site.settings, log.warning))
    log.info(f"Indexed {index_site(site, log)}")
    if site.settings.report:
        try:
            load_part("report")(site.settings, log)
        except Exception as error:
            log.warning(f"The report was not made: {explain_error(error)}")


def index_site(
    site: Site,
    log: Log,
    *,
    dry_run: bool = False,
    workers: int = 1,
    bar: Callable[[], AbstractContextManager[Progress]] = progress.bar,
) -> Report:
    """Make the index hold exactly these pages, the documents and the sources beyond the site; log what is left out.

    Raises as `Target.open` and `sync.index`.
    """
    from chapterverse.indexing import sync
    from chapterverse.indexing.target import Target

    pages, settings = site.pages, site.settings
    more, warnings = site.documents.sources(pages.sources, pages.base_url)
    external = ExternalSources()
    if settings.also:
        external = load_part("also")(settings, pages.sources, pages.base_url, site.documents.docs)
    before = (*pages.warnings, *warnings, *external.warnings)
    for warning in before:
        log.warning(warning)
    scope, run = Scope(settings.site, settings.docs_version or ""), sync.preview if dry_run else sync.index
    target = Target.open(settings, scope, pages.base_url, site.chunk_tokens, workers)
    with bar() as tell:
        report = run((*pages.sources, *more, *external.sources), target, tell, external.keep)
    for warning in report.warnings:
        log.warning(warning)
    report = report.after(before, {**pages.left_out, **external.left_out})
    for line in report.left_out_lines():
        log.info(line)
    return report


def explain_error(error: Exception) -> str:
    """Return an error as one sentence; prefix the type's name if the error is not ours."""
    return str(error) if isinstance(error, ChapterVerseError) else f"{type(error).__name__}: {error}"
