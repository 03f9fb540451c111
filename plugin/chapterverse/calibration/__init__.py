"""Turns matched words into evidence: a probability from 0 to 1 that a chunk answers a question.

A fused or min-max score can't say it: its best hit is always 1. Evidence is absolute, a logistic function of what is
known of a question and a chunk (see `Matching.features`), and what is below its floor is not answered from.

    question.py     a question's words as one index weighs them, and what a chunk has of them
    calibration.py  the coefficients, kept in the head of the index that they were fitted for
    sampling.py     a fit to questions made of the index itself, whenever it is published
    fitting.py      a fit to questions that people ask, by `chapterverse calibrate`
    regression.py   what both fits compute

No threshold is carried from one index to another, nor from one embedder to another.
"""

from chapterverse.calibration.coefficients import Calibration, Weights
from chapterverse.calibration.evidence import Features, Matching, Question, read_question, read_weights

__all__ = ["Calibration", "Features", "Matching", "Question", "Weights", "read_question", "read_weights"]
