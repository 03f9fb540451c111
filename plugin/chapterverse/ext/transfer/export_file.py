"""Exports an index to JSON lines, and reads such an export.

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

from chapterverse.errors import InputError
from chapterverse.extensions import load_part
from chapterverse.model import Chunk, EmbedderCard, Head, Point, Scope, chunk_id, embed_hash, is_storable
from chapterverse.readers.urls import site_base
from chapterverse.store import Snapshot, parse_head_document
from chapterverse.text.json_text import parse_json

_DIGITS = 6
_CHUNK = TypeAdapter(Chunk)


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
