"""What the reading model wins: the order of passages, the marked part, and the probability of a good answer.

    python benchmarks/reading_model.py DATA --indexes FOLDER --model FOLDER [--train]

DATA holds `questions/readers`; the folder of indexes one embedded index of each site by its name, as for
`understanding.py`. No weight of the model was trained on any of them; a language model that knew nothing of this
project wrote the questions.

    chosen on    httpx, hugo, vitepress and nine of `questions/`: the weights of the order and of the confidence
    held         pydantic, starlight, structlog and cibuildwheel

A candidate is right if it holds the part that answers, or is of a section that the question names as answering too.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from understanding import FOREIGN, Site, _answers, _page, rows_about

from chapterverse.reading import ReadingModel, open_reading_model
from chapterverse_api.ext.evaluation.quoting import bare
from chapterverse_api.search import reading
from chapterverse_api.search.ranking import Candidate
from chapterverse_api.search.results import MIN_CONFIDENCE, logit
from chapterverse_api.search.site_search import SearchRequest, retrieve

CHOSEN = (
    *("httpx", "hugo", "vitepress", "uv", "docusaurus", "hatch", "black", "copier"),
    *("fastify", "undici", "pino", "mercurius"),
)
HELD = ("pydantic", "starlight", "structlog", "cibuildwheel")
CONFIDENCE = ("bias", "first_relevance", "share", "answerability")
UNREAD = ("unread_bias", "unread_first", "unread_docs")
WEIGHTS = Path(reading.__file__).with_suffix(".json")
Row = dict[str, Any]


def questions(site: str, data: Path) -> Iterator[Row]:
    """Yield `question`, `keys` (bare texts of which one answers; none if the docs don't), `file` and `heading`."""
    for row in rows_about(site, data):
        if not row["history"]:
            places = [] if row["kind"] in FOREIGN else [row, *row["also"]]
            yield {"question": row["question"], "keys": [bare(row["key"])] if places else [], "places": places}


def is_right(row: Row, candidate: Candidate) -> bool:
    chunk = candidate.chunk
    text = bare(chunk.text)
    if any(len(key) > 8 and key in text for key in row["keys"]):
        return True
    page, headings = [_page(chunk.source_file_path)], {bare(h) for h in chunk.heading_path[-1:]}
    return any(
        any(_answers({"file": place["file"], "also": []}, page)) and bare(place["heading"] or "") in headings
        for place in row["places"]
        if place["heading"]
    )


def features(row: Row, site: Site, model: ReadingModel | None) -> Mapping[str, Any] | None:
    """Return the figures of a question's first candidates, and which are right; None if nothing was found."""
    retrieval = retrieve(site.snapshot, None, SearchRequest(row["question"]))
    first = retrieval.candidates[: reading.MAX_READ]
    if not first or not model:
        return None
    started = time.process_time()
    passages = [(candidate.chunk.heading_path, reading.passage_parts(candidate)) for candidate in first]
    readings = model.read_question(row["question"], passages, lambda: 600.0)
    assert readings
    return {
        "rank": [-math.log(n) for n in range(1, len(first) + 1)],
        "cosine": [cosine for _, cosine in readings],
        "relevance": [one.relevance for one, _ in readings],
        "right": [is_right(row, candidate) for candidate in first],
        "words": retrieval.answerability,
        "answerable": bool(row["keys"]),
        "seconds": time.process_time() - started,
        "sections": [str((c.chunk.url, c.chunk.heading_path)) for c in first],
    }


def collect(name: str, options: argparse.Namespace, model: ReadingModel | None) -> list[Mapping[str, Any]]:
    site = Site.open(options.indexes, name)
    found = [f for row in questions(name, options.data) if (f := features(row, site, model))]
    print(name, len(found), file=sys.stderr, flush=True)
    return found


def order(found: Mapping[str, Any], cosine: float, relevance: float) -> list[int]:
    """Return the places of a question's candidates, best first."""
    figures = zip(found["rank"], found["cosine"], found["relevance"], strict=True)
    values = [rank + cosine * near + relevance * logit for rank, near, logit in figures]
    return sorted(range(len(values)), key=lambda i: (-values[i], i))


def ranks(found: Sequence[Mapping[str, Any]], cosine: float, relevance: float) -> list[int]:
    """Return the rank of the first right section of each question that the docs answer; 99 if none is right."""
    places = []
    for one in found:
        if one["answerable"]:
            ordered = order(one, cosine, relevance)
            sections = list(dict.fromkeys(one["sections"][i] for i in ordered))
            right = next((one["sections"][i] for i in ordered if one["right"][i]), None)
            places.append(sections.index(right) if right in sections else 99)
    return places


def shown(found: Sequence[Mapping[str, Any]], cosine: float, relevance: float) -> str:
    places = ranks(found, cosine, relevance)
    return "  ".join(f"{n}: {sum(p < n for p in places) / len(places):.3f}" for n in (1, 3, 5)) + f"  of {len(places)}"


def doubts(found: Sequence[Mapping[str, Any]], cosine: float, relevance: float) -> tuple[Any, Any]:
    """Return the figures of the confidence of each question, and whether its first candidate is right."""
    rows, right = [], []
    for one in found:
        ordered = order(one, cosine, relevance)
        figures = zip(one["rank"], one["cosine"], one["relevance"], strict=True)
        values = [rank + cosine * near + relevance * logit for rank, near, logit in figures]
        odds = np.exp(np.array(values) - max(values))
        of_section = [one["sections"][i] == one["sections"][ordered[0]] for i in range(len(odds))]
        share = float(odds[of_section].sum() / odds.sum())
        rows.append((1.0, one["relevance"][ordered[0]], logit(share), logit(one["words"].first)))
        right.append(float(one["answerable"] and one["right"][ordered[0]]))
    return np.array(rows), np.array(right)


def unread(found: Sequence[Mapping[str, Any]]) -> tuple[Any, Any]:
    """Return the same for a question that no model read."""
    rows = [(1.0, logit(one["words"].first), logit(one["words"].docs)) for one in found]
    return np.array(rows), np.array([float(one["answerable"] and one["right"][0]) for one in found])


def fitted(rows: Any, right: Any, ridge: float = 1.0, steps: int = 50) -> Any:
    """Return the weights of a logistic regression, by Newton's method."""
    weights, penalty = np.zeros(rows.shape[1]), ridge * np.diag([0.0, *[1.0] * (rows.shape[1] - 1)])
    for _ in range(steps):
        p = 1 / (1 + np.exp(-rows @ weights))
        curve = (rows * (p * (1 - p))[:, None]).T @ rows + penalty
        weights = weights - np.linalg.solve(curve, rows.T @ (p - right) + penalty @ weights)
    return weights


def auc(values: Any, right: Any) -> float:
    good, bad = values[right > 0], values[right == 0]
    return float(np.mean([[(g > b) + 0.5 * (g == b) for b in bad] for g in good]))


def train(found: Sequence[Mapping[str, Any]]) -> None:
    """Choose the weights of the order that put most right sections first, and fit those of the confidence."""
    grid = [(cosine, relevance) for cosine in (0, 4, 6, 8, 10, 12, 14) for relevance in (0, 0.2, 0.3, 0.4, 0.5, 0.7)]
    cosine, relevance = max(grid, key=lambda pair: (sum(p < 1 for p in ranks(found, *pair)), -pair[0]))
    fits = (*fitted(*doubts(found, cosine, relevance)), *fitted(*unread(found)))
    weights = dict(zip((*CONFIDENCE, *UNREAD), (round(float(w), 3) for w in fits), strict=True))
    values = {"rank": -1.0, "cosine": cosine, "relevance": relevance, **weights}
    WEIGHTS.write_text(f"{json.dumps(values, indent=1)}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--model", required=True, help="folder of the reading model")
    parser.add_argument("--train", action="store_true", help="fit the weights first")
    options = parser.parse_args()
    model = open_reading_model(options.model)
    found = {name: collect(name, options, model) for name in (*CHOSEN, *HELD)}
    if options.train:
        train([one for name in CHOSEN for one in found[name]])
    weights = json.loads(WEIGHTS.read_text("utf-8"))
    pair = weights["cosine"], weights["relevance"]
    for half, names in (("chosen on", CHOSEN), ("held", HELD)):
        print(f"\n{half}")
        every = [one for name in names for one in found[name]]
        for name, of_site in [(name, found[name]) for name in names] + [("ALL", every)]:
            print(f"  {name:14} without {shown(of_site, 0, 0)}   with {shown(of_site, *pair)}")
        rows, right = doubts(every, *pair)
        confidence = rows @ [weights[name] for name in CONFIDENCE]
        by_words, unread_right = unread(every)
        words_alone = auc(by_words @ [weights[name] for name in UNREAD], unread_right)
        doubted = confidence < logit(MIN_CONFIDENCE)
        answerable = np.array([one["answerable"] for one in every])
        print(f"  a right first section told from a wrong one: AUC {auc(confidence, right):.3f}, of questions that")
        print(f"  the docs answer {auc(confidence[answerable], right[answerable]):.3f}; doubted {doubted.sum()}, of")
        print(f"  these right {int(right[doubted].sum())}; not answered by the docs {int((~answerable).sum())}, of")
        print(f"  these doubted {int((doubted & ~answerable).sum())}; without a reading AUC {words_alone:.3f}")
    seconds = sorted(one["seconds"] for of_site in found.values() for one in of_site)
    middle, high = seconds[len(seconds) // 2], seconds[len(seconds) * 19 // 20]
    print(f"\nCPU seconds of reading a question: median {middle:.3f}, 95 % below {high:.3f}")


if __name__ == "__main__":
    main()
