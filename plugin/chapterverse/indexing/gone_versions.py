"""Docs versions that an index holds and that are gone from their site."""

from __future__ import annotations

import shlex

from chapterverse.ledger import Ledger
from chapterverse.model import Head, Scope
from chapterverse.store import Store


def unpublish(store: Store, ledger: Ledger, scope: Scope) -> None:
    """Remove a docs version from a store, and from its ledger.

    Raises:
        IndexLocked: another process is publishing.
    """
    store.unpublish(scope)
    ledger.save(scope, 0, (), list(ledger.records(scope)))


def no_pages_of(head: Head) -> str:
    """Return the sentence about a docs version whose pages are gone from its site."""
    command = f"chapterverse unpublish --site {shlex.quote(head.site)} --docs-version {shlex.quote(head.version)}"
    return (
        f"The store holds the docs version {head.version!r}, and the site has no page of it: if it is gone, run "
        f"`{command}`."
    )
