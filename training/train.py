"""Trains the reading model.

    python training/train.py BASE DATA OUT

BASE is a folder with the weights of all-MiniLM-L6-v2, DATA one with `chunks.jsonl.xz` and `rows.jsonl.xz` (see
`examples`), OUT one for what is made. Two rounds of training: between them the first round's model reads the passages
that a search by words found too. One that it prefers to the answer probably answers too, so it is no negative example
in the second round (as in NV-Retriever; Moreira et al., 2024, arXiv 2407.15831). Each step that is done is skipped
when the command is run again, and a round that was stopped goes on from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from examples import TUNED_SITES, Corpus, Encoded, open_encoder
from reader import Reader
from torch.nn import functional

from chapterverse.reading.encoding import EncodedPair, PairEncoder

#: Questions, negative examples of each, claims and near misses in a step.
QUESTIONS, NEGATIVES, CLAIMS, NEAR_MISSES = 6, 3, 8, 2
#: How far down the search's list negative examples are taken from.
DEPTH = 6
#: Passes over the questions, and the highest learning rate, of each round.
ROUNDS = ((2.2, 1.2e-4), (1.2, 5e-5))
HEAD_LEARNING_RATE = 1e-3
#: What each loss counts beside that of the order.
BINARY, PART, SUPPORT, NEAR_MISS = 0.3, 0.5, 0.5, 0.1
CHECKPOINT_STEPS = 100
SEED = 1

Row = dict[str, Any]


class Trainer:
    """One round.

    Args:
        cleaned: for each question the chunks that are no negative examples.
    """

    def __init__(self, model: Reader, corpus: Corpus, encoder: PairEncoder, cleaned: dict[str, list[int]]) -> None:
        self._model, self._corpus, self._encoder = model, corpus, encoder
        self._encoded, self._cleaned = Encoded(corpus, encoder), cleaned
        self._questions, self._claims, self._near = corpus.of("Q"), corpus.of("TF"), corpus.of("N")

    def run(self, epochs: float, rate: float, checkpoint: Path) -> None:
        """Train, and save a checkpoint now and then; go on from the one that is there."""
        total = int(epochs * len(self._questions) / QUESTIONS)
        heads = [w for name, w in self._model.named_parameters() if not name.startswith("encoder.")]
        body = [w for w in self._model.encoder.parameters() if w.requires_grad]
        groups = [{"params": body, "lr": rate}, {"params": heads, "lr": max(rate, HEAD_LEARNING_RATE * rate / 1.2e-4)}]
        optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: _slope(step, total))
        done = 0
        if checkpoint.exists():
            state = torch.load(checkpoint, weights_only=True)
            self._model.load_state_dict(state["model"])
            optimizer.load_state_dict(state["optimizer"])
            schedule.load_state_dict(state["schedule"])
            done = state["step"]
        self._model.train()
        losses, started = defaultdict[str, float](float), time.monotonic()
        for step in range(done, total):
            # A step's examples depend on its number alone, so a round that was stopped goes on with the same ones.
            parts = self._losses(random.Random(SEED * 1_000_003 + step), step)
            optimizer.zero_grad()
            sum(parts.values()).backward()
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            for name, value in parts.items():
                losses[name] += float(value) / CHECKPOINT_STEPS
            if (step + 1) % CHECKPOINT_STEPS == 0 or step + 1 == total:
                seconds = (time.monotonic() - started) / (step + 1 - done)
                shown = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
                print(f"step {step + 1} of {total}: {shown}; {seconds:.2f} s a step", flush=True)
                losses.clear()
                _save(checkpoint, self._model, optimizer, schedule, step + 1)

    def _losses(self, chance: random.Random, step: int) -> dict[str, torch.Tensor]:
        rows = self._of_step(step)
        pairs: list[EncodedPair] = []
        for row in rows:
            pairs += self._pairs(row["q"], [row["pos"], *self._negatives(row, chance)])
        claims, near = chance.sample(self._claims, CLAIMS), chance.sample(self._near, NEAR_MISSES)
        for claim in claims:
            pairs += self._pairs(claim["q"], [claim["pos"]])
        for row in near:
            pairs += self._pairs(row["q"], [chance.choice(row["own"])])
        readings = self._model(pairs)
        relevance, each = readings.relevance, 1 + NEGATIVES
        order = relevance[: len(rows) * each].view(len(rows), each)
        first = torch.zeros_like(order)
        first[:, 0] = 1
        rest = len(rows) * each
        truths = torch.tensor([float(claim["k"] == "T") for claim in claims])
        binary = functional.binary_cross_entropy_with_logits
        return {
            "order": functional.cross_entropy(order, torch.zeros(len(rows), dtype=torch.long)),
            "binary": BINARY * binary(order, first),
            "part": PART * _part_loss([readings.parts[i * each] for i in range(len(rows))], rows),
            "support": SUPPORT * binary(readings.support[rest : rest + CLAIMS], truths),
            "near": NEAR_MISS * binary(relevance[rest + CLAIMS :], torch.zeros(NEAR_MISSES)),
        }

    def _of_step(self, step: int) -> list[Row]:
        """Return the questions of a step: each pass takes all of them, in an order of its own."""
        a_pass = len(self._questions) // QUESTIONS
        order = list(range(len(self._questions)))
        random.Random(f"{SEED} {step // a_pass}").shuffle(order)
        start = step % a_pass * QUESTIONS
        return [self._questions[i] for i in order[start : start + QUESTIONS]]

    def _negatives(self, row: Row, chance: random.Random) -> list[int]:
        """Return chunks that don't answer: all but one from the search, and one from anywhere on the site."""
        none = {*row["own"], *self._cleaned.get(row["q"], ())}
        hard = [n for n in row["top"] if n not in none][:DEPTH]
        chosen = chance.sample(hard, min(len(hard), NEGATIVES - 1))
        site = self._corpus.chunks_by_site[row["site"]]
        return chosen + [chance.choice(site) for _ in range(NEGATIVES - len(chosen))]

    def _pairs(self, question: str, chunks: Sequence[int]) -> Iterator[EncodedPair]:
        tokens = self._encoder.question(question)
        return (self._encoder.pair(tokens, self._encoded.passage(n)) for n in chunks)


