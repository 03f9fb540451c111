"""The sources of a run, and how their files and chunks differ from those of the index. Everything here is pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from chapterverse.errors import InputError
from chapterverse.indexing.additions import Keep, keep_none
from chapterverse.indexing.target import row_pipeline
from chapterverse.ledger import IMPORTED, LedgerRow
from chapterverse.model import PAGE, Chunk, Source, replace_unstorable
from chapterverse.page_kinds import explain_no_text

_MAX_PATH_CHARS = 512


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


@dataclass(frozen=True, slots=True)
class FileDiff:
    """The files that a run must read and those that are gone. Paths are sorted."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def touched(self) -> tuple[str, ...]:
        return self.new + self.changed

    def without(self, paths: Collection[str]) -> FileDiff:
        """Return the diff without these files."""
        kinds = (self.new, self.changed, self.unchanged, self.removed)
        return FileDiff(*(tuple(p for p in kind if p not in paths) for kind in kinds)) if paths else self


@dataclass(frozen=True, slots=True)
class Diff:
    """The chunks to write and delete so that the index holds exactly the site's chunks.

    Attributes:
        write: chunks to write: new, moved, or with a changed payload.
        embed: their distinct `embed_hash`es that have no vector yet.
        moved: how many of them have a new id and a known `embed_hash`.
        delete: chunk ids to delete.
        removed: how many of the deleted chunks did not merely move.
    """

    write: tuple[Chunk, ...] = ()
    embed: frozenset[str] = frozenset()
    moved: int = 0
    delete: tuple[str, ...] = ()
    removed: int = 0

    @property
    def empty(self) -> bool:
        return not self.write and not self.delete


def compare_files(
    sources: Mapping[str, Source], records: Mapping[str, LedgerRow], pipeline: str, keep: Keep = keep_none
) -> FileDiff:
    """Sort files into new, changed, unchanged and removed by their ledger rows. Pure."""
    unchanged = {
        path
        for path, source in sources.items()
        if (record := records.get(path))
        and record.content_hash == source.content_hash
        and record.pipeline == row_pipeline(pipeline, source)
    }
    return FileDiff(
        new=tuple(sorted(sources.keys() - records.keys())),
        changed=tuple(sorted((sources.keys() & records.keys()) - unchanged)),
        unchanged=tuple(sorted(unchanged)),
        removed=tuple(
            sorted(p for p in records.keys() - sources.keys() if records[p].content_hash != IMPORTED and not keep(p))
        ),
    )


def compute_diff(
    chunks: Iterable[Chunk], stored_chunks: Iterable[Chunk], known_hashes: Collection[str], *, anew: bool = False
) -> Diff:
    """Compare the chunks of the files just read with those that the index stores for these files. Pure.

    Args:
        chunks: the chunks of all files that were read.
        stored_chunks: the live index's chunks of those files and of the removed ones.
        known_hashes: the `embed_hash`es whose vectors are available without embedding.
        anew: also write unchanged chunks, because the sparse encoder changed.
    """
    chunks_by_id = {c.chunk_id: c for c in chunks}
    live = {c.chunk_id: c for c in stored_chunks}
    write = tuple(c for i, c in chunks_by_id.items() if anew or i not in live or not _same(c, live[i]))
    gone = [c for i, c in live.items() if i not in chunks_by_id]
    new_hashes = Counter(c.embed_hash for c in write if c.chunk_id not in live)
    embed = frozenset(c.embed_hash for c in write).difference(known_hashes)
    return Diff(
        write=write,
        embed=embed,
        moved=max(0, new_hashes.total() - len(embed)),
        delete=tuple(sorted(c.chunk_id for c in gone)),
        removed=(Counter(c.embed_hash for c in gone) - new_hashes).total(),
    )


def _same(chunk: Chunk, old: Chunk) -> bool:
    """Whether the stored payload equals the new one, except for the time of indexing."""
    # The time of indexing is stored as `created_at` too where a page states no date.
    return replace(chunk, created_at=chunk.created_at or old.timestamp, timestamp=old.timestamp) == old
