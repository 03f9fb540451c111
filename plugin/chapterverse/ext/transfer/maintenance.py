"""Exports an index to JSON lines, fills one from such a file, and repairs an index's ledger and leftovers.

Each line is one point: the payload's fields and `vectors`, `{"lexical": {"indices", "values"}, "dense"}`. A full export
starts with a line `{"head": …}` and keeps times and all digits. A canonical export drops everything that differs
between two builds of one site (head, times, digits after the sixth), so equal indexes give equal files.

Reading computes lexical vectors and `embed_hash`es again. A file that was edited, or made by another model, is
rejected.
"""

from __future__ import annotations

import contextlib
import json
import math
import uuid
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from chapterverse.errors import IndexCorrupt, IndexMissing, InputError
from chapterverse.extensions import load_part
from chapterverse.indexing.apply import apply, publishing
from chapterverse.indexing.diff import FileDiff, compute_diff
from chapterverse.indexing.plan import unread_rows
from chapterverse.indexing.report import Report
from chapterverse.indexing.target import Target
from chapterverse.indexing.vectors import UnfinishedVectors, Vectors
from chapterverse.ledger import Ledger, rows_of
from chapterverse.model import ENCODER, Chunk, EmbedderCard, Head, Point, Scope, chunk_id, embed_hash, is_storable
from chapterverse.progress import Progress
from chapterverse.readers.urls import site_base
from chapterverse.store import Snapshot, Store, parse_head_document
from chapterverse.text.json_text import parse_json

_DIGITS = 6
_CHUNK = TypeAdapter(Chunk)


@dataclass(frozen=True, slots=True)
class RepairReport:
    """The outcome of a repair.

    Attributes:
        head: the live head, unchanged.
        swept: number of removed objects that no head references; the store defines what one object is.
        rebuilt: number of ledger rows written again; 0 if the ledger was intact.
    """

    head: Head
    swept: int
    rebuilt: int


def fill(exported: ExportFile, target: Target, progress: Progress = lambda *_: None) -> Report:
    """Make the index hold exactly the chunks of an export. Nothing is embedded.

    The next `index` run reads every file again, because an export has no content hashes; it embeds nothing either.

    Raises:
        InputError: the export is of another site or version, or of another model than the target's.
        IndexFault: the index is locked, damaged or of a newer format; nothing was changed.
    """
    exported.check(target.scope, target.card)
    with publishing(target, progress) as publication:
        live = publication.previous
        same = live is not None and live.head.embedder.fingerprint == target.card.fingerprint
        stored = [point.chunk for point in live.points()] if live and same else []
        vectors = Vectors(UnfinishedVectors(None))
        vectors.reuse(exported.dense)
        anew = live is not None and ENCODER not in live.head.pipeline.split()
        diff = compute_diff(exported.chunks, stored, exported.dense.keys(), anew=anew)
        chunks = len(exported.chunks)
        head, lost = apply(diff, vectors, target, publication, progress, chunks=chunks, export_head=exported.head)
    _rebuild_ledger(target, head)
    return Report(target.scope, head.generation, FileDiff(), diff, head.chunks, warnings=(*exported.warnings, *lost))


def repair(target: Target) -> RepairReport:
    """Remove objects that no head references, and rebuild a ledger that is lost or describes another generation.

    Raises:
        IndexMissing: nothing was published for the scope; leftovers of a killed first publication were removed.
        IndexCorrupt: the live generation is damaged.
        IndexLocked: another process is publishing.
    """
    swept = target.store.sweep(target.scope)
    head = target.head()
    if head is None:
        raise IndexMissing(f"Nothing was published for {target.scope} yet, and {swept} leftovers were removed.")
    if not target.store.is_complete(target.scope):
        raise IndexCorrupt(f"The index of {target.scope} is damaged: the next `chapterverse index` builds it again.")
    rebuilt = _rebuild_ledger(target, head) if rows_of(target.ledger, head) is None else 0
    return RepairReport(head, swept, rebuilt)


def unpublish(store: Store, ledger: Ledger, scope: Scope) -> None:
    """Remove a docs version from a store, and from its ledger.

    Raises:
        IndexLocked: another process is publishing.
    """
    store.unpublish(scope)
    ledger.save(scope, 0, (), list(ledger.records(scope)))


def _rebuild_ledger(target: Target, head: Head) -> int:
    rows = unread_rows(target.store.snapshot(target.scope))
    gone = target.ledger.records(target.scope).keys() - rows.keys()
    target.ledger.save(target.scope, head.generation, rows.values(), sorted(gone), head.token)
    return len(rows)


def export(snapshot: Snapshot, *, canonical: bool) -> Iterator[str]:
    """Yield the lines of an index, sorted by chunk id, each with its line break."""
    if not canonical:
        yield _line({"head": asdict(snapshot.head)})
    for point in snapshot.points():
        yield _line(_canonical(point) if canonical else _full(point))


def _line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"


def _full(point: Point) -> dict[str, Any]:
    vectors = {"lexical": asdict(point.lexical), "dense": point.dense}
    return {**point.chunk.payload(), "vectors": vectors}


