"""Finds folders with translations: named like a language, with the pages of another folder."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LOCALE = re.compile(r"[a-z]{2}(?:[-_](?:[A-Z]{2}|[A-Z][a-z]{3}))?\Z")


def locale_folders(files: Iterable[str]) -> dict[str, str]:
    """Return the top folders that are translations, each with its BCP 47 tag: {"fr": "fr", "pt_BR": "pt-BR"}.

    "id" and "is" are words, too, so the name alone proves nothing: at least half of the folder's pages must have a
    counterpart of the same name beside the folder or in another one that is named like a language.
    """
    below: dict[str, set[str]] = {}
    for path in files:
        top, _, rest = path.partition("/")
        below.setdefault(top if rest else "", set()).add(_stem(rest or path))
    named = [folder for folder in below if _LOCALE.match(folder)]
    # Pages of the default language are at the root, in folders of any name.
    root = {f"{top}/{rest}" if top else rest for top, inside in below.items() if top not in named for rest in inside}
    tags: dict[str, str] = {}
    for folder in named:
        others = root.union(*(below[other] for other in named if other != folder))
        if 2 * len(below[folder] & others) >= len(below[folder]):
            tags[folder] = folder.replace("_", "-")
    return tags


def _stem(path: str) -> str:
    return path.rpartition(".")[0]
