"""The report of a run: its summary for people, and the documents of `--json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from chapterverse.indexing.diff import Diff, FileDiff, SourceSet, compare_files
from chapterverse.indexing.target import Target
from chapterverse.ledger import rows_of
from chapterverse.model import Scope
from chapterverse.page_kinds import left_out_lines

if TYPE_CHECKING:
    from chapterverse.indexing.additions import EnrichmentReport

#: Most pages of one kind that the diff for people lists.
_MAX_LINES = 20


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a run, or of a dry run.

    Attributes:
        total: number of chunks in the index.
        files: all sources: pages, documents, and what is beyond the site.
        documents: paths of those among them that are persona, FAQ or memory.
        left_out: the reason for each source that is not indexed as it is now; of an unreadable one the index keeps the
            last good version.
        embedded: number of chunks that this run embedded; below `diff.embed` if an unfinished run left vectors.
        tokens: cl100k tokens sent to a model that has a price.
        price: US dollars per million tokens.
        renamed: old path by new path of files whose content equals a removed file's.
        enrichment: the model's work for the changed pages; None without a model or a change.
    """

    scope: Scope
    generation: int
    files: FileDiff
    diff: Diff
    total: int
    documents: frozenset[str] = frozenset()
    left_out: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    embedded: int = 0
    tokens: int = 0
    price: float = 0.0
    renamed: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    enrichment: EnrichmentReport | None = None

    @property
    def kept(self) -> int:
        return self.total - len(self.diff.embed) - self.diff.moved

    @property
    def cost(self) -> float:
        """Estimated US dollars; the model's own tokenizer may count otherwise."""
        return self.tokens * self.price / 1_000_000

    def after(self, warnings: Sequence[str], reasons: Mapping[str, str]) -> Report:
        """Return the report with the warnings and the sources left out before the run in front."""
        return replace(self, warnings=(*warnings, *self.warnings), left_out={**reasons, **self.left_out})

    def to_json(self) -> dict[str, Any]:
        """Return the document that `index --json` prints; `left_out` is there where anything was."""
        files, diff, skipped = self.files, self.diff, len(self.left_out)
        return {
            "site": self.scope.site,
            "version": self.scope.version,
            "generation": self.generation,
            "pages": {
                "seen": len(files.touched) + len(files.unchanged) + skipped,
                **{kind: len(paths) for kind, paths in asdict(files).items()},
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
            **({"left_out": dict(self.left_out)} if self.left_out else {}),
            **({"enrichment": self.enrichment.to_json()} if self.enrichment else {}),
        }

    def left_out_lines(self) -> list[str]:
        """Return a line for each source that was left out and that no warning names, of many only the first."""
        named = set(self.warnings)
        return left_out_lines({path: reason for path, reason in self.left_out.items() if reason not in named})

    def diff_json(self) -> dict[str, Any]:
        """Return the part that `index --dry-run --json` adds: pages by kind of change, and the estimated cost."""
        return {
            "new": [path for path in self.files.new if path not in self.renamed],
            "changed": list(self.files.changed),
            "moved": [{"from": self.renamed[path], "to": path} for path in self.files.new if path in self.renamed],
            "removed": self._removed_paths,
            "tokens": self.tokens,
            "cost_usd": round(self.cost, 6),
        }

    def diff_lines(self) -> Iterator[str]:
        """Yield a line for each of the first 20 pages of each kind, and one for the estimated cost."""
        changes = self.diff_json()
        changes["moved"] = [f"{moved['from']} -> {moved['to']}" for moved in changes["moved"]]
        for kind in ("new", "moved", "changed", "removed"):
            paths = changes[kind]
            yield from (f"{kind:8} {path}" for path in paths[:_MAX_LINES])
            if len(paths) > _MAX_LINES:
                yield f"{kind:8} … and {len(paths) - _MAX_LINES:,} more; --json lists them all"
        if self.price and self.embedded:
            yield f"{self.embedded} texts of about {self.tokens:,} tokens would be embedded for about ${self.cost:.4f}."
        if self.enrichment and self.enrichment.calls:
            yield f"{self.enrichment.calls} pages would be sent to the enricher for about ${self.enrichment.cost:.4f}."

    @property
    def _removed_paths(self) -> list[str]:
        moved = set(self.renamed.values())
        return [path for path in self.files.removed if path not in moved]

    def __str__(self) -> str:
        files, diff = self.files, self.diff
        documents = len(self.documents.intersection(files.touched + files.unchanged))
        noun = "document" if documents == 1 else "documents"
        pages = len(files.touched) + len(files.unchanged) - documents
        cost = f" for about ${self.cost:.4f}" if self.tokens and self.price else ""
        return (
            f"{pages} pages{f' and {documents} {noun}' if documents else ''} ({len(files.new)} new, "
            f"{len(files.changed)} changed, {len(files.removed)} removed), {self.total} chunks ({len(diff.embed)} new, "
            f"{self.kept} kept, {diff.moved} moved, {diff.removed} removed), {self.embedded} embedded{cost}, "
            f"{self.seconds:.1f} s{f'; {self.enrichment}' if self.enrichment else ''}"
        )


def report_unchanged(source_set: SourceSet, target: Target) -> Report | None:
    """Return the report of a run if no file changed, else None. Takes no lock and opens no shard."""
    head = target.head()
    records = rows_of(target.ledger, head) if head and target.matches(head) else None
    if head is None or records is None:
        return None
    files = compare_files(source_set.sources, records, target.pipeline, source_set.keep)
    if files.touched or files.removed:
        return None
    blank = source_set.explain_blank({path: records[path].chunk_count for path in files.unchanged})
    left_out = {**source_set.left_out, **blank}
    return Report(
        target.scope,
        head.generation,
        files.without(blank),
        Diff(),
        head.chunks,
        documents=source_set.document_paths,
        left_out=left_out,
        warnings=tuple(left_out.values()),
    )
