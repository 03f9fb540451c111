"""Whether a build may publish, and what keeps it from that. Pull requests may publish previews only."""

from __future__ import annotations

from chapterverse.errors import PublishingDenied
from chapterverse.settings import Settings, explain_unknown_variables
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


def _identity(settings: Settings, store: str) -> str:
    # Without the key, so that parsing doesn't reject one sent over plain HTTP.
    return open_store(settings.override(store=store, qdrant_api_key="")).identity
