"""Finds the one scope of a store that a user means."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from chapterverse.build_commands import build_command
from chapterverse.errors import ConfigurationError, IndexMissing
from chapterverse.model import Head, Scope
from chapterverse.store.protocols import Store


def only_scope(store: Store, site: str = "", version: str | None = None, *, place: str = "") -> Scope:
    """Return the scope that `site` and `version` name. Either may be omitted if only one scope matches.

    Args:
        place: of the store, as `Settings.store` names it, for the message.

    Raises:
        IndexMissing: nothing matches.
        ConfigurationError: more than one matches; the message lists them.
    """
    return only_head(store.heads(), site, version, place=place).scope


def only_head(heads: Sequence[Head], site: str = "", version: str | None = None, *, place: str = "") -> Head:
    """Return the one of these heads that `site` and `version` name. Raises the errors of `only_scope`."""
    matches = [h for h in heads if (not site or h.site == site) and (version is None or h.version == version)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        names = ", ".join(f"{h.site!r} version {h.version!r}" for h in matches)
        raise ConfigurationError(f"The store holds {names}: say which with --site and --docs-version.")
    if heads:
        names = ", ".join(f"{h.site!r} version {h.version!r}" for h in heads)
        raise IndexMissing(f"The store holds nothing for that site and version, only {names}.")
    raise IndexMissing(f"There is no index yet in {_display(place)}: run {build_command(Path())}.")


def _display(place: str) -> str:
    """Return an embedded store's folder in full, because it is often another than the build's."""
    kind, _, folder = place.partition(":")
    return str(Path(folder).resolve()) if kind == "edge" else place or "the store"
