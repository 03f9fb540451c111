"""What a run of the index will do, and what it did: the values between `sync.plan` and the reader of its summary."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chapterverse.model import Chunk, Scope


@dataclass(frozen=True, slots=True)
class FileDiff:
    """Which files a run must read and which are gone; paths are sorted."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @property
    def touched(self) -> tuple[str, ...]:
        return self.new + self.changed

    def without(self, failed: Collection[str]) -> FileDiff:
        """Return it without files that turned out to be unreadable."""
        new, changed = (tuple(p for p in paths if p not in failed) for paths in (self.new, self.changed))
        return replace(self, new=new, changed=changed)


@dataclass(frozen=True, slots=True)
class Diff:
    """What must be written and deleted to make the index hold exactly the site's chunks.

    Attributes:
        write: chunks to write: new ones, moved ones, and old ones whose payload changed.
        embed: distinct `embed_hash`es among them that the index has never seen.
        moved: how many of them have a new id and a known `embed_hash`.
        delete: chunk ids to delete.
        removed: how many of those did not merely move.
    """

    write: tuple[Chunk, ...] = ()
    embed: frozenset[str] = frozenset()
    moved: int = 0
    delete: tuple[str, ...] = ()
    removed: int = 0

    @property
    def empty(self) -> bool:
        return not self.write and not self.delete


@dataclass(frozen=True, slots=True)
class Report:
    """What a run did.

    Attributes:
        total: chunks that the index holds.
        skipped: pages that were offered and could not be indexed; `warnings` says why.
        embedded: chunks whose vectors had to be made.
    """

    scope: Scope
    generation: int
    files: FileDiff
    diff: Diff
    total: int
    skipped: int = 0
    seconds: float = 0.0
    warnings: tuple[str, ...] = ()

    @property
    def embedded(self) -> int:
        return len(self.diff.embed)

    @property
    def kept(self) -> int:
        return self.total - len(self.diff.embed) - self.diff.moved

    def warned(self, warnings: Sequence[str]) -> Report:
        """Return the report with what was noticed before the run in front: pages that could not even be offered."""
        return replace(self, skipped=self.skipped + len(warnings), warnings=(*warnings, *self.warnings))

    def to_json(self) -> dict[str, Any]:
        """Return the document that `index --json` prints (DESIGN 4.5)."""
        files, diff, skipped = self.files, self.diff, self.skipped
        return {
            "site": self.scope.site,
            "version": self.scope.version,
            "generation": self.generation,
            "pages": {
                "seen": len(files.new) + len(files.changed) + len(files.unchanged) + skipped,
                "new": len(files.new),
                "changed": len(files.changed),
                "unchanged": len(files.unchanged),
                "removed": len(files.removed),
                "skipped": skipped,
            },
            "chunks": {
                "total": self.total,
                "new": len(diff.embed),
                "kept": self.kept,
                "moved": diff.moved,
                "removed": diff.removed,
            },
            "embedded": self.embedded,
            "seconds": round(self.seconds, 3),
            "warnings": list(self.warnings),
        }

    def __str__(self) -> str:
        files, diff = self.files, self.diff
        return (
            f"{len(files.new) + len(files.changed) + len(files.unchanged)} pages ({len(files.new)} new, "
            f"{len(files.changed)} changed, {len(files.removed)} removed), {self.total} chunks ({len(diff.embed)} new, "
            f"{self.kept} kept, {diff.moved} moved, {diff.removed} removed), {self.embedded} embedded, "
            f"{self.seconds:.1f} s"
        )