def _part_loss(parts: Sequence[torch.Tensor], rows: Sequence[Row]) -> torch.Tensor:
    """Return how unlikely the answering parts are among all of their passage; those beyond its end don't count."""
    losses = []
    for values, row in zip(parts, rows, strict=True):
        answering = [n for n in row["parts"] if n < len(values)]
        if answering:
            losses.append(-functional.log_softmax(values, 0)[answering].mean())
    return torch.stack(losses).mean() if losses else torch.zeros(())


def _slope(step: int, total: int) -> float:
    """Return the share of the highest learning rate: up over a twelfth of the steps, then down to nearly nothing."""
    up = max(1, total // 12)
    return min((step + 1) / up, max(0.02, (total - step) / max(1, total - up)))


def _save(path: Path, model: Reader, optimizer: Any, schedule: Any, step: int) -> None:
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        "step": step,
    }
    temporary = path.with_suffix(".part")
    torch.save(state, temporary)
    temporary.replace(path)


@torch.no_grad()
def relevance(
    model: Reader, encoder: PairEncoder, encoded: Encoded, question: str, chunks: Sequence[int]
) -> list[float]:
    model.eval()
    tokens = encoder.question(question)
    scores: list[float] = model([encoder.pair(tokens, encoded.passage(n)) for n in chunks]).relevance.tolist()
    return scores


