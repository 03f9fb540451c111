"""What answers without a model quote, of questions that nobody of this project wrote:

    python benchmarks/quoting.py DATA --indexes FOLDER [--sites httpx,hugo] [--only readers,references] [--show]
    python benchmarks/quoting.py DATA --indexes FOLDER --train   # and write draft/quoting/answer_scores.json

DATA and FOLDER as for `understanding.py`.

    readers       is the block quoted that answers, its sentence, in the first quote, and is it what is marked?
    references    turns of human conversations: the share of the reference answer's words that the question lacks

`cut in silence` counts lists, tables, code and announcements of which a part is left out without saying so, `repeated`
lines that stand twice; both must be 0. The limits were chosen on the sites that the weights were fitted to (httpx,
hugo, vitepress and nine of `questions/`) and on pytest, click and aiohttp. `COMPARISON_PENALTY`, and the length of
answers by `TEN_WORDS_PENALTY`, were chosen with all in view. A language model wrote those questions; it read their docs
alone and knew nothing of this project. `--sources` prints where these docs are, to be indexed under the same names.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from understanding import FOREIGN, HALVES, HELD, REPORTED, TUNED, Site, _history, read_rows, rows_about

from chapterverse.text.markdown import plain
from chapterverse_api.answer.turn import Turn
from chapterverse_api.draft.quoting import answer_scores
from chapterverse_api.ext.evaluation.quoting import (
    AnswerKey,
    bare,
    cut_in_silence,
    quoted_texts,
    repeats,
    same,
)
from chapterverse_api.rejections import make_query
from chapterverse_api.search.ranking import section_key

_LETTERS = re.compile(r"[^\W_]+")

#: Where the docs of more sites are: in DATA, or in a release. A language model that knew these docs alone wrote the
#: questions about them.
SOURCES = {
    "uv": "DATA/corpora/uv",
    "docusaurus": "DATA/corpora/docusaurus",
    "hatch": "sdist hatch 1.18.2, docs",
    "black": "sdist black 26.5.1, docs",
    "fastify": "npm fastify 5.12.8, docs",
    "undici": "npm undici 7.30.2, docs",
    "pino": "npm pino 10.4.0, docs and README.md",
    "mercurius": "npm mercurius 16.10.1, docs and README.md",
    "copier": "sdist copier 9.19.1, docs and README.md",
    "scrapy": "sdist scrapy 2.19.0, docs, built by Sphinx",
    "structlog": "sdist structlog 26.1.0, docs, indexed with --slugs sphinx",
    "cibuildwheel": "sdist cibuildwheel 4.3.5, docs",
    "celery": "sdist celery 5.7.0, docs, built by Sphinx",
    "huey": "sdist huey 3.5.4, docs, built by Sphinx",
    "django": "sdist django 6.1.3, docs without releases and internals, built by Sphinx",
    "trio": "sdist trio 0.35.0, docs, built by Sphinx",
    "coverage": "sdist coverage 7.17.5, doc, built by Sphinx",
    "marshmallow": "sdist marshmallow 4.4.0, docs, built by Sphinx",
    "pytest": "sdist pytest 9.2.0, doc/en, built by Sphinx",
    "click": "sdist click 8.5.1, docs, built by Sphinx",
    "aiohttp": "sdist aiohttp 4.0.0a1, docs, built by Sphinx",
}
TRAINED = tuple(name for name in SOURCES if name not in HELD)
#: Letters of a part that may be a piece of the key.
_LEAST = 25
WEIGHTS = Path(answer_scores.__file__).with_suffix(".json")


def added_words(reference: str, question: str) -> frozenset[str]:
    """Return the words of a reference answer that the question lacks, without those of three letters or fewer."""
    return _words(reference) - _words(question)


def held_words(words: frozenset[str], texts: Sequence[str]) -> float:
    """Return the share of words that the texts hold."""
    return len(words & _words("\n".join(texts))) / len(words) if words else 0.0


def _words(text: str) -> frozenset[str]:
    return frozenset(word for word in map(str.casefold, _LETTERS.findall(text)) if len(word) > 3)


def section_of(site: Site, answer: Mapping[str, Any], source_id: str) -> str:
    """Return the whole section of a source, as the index holds it."""
    source = next(s for s in answer["source_chunks"] if s["id"] == source_id)
    chunks = site.snapshot.page(source["url"], "url")
    own = next(c for c in chunks if c.chunk_id == source["chunk_id"])
    page = site.snapshot.page(own.source_file_path)
    return "\n\n".join(plain(c.text) for c in page if section_key(c) == section_key(own))


def cuts(site: Site, answer: Mapping[str, Any]) -> int:
    by_citation: dict[str, list[str]] = defaultdict(list)
    for segment in answer["segments"]:
        if segment["citations"]:
            by_citation[segment["citations"][0]].append(segment["text"])
    return sum(cut_in_silence("".join(texts), section_of(site, answer, i)) for i, texts in by_citation.items())


def readers(names: list[str], options: argparse.Namespace) -> None:
    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    words, seconds = list[int](), 0.0
    for name in names:
        site = Site.open(options.indexes, name, options.model)
        for row in rows_about(name, options.data):
            if row["kind"] in FOREIGN:
                continue
            history = _history(row, site)
            started = time.process_time()
            answer = site.ask(row["question"], history)
            seconds += time.process_time() - started
            refused = answer["status"] == "not_in_docs"
            found = AnswerKey(row["key"], row["begins"]).figures([] if refused else answer["segments"])
            texts = [] if refused else quoted_texts(answer["segments"])
            found |= {"quotes": float(len(texts)), "repeated": float(repeats(texts))}
            found["cut in silence"] = 0.0 if refused else float(cuts(site, answer))
            if not refused:
                words.append(len(answer["response"].split()))
            for kind in (row["kind"], "ALL"):
                for figure, value in found.items():
                    figures[figure][kind].append(value)
            if options.show:
                flags = " ".join(k for k, v in found.items() if v)
                print(f"\n{'=' * 100}\n{row['id']} {row['kind']} | {row['question']} | {answer['status']} | {flags}\n"
                      f"KEY: {row['key']}\n{'-' * 40}", file=sys.stderr)  # fmt: skip
                for segment in answer["segments"]:
                    print(segment["text"], end="", file=sys.stderr)
                    if segment.get("mark"):
                        print(f"\n>>>> {segment['mark']!r}", file=sys.stderr)
    for figure, kinds in figures.items():
        line = "  ".join(f"{kind} {sum(v) / len(v):.3f} ({len(v)})" for kind, v in sorted(kinds.items()))
        print(f"  {figure:14} {line}")
    _print_lengths(words)
    print(f"  {'CPU seconds':14} {seconds:.2f}")


def references(options: argparse.Namespace) -> None:
    site = Site.open(options.indexes, "mtrag", options.model)
    shares, words = list[float](), list[int]()
    for row in read_rows(options.data / "questions" / "mtrag-human" / "queries.jsonl"):
        if row["answerability"] == "UNANSWERABLE" or not row["answer"]:
            continue
        answer = site.ask(row["question"], row["history"])
        refused = answer["status"] == "not_in_docs"
        texts = [] if refused else quoted_texts(answer["segments"])
        shares.append(held_words(added_words(row["answer"], row["question"]), texts))
        if not refused:
            words.append(len(answer["response"].split()))
    answered = [s for s in shares if s]
    print(
        f"  share of the reference's words {statistics.mean(shares):.3f}, of answered {statistics.mean(answered):.3f}"
    )
    _print_lengths(words)


def _print_lengths(words: list[int]) -> None:
    ordered = sorted(words)
    print(f"  {'words':14} median {statistics.median(ordered):.0f}, 9th decile {ordered[len(ordered) * 9 // 10]}")


def train(options: argparse.Namespace) -> None:
    """Fit the weights of the parts: a softmax over the parts of each question that the passages answer.

    With a reading model they are those of passages that it has read.
    """
    examples: dict[str, list[tuple[Any, Any]]] = {}
    for name in (n for n in (*TUNED, *TRAINED) if n in options.sites):
        site = Site.open(options.indexes, name, options.model)
        found = [_example(row, site) for row in rows_about(name, options.data) if row["kind"] not in FOREIGN]
        examples[name] = [(features, answers) for features, answers in found if any(answers)]
    for name in examples:
        weights = _fitted([e for other in examples if other != name for e in examples[other]])
        first = [bool(answers[np.argmax(features @ weights)]) for features, answers in examples[name]]
        print(f"  {name:10} {sum(first)} of {len(first)} by the weights of the others")
    weights = _fitted([e for of_site in examples.values() for e in of_site])
    values = {name: round(float(w), 3) for name, w in zip(answer_scores.PartFeatures._fields, weights, strict=True)}
    kind = "read" if options.model != "none" else "words"
    kept = json.loads(WEIGHTS.read_text("utf-8"))
    WEIGHTS.write_text(f"{json.dumps({**kept, kind: values}, indent=1)}\n")


def _example(row: Mapping[str, Any], site: Site) -> tuple[Any, Any]:
    """Return the features of each part of a question's passages, and whether it answers."""
    query = make_query(query=row["question"], conversation_history=_history(row, site))
    request = Turn.open(query, site.session.resources).search().request
    parts, key = answer_scores.score_parts(request), bare(row["key"])
    texts = [bare(part.text) for part in parts]
    answers = [key in text or (len(text) >= _LEAST and same(key, text)) for text in texts]
    return np.array([part.features for part in parts]), np.array(answers, dtype=bool)


