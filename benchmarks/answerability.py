"""Fits the weights of `chapterverse_api/retrieval/answerability.json` and says what they are worth:

    python benchmarks/answerability.py DATA --indexes FOLDER [--write]

DATA and FOLDER are those of `understanding.py`. Every question of readers is asked on its own site and on the others of
the same half: there it is one that the docs don't answer, as are the questions of the kinds not_in_docs and off_topic.
The weights are fitted to httpx, hugo and vitepress by logistic regression with a ridge of 1 on standardized features,
both kinds weighing alike, and measured on flask, pydantic and starlight. `--write` stores them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import understanding
from understanding import FOREIGN, REPORTED, TUNED, Site

from chapterverse_api import retrieval
from chapterverse_api.retrieval.answerability import AnswerFeatures, answer_features
from chapterverse_api.retrieval.search import retrieve

MODEL = Path(retrieval.__file__).with_name("answerability.json")
#: From these probabilities on a question is answered, and answered with a reservation. The lower one was chosen on the
#: first half and six sites more (`questions/`), whose readers don't know the docs' words: .12 refuses 4 % of their 506
#: questions, .22 refused 10 %.
YES, PERHAPS = 0.4, 0.12
_STEPS, _RATE, _RIDGE = 4000, 0.5, 1.0

Example = tuple[AnswerFeatures, bool]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="store the weights")
    options = parser.parse_args()
    examples = {half: list(_examples(half, options.data, options.indexes)) for half in (TUNED, REPORTED)}
    model = fit(examples[TUNED])
    for half, title in ((TUNED, "fitted to"), (REPORTED, "not fitted to")):
        own = sorted(_probability(model, f) for f, answered in examples[half] if answered)
        foreign = sorted(_probability(model, f) for f, answered in examples[half] if not answered)
        print(
            f"{title} {', '.join(half)}: {len(own)} answered by the docs, {len(foreign)} not;"
            f" AUC {_auc(own, foreign):.3f}"
        )
        for name, least in (("answered", YES), ("answered or perhaps", PERHAPS)):
            print(f"  {name:20} {_share(own, least):.3f} of these, {_share(foreign, least):.3f} of those")
    print(json.dumps(model, indent=1))
    if options.write:
        MODEL.write_text(json.dumps(model, indent=1) + "\n", encoding="utf-8")


def _examples(half: Sequence[str], data: Path, indexes: Path) -> Iterator[Example]:
    rows = {name: understanding.read_rows(data / "questions" / "readers" / f"{name}.jsonl") for name in half}
    sites = {name: Site.open(indexes, name) for name in half}
    for on, of in product(half, half):
        for row in rows[of]:
            if row["kind"] == "follow_up" or (on != of and row["kind"] in FOREIGN):
                continue
            features = _features(sites[on], row)
            if features:
                yield features, on == of and row["kind"] not in FOREIGN


def _features(site: Site, row: Any) -> AnswerFeatures | None:
    snapshot = site.snapshot
    found = retrieve(snapshot, None, row["question"])
    return answer_features(found.candidates, found.question, found.calibration, snapshot.head.chunks)


def fit(examples: Sequence[Example]) -> dict[str, float]:
    """Return the weight of each feature, the bias and the thresholds."""
    columns = list(zip(*(f for f, _ in examples), strict=True))
    means = [statistics.fmean(c) for c in columns]
    scales = [statistics.pstdev(c) or 1.0 for c in columns]
    rows = [[(v - m) / s for v, m, s in zip(f, means, scales, strict=True)] for f, _ in examples]
    labels = [answered for _, answered in examples]
    shares = {kind: len(labels) / (2 * labels.count(kind)) for kind in (True, False)}
    weights, bias = [0.0] * len(means), 0.0
    for _ in range(_STEPS):
        slopes, slope = [_RIDGE * w for w in weights], 0.0
        for row, label in zip(rows, labels, strict=True):
            miss = shares[label] * (_logistic(bias + math.fsum(map(float.__mul__, weights, row))) - label)
            slope += miss
            for i, value in enumerate(row):
                slopes[i] += miss * value
        weights = [w - _RATE * s / len(rows) for w, s in zip(weights, slopes, strict=True)]
        bias -= _RATE * slope / len(rows)
    plain = [w / s for w, s in zip(weights, scales, strict=True)]
    values = {"bias": bias - math.fsum(w * m for w, m in zip(plain, means, strict=True))}
    values |= dict(zip(AnswerFeatures._fields, plain, strict=True))
    return {name: round(value, 4) for name, value in values.items()} | {"yes": YES, "perhaps": PERHAPS}


def _probability(model: dict[str, float], features: AnswerFeatures) -> float:
    return _logistic(model["bias"] + sum(model[name] * value for name, value in features._asdict().items()))


def _logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


def _auc(own: Sequence[float], foreign: Sequence[float]) -> float:
    return sum((a > b) + (a == b) / 2 for a, b in product(own, foreign)) / (len(own) * len(foreign))


def _share(values: Sequence[float], least: float) -> float:
    return sum(v >= least for v in values) / len(values)


if __name__ == "__main__":
    main()
