"""One result of a search: a chunk, the score that orders it and the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chapterverse.calibration import ChunkFeatures
from chapterverse.model import Chunk, SparseVector
from chapterverse_api.generation.passage import PassageReading


class Candidate(NamedTuple):
    """A search result: a chunk, its ranking score, its calibrated evidence (0 to 1) and the parts of both.

    Attributes:
        components: the parts of the score.
        features: the features of the evidence; None if the question has no words.
        reading: what the reading model makes of it; None if it was not read.
    """

    chunk: Chunk
    lexical: SparseVector
    score: float
    evidence: float
    components: Mapping[str, float]
    features: ChunkFeatures | None
    reading: PassageReading | None = None
