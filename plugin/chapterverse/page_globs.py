"""Patterns by which an owner chooses pages: the same for the plugin, for built HTML and for a folder of sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pathspec import GitIgnoreSpec


@dataclass(frozen=True, slots=True)
class PageGlobs:
    """Patterns in the style of .gitignore.

    A page has up to two paths: of its source, below the folder of sources, and of the built page, below the site. A
    pattern holds for a page if it matches one of them; of several that match, the last one counts.

    Attributes:
        exclude: pages to leave out.
        include: listings to index all the same (see `page_kinds`).
    """

    exclude: GitIgnoreSpec
    include: GitIgnoreSpec

    @classmethod
    def of(cls, exclude: Iterable[str] = (), include: Iterable[str] = ()) -> PageGlobs:
        return cls(GitIgnoreSpec.from_lines(exclude), GitIgnoreSpec.from_lines(include))

    def excludes(self, *paths: str) -> bool:
        return _last_match(self.exclude, paths)

    def includes(self, *paths: str) -> bool:
        return _last_match(self.include, paths)


def _last_match(spec: GitIgnoreSpec, paths: Iterable[str]) -> bool:
    """Whether the last pattern that matches one of the paths takes it in."""
    if not len(spec):
        return False
    matches = ((check.index, check.include) for check in map(spec.check_file, paths) if check.index is not None)
    return bool(max(matches, default=(-1, False))[1])
