"""Fits the weights of `chapterverse_api/search/answerability.json` and says what they are worth:

    python benchmarks/answerability.py DATA --indexes FOLDER [--write]

DATA and FOLDER are those of `quoting.py`. Every question is asked on its own site and on the next two of the same half:
there it is one that the docs don't answer, as are the questions of the kinds not_in_docs and off_topic. Neighbors are
about different things. Two sets of weights are fitted to twelve sites by logistic regression with a ridge of 1 on
standardized features: `docs`, where all own questions are answered, and `first`, where those are whose first page is
right. Both kinds weigh alike. They are measured on each of the twelve by the weights of the others, and on the sites
that nothing is chosen on. `--write` stores them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import NamedTuple

from understanding import FOREIGN, HELD, REPORTED, Site, _answers, _page, rows_about

from chapterverse_api import search as retrieval
from chapterverse_api.search.results import MIN_ON_TOPIC, AnswerFeatures, answer_features
from chapterverse_api.search.site_search import SearchRequest, retrieve

MODEL = Path(retrieval.__file__).with_name("answerability.json")
#: Sites that the weights are fitted to, in an order in which neighbors are about different things.
FITTED = (
    "fastify", "httpx", "hugo", "hatch", "pino", "vitepress",
    "uv", "mercurius", "docusaurus", "black", "undici", "copier",
)  # fmt: skip
#: Sites on which the questions of one are asked besides.
OTHERS = 2
#: From both of these probabilities on a question is answered, and from the third on, of `docs`, with a reservation.
#: They were chosen on the twelve sites, on conversations of people (`understanding.py --only follow_ups`) and on what
#: our own site does not answer.
LEAST = {"docs": 0.4, "first": 0.3, "perhaps": 0.18}
_STEPS, _RATE, _RIDGE = 1200, 0.5, 1.0


class Example(NamedTuple):
    """A question on a site: whether the docs answer it, and whether the first page does."""

    features: AnswerFeatures
    docs: bool
    first: bool


Model = Mapping[str, Mapping[str, float]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="store the weights")
    options = parser.parse_args()
    fitted = _examples(FITTED, options.data, options.indexes)
    judged = []
    for name in FITTED:
        others = fit([e for other in FITTED if other != name for e in fitted[other]])
        judged += [(others, example) for example in fitted[name]]
    _print("each by the weights of the others", FITTED, judged)
    model = fit([e for of_site in fitted.values() for e in of_site])
    for names in (REPORTED, HELD):
        examples = _examples(names, options.data, options.indexes).values()
        _print("not fitted to", names, [(model, e) for of_site in examples for e in of_site])
    print(json.dumps(model, indent=1))
    if options.write:
        MODEL.write_text(json.dumps(model, indent=1) + "\n", encoding="utf-8")


def _print(title: str, sites: Sequence[str], judged: Sequence[tuple[Model, Example]]) -> None:
    found = [({name: _probability(model[name], e.features) for name in ("docs", "first")}, e) for model, e in judged]
    kinds = {
        "right page first": [p for p, e in found if e.first],
        "another page first": [p for p, e in found if e.docs and not e.first],
        "not in the docs": [p for p, e in found if not e.docs],
    }
    right, wrong, foreign = kinds.values()
    own = [p["docs"] for p in (*right, *wrong)]
    print(
        f"{title} {', '.join(sites)}: AUC of docs {_auc(own, [p['docs'] for p in foreign]):.3f}, of first among these "
        f"{_auc([p['first'] for p in right], [p['first'] for p in wrong]):.3f}"
    )
    for kind, values in kinds.items():
        sure = _share(values, lambda p: p["docs"] >= LEAST["docs"] and p["first"] >= LEAST["first"])
        some = _share(values, lambda p: p["docs"] >= LEAST["perhaps"])
        other = _share(values, lambda p: p["docs"] < MIN_ON_TOPIC)
        print(
            f"  {kind:20} {len(values):5} answered {sure:.3f}, with a reservation {some - sure:.3f}, not {1 - some:.3f}"
            f", of which as another subject {other:.3f}"
        )


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
        snapshot = sites[on].snapshot
        found = retrieve(snapshot, None, SearchRequest(row["question"]))
        features = answer_features(found.candidates, found.question, found.calibration, snapshot.head.chunks)
        if features:
            answered = own and row["kind"] not in FOREIGN
            page = _page(found.candidates[0].chunk.source_file_path)
            yield Example(features, answered, answered and all(_answers(row, [page])))


def fit(examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return both functions, and the thresholds."""
    features = [e.features for e in examples]
    return {
        "docs": _fitted(features, [e.docs for e in examples]),
        "first": _fitted(features, [e.first for e in examples]),
        "least": LEAST,
    }


def _fitted(features: Sequence[AnswerFeatures], labels: Sequence[bool]) -> dict[str, float]:
    """Return the weight of each feature, and the bias."""
    columns = list(zip(*features, strict=True))
    means = [statistics.fmean(c) for c in columns]
    scales = [statistics.pstdev(c) or 1.0 for c in columns]
    rows = [[(v - m) / s for v, m, s in zip(f, means, scales, strict=True)] for f in features]
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
    return {name: round(value, 4) for name, value in values.items()}


def _probability(model: Mapping[str, float], features: AnswerFeatures) -> float:
    return _logistic(model["bias"] + sum(model[name] * value for name, value in features._asdict().items()))


def _logistic(logit: float) -> float:
    return 1 / (1 + math.exp(-max(-50.0, min(50.0, logit))))


def _auc(own: Sequence[float], foreign: Sequence[float]) -> float:
    return sum((a > b) + (a == b) / 2 for a, b in product(own, foreign)) / (len(own) * len(foreign))


def _share(values: Sequence[Mapping[str, float]], passes: Callable[[Mapping[str, float]], bool]) -> float:
    return sum(map(passes, values)) / len(values)


if __name__ == "__main__":
    main()
