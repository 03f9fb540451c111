"""Indexes the pages of a finished build.

What writes an index is imported inside functions, so a build that changes nothing doesn't load it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from chapterverse import progress
from chapterverse.errors import ChapterVerseError, ConfigurationError, PublishingDenied
from chapterverse.extensions import load_part
from chapterverse.indexing.documents import Documents
from chapterverse.indexing.publish_policy import explain_no_address, explain_withheld, require_permission
from chapterverse.model import Scope
from chapterverse.settings import Settings

if TYPE_CHECKING:
    from chapterverse.indexing.report import Report
    from chapterverse.progress import Progress
    from chapterverse.readers.site_pages import SitePages


class Log(Protocol):
    """The messages of a build by their level."""

    def info(self, message: str, /) -> None: ...
    def warning(self, message: str, /) -> None: ...
    def debug(self, message: str, /, *, exc_info: bool) -> None: ...


def is_to_index(settings: Settings, address: str, log: Log, *, strict: bool, prefix: str = "") -> bool:
    """Whether a finished build writes its index; tell why not. Without an address only a strict one tries, and fails.

    Args:
        prefix: the beginning of the message, if the log doesn't name the plugin.
    """
    if not settings.may_publish and settings.publish is not False:
        log.info(f"{prefix}Nothing was indexed: {explain_withheld(settings)}")
    return settings.may_publish and (bool(address) or strict)


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


def update_index(reading: SitePages, settings: Settings, chunk_tokens: int, documents: Documents, log: Log) -> None:
    """Index a site as `index_site` does, and log the result; then ask readers' questions again if the settings say so.

    Raises:
        ConfigurationError: the site has no address, or an option is invalid.
        ChapterVerseError: as in `sync.index`; the index stays as it was.
    """
    require_permission(settings)
    if not reading.base_url:
        raise ConfigurationError(explain_no_address())
    if settings.secrets_arn:
        settings = load_part("secrets_arn")(settings, log.warning)
    log.info(f"Indexed {index_site(reading, settings, chunk_tokens, documents, log)}")
    if settings.report:
        try:
            load_part("report")(settings, log)
        except Exception as error:
            log.warning(f"The report was not made: {explain_error(error)}")


def index_site(
    reading: SitePages,
    settings: Settings,
    chunk_tokens: int,
    documents: Documents,
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
    from chapterverse.indexing.diff import ExternalSources
    from chapterverse.indexing.target import Target

    more, warnings = documents.sources(reading.sources, reading.base_url)
    external = ExternalSources()
    if settings.also:
        external = load_part("also")(settings, reading.sources, reading.base_url, documents.docs)
    before = (*reading.warnings, *warnings, *external.warnings)
    for warning in before:
        log.warning(warning)
    scope, run = Scope(settings.site, settings.docs_version or ""), sync.preview if dry_run else sync.index
    target = Target.open(settings, scope, reading.base_url, chunk_tokens, workers)
    with bar() as tell:
        report = run((*reading.sources, *more, *external.sources), target, tell, external.keep)
    for warning in report.warnings:
        log.warning(warning)
    report = report.after(before, {**reading.left_out, **external.left_out})
    for line in report.left_out_lines():
        log.info(line)
    return report


def explain_error(error: Exception) -> str:
    """Return an error as one sentence; prefix the type's name if the error is not ours."""
    return str(error) if isinstance(error, ChapterVerseError) else f"{type(error).__name__}: {error}"
