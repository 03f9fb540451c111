"""Indexes the pages of a finished build.

What writes an index is imported inside functions, so a build that changes nothing doesn't load it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from chapterverse import progress
from chapterverse.errors import ChapterVerseError, ConfigurationError, PublishingDenied
from chapterverse.extensions import load_part
from chapterverse.indexing.documents import Documents
from chapterverse.indexing.publish_policy import explain_no_address, explain_withheld, require_permission
from chapterverse.model import Scope, Source
from chapterverse.settings import Settings

if TYPE_CHECKING:
    from chapterverse.indexing.diff import ExternalSources, Keep
    from chapterverse.indexing.report import Report
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
    """Make the index hold exactly these pages, the documents and the sources beyond the site, and log the result.

    Raises:
        ConfigurationError: the site has no address, or an option is invalid.
        ChapterVerseError: as in `sync.index`; the index stays as it was.
    """
    for warning in reading.warnings:
        log.warning(warning)
    base_url, sources, warnings = reading.base_url, [*reading.sources], list[str]()
    if base_url:
        more, warnings = documents.sources(reading.sources, base_url)
        sources += more
    external = collect_external(settings, reading.sources, base_url, documents.docs)
    for warning in (*warnings, *external.warnings):
        log.warning(warning)
    report = _index_sources([*sources, *external.sources], settings, base_url, chunk_tokens, external.keep)
    report = report.after((), reading.left_out)
    for warning in report.warnings:
        log.warning(warning)
    for line in report.left_out_lines():
        log.info(line)
    log.info(f"Indexed {report}")
    if settings.report:
        try:
            load_part("report")(settings, log)
        except Exception as error:
            log.warning(f"The report was not made: {explain_error(error)}")


def collect_external(settings: Settings, pages: Iterable[Source], base_url: str, docs: Path | None) -> ExternalSources:
    """Return the sources of `settings.also`, of a site with an address; raises as the room that finds them."""
    from chapterverse.indexing.diff import ExternalSources

    if not settings.also or not base_url:
        return ExternalSources()
    found: ExternalSources = load_part("also")(settings, pages, base_url, docs)
    return found


def _index_sources(
    sources: Sequence[Source], settings: Settings, base_url: str | None, chunk_tokens: int, keep: Keep
) -> Report:
    from chapterverse.indexing import sync
    from chapterverse.indexing.target import Target

    require_permission(settings)
    if not base_url:
        raise ConfigurationError(explain_no_address())
    warnings: list[str] = []
    if settings.secrets_arn:
        settings = load_part("secrets_arn")(settings, warnings.append)
    target = Target.open(settings, Scope(settings.site, settings.docs_version or ""), base_url, chunk_tokens)
    with progress.bar() as bar:
        return sync.index(sources, target, bar, keep).after(warnings, {})


def explain_error(error: Exception) -> str:
    """Return an error as one sentence; prefix the type's name if the error is not ours."""
    return str(error) if isinstance(error, ChapterVerseError) else f"{type(error).__name__}: {error}"
