"""Measure the check of sentences on labelled answers: what it takes from true claims, and from planted flaws.

    python benchmarks/grounding.py records.jsonl
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from labelled_answers import Weights, load, report

from chapterverse_api.generation import Draft, Passage
from chapterverse_api.grounding import Verified, verify


def main(path: str) -> None:
    def check(draft: Draft, passages: Sequence[Passage], weights: Weights, fold: int) -> Verified:
        return verify(draft, passages, "en", weights)

    print(report(load(Path(path)), check, lambda verified: bool(verified.flagged)))


if __name__ == "__main__":
    main(sys.argv[1])
