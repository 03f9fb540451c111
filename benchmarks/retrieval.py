"""Compares how well retrievers find documentation, ours and peers in one run:

    python benchmarks/retrieval.py QUESTIONS_DIR --model MINILM.onnx --tokenizer TOKENIZER.json [--only ours]

QUESTIONS_DIR is a question set or contains several (see `scoring.py`). Every retriever indexes the Markdown of each set
and is asked each question, alternately. The table has the metrics and, in brackets, the 95 % interval of the difference
to our default by a paired bootstrap. The costs follow as ratios to our default. Vectors are cached in
`.cache/retrieval`. The peers need their own environment, which the first call creates; `--only ours` needs none.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import peer_environment

if TYPE_CHECKING:
    import numpy as np
    from retrievers import Index, Retriever
    from scoring import QuestionSet, Result

RESAMPLES, SEED = 10_000, 7
HOME = peer_environment.ROOT / ".cache" / "retrieval"
MACRO = "mean of the sets"


def main() -> None:
    options = _options()
    if options.only is None:
        peer_environment.enter()
    from retrievers.model import Memory, model_folder
    from retrievers.ours import ours
    from scoring import read_sets

    sets = read_sets(options.questions, options.neutral)
    if not sets:
        sys.exit(f"{options.questions} holds no queries.jsonl, nor does a folder in it.")
    memory = Memory(HOME / "vectors.sqlite")
    folder = model_folder(options.model, options.tokenizer, HOME) if options.model else None
    retrievers: list[Retriever] = [*ours(f"fastembed:{folder}" if folder else "", options.reranker, memory)]
    # Only ours needs no model.
    if folder and options.only is None:
        from retrievers.peers import peers

        retrievers += peers(folder, memory, with_our_chunks=options.our_chunks)
    runs = [Run.of(one, retrievers, options.runs) for one in sets]
    _print_quality(runs)
    _print_costs(runs)


class Run:
    """All retrievers on one set, by name: an array of questions by metrics, and the costs.

    Attributes:
        searching: median milliseconds per question.
        indexing: CPU seconds for an index whose vectors are cached.
        sizes: bytes of an index.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, np.ndarray] = {}
        self.searching: dict[str, float] = {}
        self.indexing: dict[str, float] = {}
        self.sizes: dict[str, int] = {}

    @classmethod
    def of(cls, question_set: QuestionSet, retrievers: Sequence[Retriever], save: Path | None) -> Run:
        import numpy as np

        run = cls(question_set.name)
        with tempfile.TemporaryDirectory(prefix="retrieval-") as temporary:
            indexes: dict[str, Index] = {}
            for number, retriever in enumerate(retrievers):
                print(f"{question_set.name}: indexing, {retriever.name}", file=sys.stderr)
                index, run.indexing[retriever.name] = _build_index(
                    retriever, question_set, Path(temporary) / str(number)
                )
                indexes[retriever.name] = index
                run.sizes[retriever.name] = index.size()
            results_by_name, seconds = _ask_in_turns(question_set, indexes)
        for name, results in results_by_name.items():
            run.values[name] = np.array([q.score(r) for q, r in zip(question_set.questions, results, strict=True)])
            run.searching[name] = 1000 * statistics.median(seconds[name])
            if save:
                _save(save / f"{question_set.name} {name}.jsonl", question_set, results)
        return run


def _build_index(retriever: Retriever, question_set: QuestionSet, folder: Path) -> tuple[Index, float]:
    """Return an index and the CPU seconds of its second build, when libraries are loaded and vectors cached."""
    for attempt in ("first", "again"):
        place = folder / attempt
        place.mkdir(parents=True)
        started = sum(os.times()[:4])
        index = retriever.index(question_set.pages, place)
        seconds = sum(os.times()[:4]) - started
    return index, seconds