def find_other_answers(model: Reader, corpus: Corpus, encoder: PairEncoder, path: Path) -> dict[str, list[int]]:
    """Return for each question the chunks of the search that the model prefers to the answer."""
    if path.exists():
        return {question: list(chunks) for question, chunks in json.loads(path.read_text("utf-8")).items()}
    found: dict[str, list[int]] = {}
    encoded = Encoded(corpus, encoder)
    questions = corpus.of("Q")
    for at, row in enumerate(questions):
        hard = [n for n in row["top"] if n not in row["own"]][:DEPTH]
        own, *others = relevance(model, encoder, encoded, row["q"], [row["pos"], *hard])
        found[row["q"]] = [n for n, value in zip(hard, others, strict=True) if value >= own]
        if at % 500 == 0:
            print(f"read the passages of {at} of {len(questions)} questions", flush=True)
    path.write_text(json.dumps(found), "utf-8")
    return found


@torch.no_grad()
def report(model: Reader, corpus: Corpus, encoder: PairEncoder, sites: frozenset[str]) -> None:
    """Print how well the model does alone on the questions and claims of sites that it was not trained on."""
    model.eval()
    encoded, seen, first, marked, ranks = Encoded(corpus, encoder), 0, 0, 0, 0.0
    for row in random.Random(3).sample(corpus.of("Q", sites=sites), 150):
        if row["pos"] not in row["top"]:
            continue
        values = relevance(model, encoder, encoded, row["q"], row["top"])
        rank = sorted(range(len(values)), key=lambda i: -values[i]).index(row["top"].index(row["pos"]))
        parts = model([encoder.pair(encoder.question(row["q"]), encoded.passage(row["pos"]))]).parts[0]
        seen, first, ranks = seen + 1, first + (rank == 0), ranks + 1 / (rank + 1)
        marked += bool(len(parts)) and int(parts.argmax()) in row["parts"]
    print(
        f"{seen} questions: first {first / seen:.3f}, mean reciprocal rank {ranks / seen:.3f}, part {marked / seen:.3f}"
    )
    claims = corpus.of("TF", sites=sites)
    values = []
    for row in claims:
        pair = encoder.pair(encoder.question(row["q"]), encoded.passage(row["pos"]))
        values.append(float(model([pair]).support[0]))
    true = [v for v, r in zip(values, claims, strict=True) if r["k"] == "T"]
    false = [v for v, r in zip(values, claims, strict=True) if r["k"] == "F"]
    wins = sum((t > f) + 0.5 * (t == f) for t in true for f in false) / (len(true) * len(false))
    print(f"{len(true)} true and {len(false)} false claims: AUC {wins:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", type=Path, help="folder with the base weights and their tokenizer.json")
    parser.add_argument("data", type=Path, help="folder with chunks.jsonl.xz and rows.jsonl.xz")
    parser.add_argument("out", type=Path, help="folder for checkpoints; what it holds is not made again")
    parser.add_argument("--threads", type=int, help="processor threads (default: PyTorch's own)")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(SEED)
    # Tiny numbers slow a processor down tenfold, and add nothing.
    torch.set_flush_denormal(True)
    args.out.mkdir(parents=True, exist_ok=True)
    corpus, encoder, model = Corpus.read(args.data), open_encoder(args.base), Reader(args.base)
    cleaned: dict[str, list[int]] = {}
    for number, (epochs, rate) in enumerate(ROUNDS, start=1):
        finished = args.out / f"round{number}.pt"
        if not finished.exists():
            Trainer(model, corpus, encoder, cleaned).run(epochs, rate, args.out / f"round{number}-checkpoint.pt")
            torch.save(model.state_dict(), finished)
        model.load_state_dict(torch.load(finished, weights_only=True))
        report(model, corpus, encoder, TUNED_SITES)
        if number < len(ROUNDS):
            cleaned = find_other_answers(model, corpus, encoder, args.out / f"other-answers{number}.json")
    assert math.isfinite(sum(float(w.sum()) for w in model.parameters()))


if __name__ == "__main__":
    main()
