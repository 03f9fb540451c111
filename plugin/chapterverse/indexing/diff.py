"""What an index run will change and has changed: the values between `sync.plan` and its summary."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from chapterverse.model import Chunk, Scope
from chapterverse.page_kinds import listing_lines

#: Pages of one kind that a plan for people names.
_MOST_LINES = 20


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

    def less(self, others: Collection[str]) -> FileDiff:
        """Return it without files that are no pages."""
        kinds = (self.new, self.changed, self.unchanged, self.removed)
        return FileDiff(*(tuple(p for p in paths if p not in others) for paths in kinds)) if others else self


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
    """What a run did, or would do.

    Attributes:
        total: chunks that the index holds.
        skipped: pages that were not indexed: those that ask for it, and those of which `warnings` says why.
        embedded: chunks whose vectors the run had to make; below `diff.embed` where an earlier run had been cut short.
        tokens: cl100k tokens sent to a model that has a price.
        price: US dollars for a million of them.
        renamed: the new paths of files whose content is that of a removed one, with the old paths.
        listings: pages that only list others and were left out, each with its kind (see `page_kinds.LISTINGS`).
    """

    scope: Scope
    generation: int
    files: FileDiff
    diff: Diff
    total: int
    skipped: int = 0
    seconds: float = 0.0
    embedded: int = 0
    tokens: int = 0
    price: float = 0.0
    renamed: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    listings: Mapping[str, str] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        return self.total - len(self.diff.embed) - self.diff.moved

    @property
    def cost(self) -> float:
        """US dollars, estimated: a model counts tokens in its own way."""
        return self.tokens * self.price / 1_000_000

    def after(self, warnings: Sequence[str], left_out: int, listings: Mapping[str, str] | None = None) -> Report:
        """Return the report with what was noticed before the run in front.

        Args:
            warnings: one for each page that could not even be offered.
            left_out: how many pages ask to be left out.
            listings: pages left out as listings.
        """
        listings = listings or {}
        skipped = self.skipped + len(warnings) + left_out + len(listings)
        return replace(self, skipped=skipped, warnings=(*warnings, *self.warnings), listings=listings)

    def to_json(self) -> dict[str, Any]:
        """Return the document that `index --json` prints; `listings` is there where any was left out."""
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
            **({"listings": dict(self.listings)} if self.listings else {}),
        }

    def listing_lines(self) -> list[str]:
        """Return a line for each page that was left out as a listing, of many only the first."""
        return listing_lines(self.listings)

    def plan_json(self) -> dict[str, Any]:
        """Return what `index --dry-run --json` adds: every page by what would happen to it, and the cost."""
        files = self.files
        return {
            "new": [path for path in files.new if path not in self.renamed],
            "changed": list(files.changed),
            "moved": [{"from": self.renamed[path], "to": path} for path in files.new if path in self.renamed],
            "removed": self._removed,
            "tokens": self.tokens,
            "cost_usd": round(self.cost, 6),
        }

    def plan_lines(self) -> Iterator[str]:
        """Yield a line for each page that a run would touch, of many only the first, and one for what it would cost."""
        renamed = [f"{self.renamed[path]} -> {path}" for path in self.files.new if path in self.renamed]
        new = [path for path in self.files.new if path not in self.renamed]
        kinds = {"new": new, "moved": renamed, "changed": self.files.changed, "removed": self._removed}
        for kind, paths in kinds.items():
            yield from (f"{kind:8} {path}" for path in paths[:_MOST_LINES])
            if len(paths) > _MOST_LINES:
                yield f"{kind:8} … and {len(paths) - _MOST_LINES:,} more; --json lists them all"
        if self.price and self.embedded:
            yield f"{self.embedded} texts of about {self.tokens:,} tokens would be embedded for about ${self.cost:.4f}."

    @property
    def _removed(self) -> list[str]:
        moved = set(self.renamed.values())
        return [path for path in self.files.removed if path not in moved]

    def __str__(self) -> str:
        files, diff = self.files, self.diff
        cost = f" for about ${self.cost:.4f}" if self.tokens and self.price else ""
        return (
            f"{len(files.new) + len(files.changed) + len(files.unchanged)} pages ({len(files.new)} new, "
            f"{len(files.changed)} changed, {len(files.removed)} removed), {self.total} chunks ({len(diff.embed)} new, "
            f"{self.kept} kept, {diff.moved} moved, {diff.removed} removed), {self.embedded} embedded{cost}, "
            f"{self.seconds:.1f} s"
        )
