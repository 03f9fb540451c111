"""The sources of a run, and which files of the index stay although the run has no source for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from chapterverse.errors import InputError
from chapterverse.model import PAGE, Source, replace_unstorable
from chapterverse.page_kinds import explain_no_text

_MAX_PATH_CHARS = 512

#: Whether a file of the index stays of which no source is offered, by its path.
Keep: TypeAlias = Callable[[str], bool]


def keep_none(path: str) -> bool:  # noqa: ARG001 one signature for all
    """Keep nothing: the index holds exactly the sources of the run."""
    return False


def keep_all(path: str) -> bool:  # noqa: ARG001
    """Keep everything: the sources of the run are added."""
    return True


@dataclass(frozen=True, slots=True)
class SourceSet:
    """The sources that can be indexed, by path, a sentence for each of the others, and the files that stay."""

    sources: Mapping[str, Source]
    left_out: Mapping[str, str]
    keep: Keep = keep_none

    @classmethod
    def of(cls, sources: Iterable[Source], keep: Keep = keep_none) -> SourceSet:
        """Validate sources; of two with one path the first counts. Raises `InputError` if there is no page."""
        by_path: dict[str, Source] = {}
        left_out: dict[str, str] = {}
        for source in sources:
            path = source.file_path
            if not path or len(path) > _MAX_PATH_CHARS or replace_unstorable(path) != path:
                left_out[replace_unstorable(path)] = (
                    f"{path[:60]!a} is skipped: a path needs 1 to {_MAX_PATH_CHARS} characters of plain text."
                )
            else:
                by_path.setdefault(path, source)
        if all(source.type != PAGE for source in by_path.values()):
            raise InputError("There is no page to index: the site is empty, or everything in it is excluded.")
        return cls(by_path, left_out, keep)

    def explain_blank(self, chunk_counts: Mapping[str, int]) -> dict[str, str]:
        """Return a sentence for each page without a chunk."""
        blank = (path for path, count in chunk_counts.items() if not count and self.sources[path].type == PAGE)
        return {path: explain_no_text(path) for path in sorted(blank)}

    @property
    def document_paths(self) -> frozenset[str]:
        """The paths of sources that are not pages."""
        return frozenset(path for path, source in self.sources.items() if source.type != PAGE)
