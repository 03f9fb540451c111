"""One result of a search: a chunk, the score that orders it and the evidence for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from chapterverse.calibration import ChunkFeatures
from chapterverse.model import Chunk, SparseVector


class Candidate(NamedTuple):
    """A chunk with its score in the order, its evidence (calibrated, 0 to 1) and what both were made from.

    Attributes:
        components: the parts of the score.
        features: the features of the evidence; None where the question has no words, and so none.
    """

    chunk: Chunk
    lexical: SparseVector
    score: float
    evidence: float
    components: Mapping[str, float]
    features: ChunkFeatures | None
