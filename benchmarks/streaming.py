"""Replay labelled answers of a language model as streams: what a reader sees, and when.

    python benchmarks/streaming.py DATA/answers/records.jsonl

Each answer comes in pieces of four characters, about a token, 40 a second. Stated are the seconds between the model's
first token and the first segment that is shown, and the seconds of work for each segment. The segments must be those of
the answer whole: `differ` counts answers of which they are not.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median, quantiles

from labelled_answers import Answer, Weights, load

from chapterverse.calibration import WeightedQuestion
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.check.verdict import load_model
from chapterverse_api.ext.models.segments import Segments

TOKEN, TOKENS_A_SECOND = 4, 40


def replay(answer: Answer, text: str, size: int, weigh: Weights) -> tuple[list[Span], float, float]:
    """Return the segments, the seconds after which the first was shown, and those of work for each."""
    request = GenerationRequest(answer.question, WeightedQuestion(), answer.passages, "en")
    segments, shown, first = Segments(request, weigh), list[Span](), 0.0
    started = time.perf_counter()
    for at in range(0, len(text), size):
        shown += segments.read(Span(text[at : at + size]))
        first = first or (at / TOKEN / TOKENS_A_SECOND if shown else 0.0)
    shown += segments.end()
    work = (time.perf_counter() - started) / max(1, len(shown))
    return shown, first or len(text) / TOKEN / TOKENS_A_SECOND, work


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path)
    path = parser.parse_args(arguments).records
    rows = {row["id"]: row["answer"] for row in map(json.loads, path.open(encoding="utf-8"))}
    answers = [honest for honest, _ in load(path)]
    weights = {site: Weights(answers, site) for site in {a.site for a in answers}}
    load_model()
    firsts, works, differ, refused = list[float](), list[float](), 0, 0
    for answer in answers:
        shown, first, work = replay(answer, rows[answer.id], TOKEN, weights[answer.site])
        whole, _, _ = replay(answer, rows[answer.id], len(rows[answer.id]), weights[answer.site])
        differ += shown != whole
        refused += not shown
        firsts += [first] if shown else []
        works.append(work)
    late = quantiles(firsts, n=10)[8]
    print(f"{len(answers)} answers, {differ} differ, {refused} show nothing")
    print(f"first segment: median {median(firsts):.2f} s, ninth tenth {late:.2f} s, most {max(firsts):.2f} s")
    print(f"work for a segment: median {median(works) * 1000:.1f} ms, mean {mean(works) * 1000:.1f} ms")


if __name__ == "__main__":
    main()