def _ask_in_turns(
    question_set: QuestionSet, indexes: dict[str, Index]
) -> tuple[dict[str, list[Sequence[Result]]], dict[str, list[float]]]:
    """Return each retriever's results and seconds by question; every question goes to all in turn."""
    results_by_name: dict[str, list[Sequence[Result]]] = {name: [] for name in indexes}
    seconds: dict[str, list[float]] = {name: [] for name in indexes}
    for index in indexes.values():
        index.search(question_set.questions[0].text)
    for question in question_set.questions:
        for name, index in indexes.items():
            started = time.perf_counter()
            results = index.search(question.text)
            seconds[name].append(time.perf_counter() - started)
            results_by_name[name].append(results)
    return results_by_name, seconds


def _save(file: Path, question_set: QuestionSet, results: Sequence[Sequence[Result]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as out:
        for question, results_of_question in zip(question_set.questions, results, strict=True):
            rows = [{"page": r.page, "text": r.text, "heading_path": r.heading_path} for r in results_of_question]
            out.write(json.dumps({"id": question.id, "results": rows}, ensure_ascii=False) + "\n")


def _print_quality(runs: Sequence[Run]) -> None:
    from scoring import METRICS, intervals

    default, *_ = runs[0].values
    rows = []
    for heading, part in [*((run.name, [run]) for run in runs), *([(MACRO, runs)] if len(runs) > 1 else [])]:
        ours = [run.values[default] for run in part]
        for name in runs[0].values:
            theirs = [run.values[name] for run in part]
            means = sum(values.mean(axis=0) for values in theirs) / len(part)
            cells = [f"{mean:.3f}" for mean in means]
            if name != default:
                low, high = intervals(ours, theirs, RESAMPLES, SEED)
                cells = [f"{cell} [{a:+.2f}, {b:+.2f}]" for cell, a, b in zip(cells, low, high, strict=True)]
            rows.append([f"{heading} ({sum(map(len, ours))})", name, *cells])
    _print_table(["set (questions)", "retriever", *METRICS], rows)


def _print_costs(runs: Sequence[Run]) -> None:
    """Print costs as the geometric mean over the sets of the ratio to our default."""
    default, *_ = runs[0].values
    kinds: dict[str, Callable[[Run], dict[str, float]]] = {
        "query, p50": lambda run: run.searching,
        "index, processor time": lambda run: run.indexing,
        "index, bytes": lambda run: dict(run.sizes),
    }
    rows = []
    for name in runs[0].values:
        ratios = [statistics.geometric_mean(of(run)[name] / of(run)[default] for run in runs) for of in kinds.values()]
        rows.append(["", name, *(f"{ratio:.2f} x" for ratio in ratios)])
    _print_table([f"costs, {default} is 1", "retriever", *kinds], rows)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    print()
    for line in lines:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path, metavar="QUESTIONS_DIR")
    parser.add_argument("--model", type=Path, metavar="MODEL.onnx", help="a graph that pools, such as all-MiniLM-L6-v2")
    parser.add_argument("--tokenizer", type=Path, metavar="TOKENIZER.json")
    parser.add_argument("--reranker", action="append", default=[], metavar="NAME", help="a reranker of ours to add")
    parser.add_argument("--our-chunks", action="store_true", help="the peers once more, with our chunks")
    parser.add_argument("--only", choices=["ours"], help="leave out the peers")
    parser.add_argument("--neutral", action="store_true", help="find gold lines by their letters and digits alone")
    parser.add_argument("--runs", type=Path, metavar="DIR", help="keep there what each retriever found, as JSON lines")
    options = parser.parse_args()
    if (options.model is None) != (options.tokenizer is None) or not (options.model or options.only):
        parser.error("--model and --tokenizer go together; only with --only ours may both be missing.")
    for file in (options.model, options.tokenizer):
        if file is not None and not file.is_file():
            parser.error(f"{file} is no file.")
    return options


if __name__ == "__main__":
    main()
