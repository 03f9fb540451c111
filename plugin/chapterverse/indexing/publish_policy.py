"""Decides whether this build may publish. Pull requests may publish previews only."""

from __future__ import annotations

from chapterverse.errors import PublishingDenied
from chapterverse.settings import Settings
from chapterverse.store import open_store


def require_permission(settings: Settings) -> None:
    """Raise unless a build with these settings may write its index.

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
