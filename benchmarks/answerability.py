"""Fits the weights of `chapterverse_api/retrieval/answerability.json` and says what they are worth:

    python benchmarks/answerability.py DATA --indexes FOLDER [--write]

DATA and FOLDER are those of `quoting.py`. Every question is asked on its own site and on the next two of the same half:
there it is one that the docs don't answer, as are the questions of the kinds not_in_docs and off_topic. Neighbors are
about different things. The weights are fitted to twelve sites by logistic regression with a ridge of 1 on standardized
features, both kinds weighing alike. They are measured on each of the twelve by the weights of the others, and on flask,
pydantic and starlight. `--write` stores them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from understanding import FOREIGN, REPORTED, Site, rows_about

from chapterverse_api import retrieval
from chapterverse_api.retrieval.answerability import AnswerFeatures, answer_features
from chapterverse_api.retrieval.search import retrieve

MODEL = Path(retrieval.__file__).with_name("answerability.json")
#: Sites that the weights are fitted to, in an order in which neighbors are about different things.
FITTED = (
    "fastify", "httpx", "hugo", "hatch", "pino", "vitepress",
    "uv", "mercurius", "docusaurus", "black", "undici", "copier",
)  # fmt: skip
#: Sites on which the questions of one are asked besides.
OTHERS = 2
#: From these probabilities on a question is answered, and answered with a reservation. They were chosen on the twelve
#: sites, on conversations of people (`understanding.py --only follow_ups`) and on what our own site does not answer.
YES, PERHAPS = 0.45, 0.18
_STEPS, _RATE, _RIDGE = 1200, 0.5, 1.0

Example = tuple[AnswerFeatures, bool]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="store the weights")
    options = parser.parse_args()
    fitted = _examples(FITTED, options.data, options.indexes)
    reported = _examples(REPORTED, options.data, options.indexes)
    by_others = []
    for name in FITTED:
        others = fit(e for other in FITTED if other != name for e in fitted[other])
        by_others += [(_probability(others, features), answered) for features, answered in fitted[name]]
    model = fit(e for of_site in fitted.values() for e in of_site)
    measured = [
        (_probability(model, features), answered) for of_site in reported.values() for features, answered in of_site
    ]
    _print("each by the weights of the others", FITTED, by_others)
    _print("not fitted to", REPORTED, measured)
    print(json.dumps(model, indent=1))
    if options.write:
        MODEL.write_text(json.dumps(model, indent=1) + "\n", encoding="utf-8")


def _print(title: str, sites: Sequence[str], probabilities: Iterable[tuple[float, bool]]) -> None:
    values = sorted(probabilities)
    own, foreign = ([p for p, answered in values if answered is kind] for kind in (True, False))
    print(
        f"{title} {', '.join(sites)}: {len(own)} answered by the docs, {len(foreign)} not; AUC {_auc(own, foreign):.3f}"
    )
    for name, least in (("answered", YES), ("answered or perhaps", PERHAPS)):
        print(f"  {name:20} {_share(own, least):.3f} of these, {_share(foreign, least):.3f} of those")


def _examples(names: Sequence[str], data: Path, indexes: Path) -> dict[str, list[Example]]:
    """Return the examples that the questions of each site make."""
    sites = {name: Site.open(indexes, name) for name in names}
    return {
        name: list(_of_site(name, [names[(at + n) % len(names)] for n in range(OTHERS + 1)], sites, data))
        for at, name in enumerate(names)
    }


def _of_site(name: str, asked_on: Sequence[str], sites: Mapping[str, Site], data: Path) -> Iterator[Example]:
    rows = rows_about(name, data)
    for on, row in product(asked_on, rows):
        own = on == name
        if row["history"] or (row["kind"] in FOREIGN and not own):
            continue
        features = _features(sites[on], row)
        if features:
            yield features, own and row["kind"] not in FOREIGN


def _features(site: Site, row: Any) -> AnswerFeatures | None:
    snapshot = site.snapshot
    found = retrieve(snapshot, None, row["question"])
    return answer_features(found.candidates, found.question, found.calibration, snapshot.head.chunks)


def fit(given: Iterable[Example]) -> dict[str, float]:
    """Return the weight of each feature, the bias and the thresholds."""
    examples = list(given)
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