def _canonical(point: Point) -> dict[str, Any]:
    payload = point.chunk.payload()
    indexed_at = payload.pop("timestamp")
    if payload["created_at"] == indexed_at:
        # Without a stated date `created_at` is the time of indexing.
        del payload["created_at"]
    lexical_vector = {"indices": point.lexical.indices, "values": _round(point.lexical.values)}
    dense = None if point.dense is None else _round(point.dense)
    return {**payload, "vectors": {"lexical": lexical_vector, "dense": dense}}


def _round(values: Sequence[float]) -> list[float]:
    # Stores return the same 32-bit float with more or fewer digits. Adding zero turns -0.0 into 0.0.
    return [round(value, _DIGITS) + 0.0 for value in array("f", values)]


@dataclass(frozen=True, slots=True)
class ExportFile:
    """The content of an export.

    Attributes:
        head: of the exported index; None in a canonical file.
        dense: 32-bit vectors by `embed_hash`; None in an index without an embedder.
        warnings: a sentence for each line that is left out.
    """

    head: Head | None
    chunks: tuple[Chunk, ...]
    dense: Mapping[str, array[float] | None]
    warnings: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Dimensions of the dense vectors, 0 for none."""
        return max((len(v) for v in self.dense.values() if v is not None), default=0)

    @property
    def base_url(self) -> str:
        """The site's address: from the head, else the one that explains most of the chunks' addresses."""
        if self.head:
            return self.head.base_url
        urls = {chunk.url.partition("#")[0] for chunk in self.chunks}
        return site_base(urls, {chunk.source_file_path for chunk in self.chunks}) or ""

    def check(self, scope: Scope, card: EmbedderCard) -> None:
        """Raise `InputError` if the file was made for another site or version, or by another model."""
        if self.size != card.size:
            raise InputError(
                f"The file holds vectors of {self.size} dimensions and {card.name} makes {card.size}: "
                "say with --embedder what made them."
            )
        for chunk in self.chunks:
            if chunk.version != scope.version or not _has_id_of(chunk, scope):
                raise InputError(f"The file is no index of {scope}: chunk {chunk.chunk_id} has an id of another site.")
            if chunk.embed_hash != embed_hash(card.fingerprint, chunk.expanded_text):
                raise InputError(f"The vectors in the file were not made by {card.name}, or it was edited.")


def _has_id_of(chunk: Chunk, scope: Scope) -> bool:
    expected_id = chunk_id(
        scope,
        language=chunk.language,
        file_path=chunk.source_file_path,
        anchor=chunk.url.partition("#")[2] or None,
        index=chunk.chunk_index,
        text=chunk.text,
        path=chunk.heading_path,
    )
    # An id may include an anchor that is not cited and therefore unknown here.
    return chunk.chunk_id == expected_id or (not chunk.anchor_verified and bool(chunk.section_heading))


def read_export(lines: Iterable[str], name: str) -> ExportFile:
    """Return the content of an exported file; of two points with one id the last counts.

    Args:
        name: of the file, for error messages.

    Raises:
        InputError: a line or a field of it is invalid, or the file holds no point; the message names the line.
        IndexMismatch: a newer release wrote it.
    """
    head: Head | None = None
    chunks: dict[str, Chunk] = {}
    dense: dict[str, array[float] | None] = {}
    warnings: list[str] = []
    for number, line in enumerate(lines, 1):
        place = f"{name}, line {number}"
        row = _parse(line, place)
        if "head" in row and number == 1:
            if not is_storable(row):
                raise _no_line_error(place)
            head = parse_head_document(line.encode(), place)[0]
        elif not is_storable(row):
            warnings.append(f"{place}: this holds a character that is no text, so it is left out.")
        else:
            chunk, vector = _point(row, place)
            chunks[chunk.chunk_id] = chunk
            dense[chunk.embed_hash] = vector
    if not chunks:
        raise InputError(f"{name} holds no point: write one with `chapterverse export`.")
    return ExportFile(head, tuple(chunks.values()), dense, tuple(warnings))


def _parse(line: str, place: str) -> dict[str, Any]:
    with contextlib.suppress(ValueError):
        row = parse_json(line)
        if isinstance(row, dict):
            return row
    raise _no_line_error(place)


def _no_line_error(place: str) -> InputError:
    return InputError(f"{place}: this is no line of an exported index.")


def _point(row: dict[str, Any], place: str) -> tuple[Chunk, array[float] | None]:
    try:
        vectors = row.pop("vectors")
        chunk = _CHUNK.validate_python({"created_at": "", "timestamp": "", **row}, strict=False)
        dense = None if vectors["dense"] is None else array("f", vectors["dense"])
        sound = all(map(math.isfinite, dense or ())) and uuid.UUID(chunk.chunk_id) and bool(chunk.text)
    except (KeyError, TypeError, ValueError, OverflowError):
        sound = False
    if not sound or not row.keys() <= set(Chunk.__slots__):
        raise _no_line_error(place)
    load_part("validate_chunk")(chunk, place)
    # Equal dates mean that the page stated none; the import sets its own time.
    stated = "" if chunk.created_at == chunk.timestamp else chunk.created_at
    return replace(chunk, created_at=stated, timestamp=""), dense
