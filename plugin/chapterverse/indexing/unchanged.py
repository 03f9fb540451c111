"""Finds that an index holds its sources already, without what writes one: most builds change nothing."""

from __future__ import annotations

from chapterverse.indexing.diff import Diff, compare_files
from chapterverse.indexing.report import Report
from chapterverse.indexing.source_set import SourceSet
from chapterverse.indexing.target import Target


def report_unchanged(source_set: SourceSet, target: Target) -> Report | None:
    """Return the report of a run if no file changed, else None. Takes no lock and opens no shard."""
    head = target.head()
    records = target.records(head) if head and target.matches(head) else None
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
