"""Turns matched words into evidence: a probability from 0 to 1 that a chunk answers a question.

A fused or min-max score can't express it, because its best hit is always 1. Evidence is absolute: a logistic function
of a question's and a chunk's features (see `Matching.features`). A chunk below the floor is not answered from.

    evidence.py  a question's words weighted by one index, the features of a chunk, and their coefficients, stored in
                 the head of the index that they were fitted for
    sampling.py  a fit to questions made of the index itself, on each publication

A floor or coefficient never moves to another index or another embedder.
"""

from chapterverse.calibration.evidence import (
    Calibration,
    ChunkFeatures,
    Coefficients,
    Matching,
    WeightedQuestion,
    count_terms,
    logistic,
    match_word,
    question_terms,
    read_question,
    read_weights,
)

__all__ = [
    "Calibration",
    "ChunkFeatures",
    "Coefficients",
    "Matching",
    "WeightedQuestion",
    "count_terms",
    "logistic",
    "match_word",
    "question_terms",
    "read_question",
    "read_weights",
]