def _fitted(examples: list[tuple[Any, Any]], ridge: float = 0.03, steps: int = 200, rate: float = 0.1) -> Any:
    """Return the weights of least loss of the standardized features, by Adam, for the features as they are."""
    scale = np.vstack([features for features, _ in examples]).std(axis=0) + 1e-9
    scaled = [(features / scale, answers) for features, answers in examples]
    weights = np.zeros(len(scale))
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, steps + 1):
        gradient = ridge * weights
        for features, answers in scaled:
            odds = np.exp(features @ weights - np.max(features @ weights))
            right = np.where(answers, odds, 0)
            gradient += features.T @ (odds / odds.sum() - right / right.sum()) / len(examples)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient**2
        weights = weights - rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return weights / scale


class SourcesAction(argparse.Action):
    """Prints where the docs come from that `questions/` ask about, and ends."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print("\n".join(f"{name:10} {source}" for name, source in SOURCES.items()))
        parser.exit()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument(
        "--sources", action=SourcesAction, nargs=0, help="print where the docs of `questions/` are from"
    )
    parser.add_argument("--sites", default=",".join(TUNED + REPORTED + HELD), type=lambda v: v.split(","))
    parser.add_argument("--only", default="readers,references", type=lambda v: v.split(","))
    parser.add_argument("--model", default="none", help="folder of the reading model (default: without one)")
    parser.add_argument("--show", action="store_true", help="print every answer")
    parser.add_argument("--train", action="store_true", help="fit the weights of the parts first")
    options = parser.parse_args()
    if options.train:
        train(options)
        answer_scores.load_weights.cache_clear()
    for half, sites in HALVES:
        names = [name for name in sites if name in options.sites]
        if names and "readers" in options.only:
            print(f"\nreaders, {half}: {', '.join(names)}")
            readers(names, options)
    if "references" in options.only:
        print("\nreferences: mtrag")
        references(options)


if __name__ == "__main__":
    main()
