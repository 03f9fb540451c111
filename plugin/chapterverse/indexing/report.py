"""The report of a run: its summary for people, and the documents of `--json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from chapterverse.indexing.diff import Diff, FileDiff
from chapterverse.model import Scope
from chapterverse.page_kinds import listing_lines

if TYPE_CHECKING:
    from chapterverse.enrichment.types import EnrichmentReport

#: Most pages of one kind that the diff for people lists.
_MAX_LINES = 20


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a run, or of a dry run.

    Attributes:
        total: number of chunks in the index.
        skipped: number of pages not indexed: excluded ones, and those that `warnings` explains.
        embedded: number of chunks that this run embedded; below `diff.embed` if an unfinished run left vectors.
        tokens: cl100k tokens sent to a model that has a price.
        price: US dollars per million tokens.
        renamed: old path by new path of files whose content equals a removed file's.
        listings: kind of each page left out because it only lists others (see `page_kinds.LISTINGS`).
        enrichment: the model's work for the changed pages; None without a model or a change.
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
    enrichment: EnrichmentReport | None = None

    @property
    def kept(self) -> int:
        return self.total - len(self.diff.embed) - self.diff.moved

    @property
    def cost(self) -> float:
        """Estimated US dollars; the model's own tokenizer may count otherwise."""
        return self.tokens * self.price / 1_000_000

    def after(self, warnings: Sequence[str], omissions: int, listings: Mapping[str, str] | None = None) -> Report:
        """Return the report with earlier warnings in front.

        Args:
            warnings: one for each page that was skipped before the run.
            omissions: number of pages that ask to be left out.
            listings: kind of each page left out as a listing.
        """
        listings = listings or {}
        skipped = self.skipped + len(warnings) + omissions + len(listings)
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
            **({"enrichment": self.enrichment.to_json()} if self.enrichment else {}),
        }

    def listing_lines(self) -> list[str]:
        """Return a line for each page that was left out as a listing, of many only the first."""
        return listing_lines(self.listings)

    def diff_json(self) -> dict[str, Any]:
        """Return the part that `index --dry-run --json` adds: pages by kind of change, and the estimated cost."""
        files = self.files
        return {
            "new": [path for path in files.new if path not in self.renamed],
            "changed": list(files.changed),
            "moved": [{"from": self.renamed[path], "to": path} for path in files.new if path in self.renamed],
            "removed": self._removed_paths,
            "tokens": self.tokens,
            "cost_usd": round(self.cost, 6),
        }

    def diff_lines(self) -> Iterator[str]:
        """Yield a line for each of the first 20 pages of each kind, and one for the estimated cost."""
        renamed = [f"{self.renamed[path]} -> {path}" for path in self.files.new if path in self.renamed]
        new = [path for path in self.files.new if path not in self.renamed]
        kinds = {"new": new, "moved": renamed, "changed": self.files.changed, "removed": self._removed_paths}
        for kind, paths in kinds.items():
            yield from (f"{kind:8} {path}" for path in paths[:_MAX_LINES])
            if len(paths) > _MAX_LINES:
                yield f"{kind:8} … and {len(paths) - _MAX_LINES:,} more; --json lists them all"
        if self.price and self.embedded:
            yield f"{self.embedded} texts of about {self.tokens:,} tokens would be embedded for about ${self.cost:.4f}."
        if self.enrichment and self.enrichment.calls:
            yield f"{self.enrichment.calls} pages would be sent to the enricher for about ${self.enrichment.cost:.4f}."

    @property
    def _enrichment_note(self) -> str:
        return f"; {self.enrichment}" if self.enrichment else ""

    @property
    def _removed_paths(self) -> list[str]:
        moved = set(self.renamed.values())
        return [path for path in self.files.removed if path not in moved]

    def __str__(self) -> str:
        files, diff = self.files, self.diff
        cost = f" for about ${self.cost:.4f}" if self.tokens and self.price else ""
        return (
            f"{len(files.new) + len(files.changed) + len(files.unchanged)} pages ({len(files.new)} new, "
            f"{len(files.changed)} changed, {len(files.removed)} removed), {self.total} chunks ({len(diff.embed)} new, "
            f"{self.kept} kept, {diff.moved} moved, {diff.removed} removed), {self.embedded} embedded{cost}, "
            f"{self.seconds:.1f} s{self._enrichment_note}"
        )
