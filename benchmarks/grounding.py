"""Train and measure the check of sentences on labelled answers of a language model.

    python benchmarks/grounding.py DATA              # out-of-fold figures
    python benchmarks/grounding.py DATA --train      # and write lambda/chapterverse_api/ext/check/weights.json
    python benchmarks/grounding.py DATA --on FILE    # what the service's own weights do on these labelled answers
    python benchmarks/grounding.py DATA --held       # what the service's own weights do on answers kept out of training
    python benchmarks/grounding.py DATA --ablation   # and what each group of features is worth
    python benchmarks/grounding.py DATA --sample 150 --to FILE   # what a second vote is asked about, without labels
    python benchmarks/grounding.py DATA --votes FILE             # and what these recorded votes change

DATA holds `answers/records.jsonl` (`labelled_answers.py` says of what form) and `corpora/`, Markdown of other sites,
for the table of terms that are common anywhere. `answers/` beside this file holds more of the same form, as its README
says: some to train with, and some that are only reported. Each question is in one of five folds, by its
own words; a fold is judged by a model that saw none of its answers. Trained on: the true claims and the planted flaws
of the other folds, flaws that `planted.py` puts into these claims by rule, claims about another site, alone and joined
to a true one, and every second sentence of `tests/ext/check/faithful.json` with such flaws. Numpy is needed here,
and nowhere in the service.

A sample for second votes is drawn by chance from all sentences, right and wrong, that the words leave undecided. A line
of it is {"id", "document", "claim"}, and a vote on it {"id", "supports"}; what was not drawn is estimated from these.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from labelled_answers import FOLDS, Answer, Report, Tally, Weights, ends, load, report
from planted import SITES, flawed, sections
from regression import logistic, sigmoid

from chapterverse.text import lexical
from chapterverse.text.sentences import split
from chapterverse_api.draft.draft import Draft
from chapterverse_api.draft.requests import Passage
from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence
from chapterverse_api.ext.check.features import FEATURES, measure_support
from chapterverse_api.ext.check.results import VerifiedDraft
from chapterverse_api.ext.check.verdict import CLASH_PENALTY, MIN_SECTION_SHARE, SupportModel, is_ruled_out, load_model
from chapterverse_api.ext.check.verifier import verify

ROOT = Path(__file__).resolve().parent.parent
WEIGHTS = ROOT / "lambda/chapterverse_api/ext/check/weights.json"
FAITHFUL = ROOT / "tests/ext/check/faithful.json"
*MORE, HELD = (ROOT / "benchmarks/answers" / f"{name}.jsonl" for name in ("training", "training2", "held"))

#: What all flaws of a type that were made by rule count for together; each planted one is 1.
BY_RULE = 20.0
#: The same for claims about another site, alone and joined to a true one: a lie must pass hardly ever.
FOREIGN = 100.0
#: What a true sentence of our own counts for, beside one of a language model.
OURS = 0.2
#: Chosen on the out-of-fold scores of the true claims: what share of them may fall below the threshold.
LOST = 0.1
#: How much more certain a citation must be that nobody claimed.
DERIVED = 1.0
#: Chosen on the same scores: what share of the true claims the words alone are not sure of, lost ones included; there a
#: second vote is asked.
UNDECIDED = 0.4


#: Chosen at random: it draws the sample for second votes.
SEED = 17
#: Also drawn from: what would be undecided if the words dropped less, this share of the true claims.
LENIENT = 0.03

#: A second vote: whether a document says a claim.
Supports = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence with its features; `fold` -1 is of no question. `is_out` says that a rule decides against it."""

    fold: int
    true: bool
    type: str
    values: tuple[float, ...]
    weight: float
    is_out: bool
    planted: bool = True


def common_terms(corpora: Path) -> dict[int, float]:
    """Return the share of sections, averaged over sites, that hold each term, of those that are not rare."""
    shares: defaultdict[int, float] = defaultdict(float)
    for site in SITES:
        held: Counter[int] = Counter()
        texts = [passage.text for _, passage in sections(corpora, site)][:400]
        for text in texts:
            held.update({word.terms[0] for word in lexical.words(text)})
        for term, count in held.items():
            shares[term] += count / len(texts) / len(SITES)
    return {term: round(share, 3) for term, share in sorted(shares.items()) if share > MIN_SECTION_SHARE}


def rows(answers: Sequence[tuple[Answer, Answer]], bare: SupportModel) -> Iterator[Row]:
    """Yield what a language model wrote, true and flawed, and what rules make of the true ones."""
    whole = [one for pair in answers for one in pair]
    weights = {site: Weights(whole, site) for site in {a.site for a in whole}}
    abroad = {
        site: [u.text for a, _ in answers if a.site != site for u in a.units if u.kind == "claim"] for site in weights
    }
    for honest, wrong in answers:
        sources = {p.id: AnalyzedPassage(p, "en") for p in honest.passages}

        def row(text: str, cited: Sequence[str], true: bool, kind: str, weight: float) -> Row:
            values, is_out = features(text, cited, sources, weights[honest.site], bare)  # noqa: B023
            return Row(honest.fold, true, kind, values, weight, is_out, planted=weight == 1.0)  # noqa: B023

        said = [u.text for u in honest.units if u.kind == "claim"]
        for unit in honest.units:
            if unit.kind == "claim" and unit.cited:
                yield row(unit.text, unit.cited, True, "", 1.0)
                seed = honest.id + unit.text
                beside = [text for text in said if text != unit.text]
                for text, kind in flawed(unit.text, honest.passages, unit.cited, beside, seed):
                    yield row(text, unit.cited, False, kind, 0.3)
                others = sorted(sources.keys() - unit.right)
                if others:
                    yield row(unit.text, [Random(seed).choice(others)], False, "wrong_source", 0.3)
        own = [u for u in honest.units if u.kind == "claim" and u.cited]
        for text in Random(honest.id).sample(abroad[honest.site], 5):
            yield row(text, [Random(text).choice(sorted(sources))], False, "foreign", 0.3)
            if own:
                true = Random(text).choice(own)
                both = f"{true.text.rstrip('.: ')}, and {text[:1].lower()}{text[1:]}"
                yield row(both, true.cited, False, "joined", 0.3)
        for unit in wrong.units:
            if unit.flaw and unit.kind == "claim":
                yield row(unit.text, unit.cited, False, unit.flaw, 1.0)


def own_rows(bare: SupportModel) -> Iterator[Row]:
    """Yield sentences of our own, every second one: the tests ask about the others."""
    written = json.loads(FAITHFUL.read_text(encoding="utf-8"))
    passages = [Passage(str(n), tuple(s["path"]), s["text"], s["text"]) for n, s in enumerate(written)]
    pairs = [(n, sentence) for n, s in enumerate(written) for sentence in s["sentences"]][::2]
    for n, sentence in pairs:
        sent = [passages[n], *passages[max(0, n - 2) : n], *passages[n + 1 : n + 3]]
        sources = {p.id: AnalyzedPassage(p, "en") for p in sent}

        def row(text: str, cited: str, true: bool, kind: str) -> Row:
            values, is_out = features(text, [cited], sources, lambda _: {}, bare)  # noqa: B023
            return Row(-1, true, kind, values, OURS, is_out, planted=False)

        yield row(sentence, str(n), True, "")
        for text, kind in flawed(sentence, sent, [str(n)], [], sentence):
            yield row(text, str(n), False, kind)
        yield row(Random(sentence).choice(pairs)[1], str(n), False, "foreign")


def features(
    text: str, cited: Sequence[str], sources: Mapping[str, AnalyzedPassage], idf: Any, bare: SupportModel
) -> tuple[tuple[float, ...], bool]:
    """Return the features of a sentence, as the service would read it, and whether they rule it out."""
    parts = [s for s in split(text) if s.plain_text]
    said = parts[0].plain_text if len(parts) == 1 else text
    sentence = AnalyzedSentence(said, "prose", "en", idf(said))
    mine = [sources[i] for i in cited if i in sources]
    values = measure_support(sentence, mine, [s for i, s in sources.items() if i not in cited], bare.rarity)
    return tuple(values[name] for name in FEATURES), is_ruled_out(values)


def fitted(data: Sequence[Row], bare: SupportModel, names: Sequence[str] = FEATURES) -> SupportModel:
    """Return a model of these rows, true ones and flaws in balance."""
    columns = [FEATURES.index(name) for name in names]
    x = np.array([[r.values[c] for c in columns] for r in data])
    y = np.array([float(r.true) for r in data])
    weight = np.array([r.weight for r in data])
    for kind in {r.type for r in data} - {""}:
        made = np.array([r.type == kind and not r.planted for r in data])
        weight[made] *= (FOREIGN if kind in ("foreign", "joined") else BY_RULE) / max(1.0, weight[made].sum())
    weight[y > 0] *= weight[y == 0].sum() / weight[y > 0].sum()
    beta, intercept = logistic(x, y, weight, 3.0)
    return replace(
        bare,
        feature_names=tuple(names),
        coefficients=tuple(round(float(b), 5) for b in beta),
        intercept=round(intercept, 5),
    )


def scores(model: SupportModel, data: Sequence[Row]) -> Any:
    """Return the score of each row."""
    columns = [FEATURES.index(name) for name in model.feature_names]
    x = np.array([[r.values[c] for c in columns] for r in data])
    return x @ np.array(model.coefficients) + model.intercept - CLASH_PENALTY * np.array([r.is_out for r in data])


def folded(
    data: Sequence[Row], bare: SupportModel, names: Sequence[str] = FEATURES
) -> tuple[list[SupportModel], Any, list[Row]]:
    """Return a model for each fold, trained without it, and the out-of-fold scores of what a language model wrote."""
    models = [fitted([r for r in data if r.fold != fold], bare, names) for fold in range(FOLDS)]
    real = [r for r in data if r.planted]
    values = np.zeros(len(real))
    for fold, model in enumerate(models):
        own = [n for n, r in enumerate(real) if r.fold == fold]
        values[own] = scores(model, [real[n] for n in own])
    return models, values, real


def area(values: Any, true: Any) -> float:
    """Return the probability that a true sentence scores above a flawed one."""
    order = np.argsort(np.argsort(values))
    return float((order[true].mean() - (true.sum() - 1) / 2) / (~true).sum())


def calibrated(values: Any, true: Any) -> tuple[float, float]:
    """Return slope and shift that turn scores into probabilities, in answers of which one claim in five is flawed."""
    weight = np.where(true, 0.8 / true.mean(), 0.2 / (1 - true.mean()))
    beta, shift = logistic(values[:, None], true.astype(float), weight, 0.0)
    return round(float(beta[0]), 4), round(shift, 4)


def summary(values: Any, real: Sequence[Row]) -> str:
    """Return how many flaws fall below the threshold at which so many true claims do."""
    true = np.array([r.true for r in real])
    held = np.sort(values[true])
    shares = {
        lost: (values[~true] < held[int(lost * len(held))]).mean() for lost in (0.03, 0.05, 0.06, 0.07, 0.08, 0.1)
    }
    return f"AUC {area(values, true):.3f}; " + ", ".join(f"{s:.2f} at {lost:.0%}" for lost, s in shares.items())


def reliability(probabilities: Any, true: Any) -> str:
    """Return the Brier score and, by fifths of the scale, what was said and what was so."""
    weight = np.where(true, 0.8 / true.mean(), 0.2 / (1 - true.mean()))
    brier = float((weight * (probabilities - true) ** 2).sum() / weight.sum())
    lines = [f"Brier score {brier:.3f} ({0.8 * 0.2:.3f} for always saying .8)"]
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        own = (probabilities >= low) & (probabilities < low + 0.2 + (low == 0.8))
        if own.sum():
            said, so = (float(np.average(v[own], weights=weight[own])) for v in (probabilities, true.astype(float)))
            lines.append(f"  {low:.1f} to {low + 0.2:.1f}: said {said:.2f}, so {so:.2f} ({own.sum()})")
    return "\n".join(lines)


def out_of_fold(
    answers: Sequence[tuple[Answer, Answer]], models: Sequence[SupportModel], supports: Supports | None = None
) -> Report:
    """Return what the whole check does, each answer judged by the model of its fold."""

    def check(draft: Draft, passages: Sequence[Passage], weights: Weights, fold: int) -> VerifiedDraft:
        return verify(draft, passages, "en", weights, models[fold], supports)

    return report(answers, check, lambda verified: verified.partial_reason is not None)


def undecided(answers: Sequence[tuple[Answer, Answer]], models: Sequence[SupportModel]) -> dict[str, tuple[str, str]]:
    """Return what a second vote is asked about, by its id: a document and a claim."""
    asked: dict[str, tuple[str, str]] = {}

    def note(document: str, claim: str) -> bool:
        asked.setdefault(vote_id(document, claim), (document, claim))
        return True

    out_of_fold(answers, models, note)
    return asked


def vote_id(document: str, claim: str) -> str:
    return hashlib.sha256(f"{document}\0{claim}".encode()).hexdigest()[:16]


def drawn(asked: Mapping[str, tuple[str, str]], count: int) -> Iterator[dict[str, str]]:
    """Yield so many of them by chance, the same ones each time."""
    for key in Random(SEED).sample(sorted(asked), min(count, len(asked))):
        document, claim = asked[key]
        yield {"id": key, "document": document, "claim": claim}


def with_votes(
    answers: Sequence[tuple[Answer, Answer]], models: Sequence[SupportModel], votes: Mapping[str, bool]
) -> Iterator[str]:
    """Yield what recorded votes make of the true claims and of the flaws, estimated where none is recorded."""

    def run(supports: Supports) -> list[bool]:
        def check(draft: Draft, passages: Sequence[Passage], weights: Weights, fold: int) -> VerifiedDraft:
            return verify(draft, passages, "en", weights, models[fold], supports)

        return [gone for _, gone in ends(answers, check)]

    def words(draft: Draft, passages: Sequence[Passage], weights: Weights, fold: int) -> VerifiedDraft:
        return verify(draft, passages, "en", weights, models[fold])

    before = ends(answers, words)
    all_against = run(lambda *_: False)
    least = run(lambda document, claim: votes.get(vote_id(document, claim), True))
    most = run(lambda document, claim: votes.get(vote_id(document, claim), False))
    claims = [
        # None where it hangs on a vote that is not recorded.
        VotedClaim(flaw, gone, against and not gone, low if low == high else None)
        for (flaw, gone), against, low, high in zip(before, all_against, least, most, strict=True)
    ]
    kinds = sorted({c.flaw for c in claims} - {""})
    for title, own in (
        ("true claims that lose their citation", [c for c in claims if not c.flaw]),
        ("planted flaws that lose theirs", [c for c in claims if c.flaw]),
        *((f"  {kind}", [c for c in claims if c.flaw == kind]) for kind in kinds),
    ):
        yield f"{title:40} {VotedShare.of(own)}"


@dataclass(frozen=True, slots=True)
class VotedClaim:
    """A claim: whether it loses its citation by the words, whether a vote is asked, and its end with that."""

    flaw: str
    gone: bool
    asked: bool
    end: bool | None


@dataclass(frozen=True, slots=True)
class VotedShare:
    """A share of claims before and with second votes.

    Attributes:
        interval: 95 % of bootstrap samples of the claims.
    """

    before: float
    asked: int
    voted: Tally
    share: float
    interval: tuple[float, float]

    @classmethod
    def of(cls, claims: Sequence[VotedClaim]) -> VotedShare:
        chance = Random(SEED)
        spread = sorted(_voted_share(chance.choices(claims, k=len(claims))) for _ in range(2000))
        voted = [c for c in claims if c.asked and c.end is not None]
        return cls(
            sum(c.gone for c in claims) / len(claims),
            sum(c.asked for c in claims),
            Tally(sum(bool(c.end) for c in voted), len(voted)),
            _voted_share(claims),
            (spread[50], spread[-51]),
        )

    def __str__(self) -> str:
        low, high = (100 * bound for bound in self.interval)
        return (
            f"{100 * self.before:5.1f} % by words, {100 * self.share:5.1f} % with votes ({low:.0f} to {high:.0f} %); "
            f"asked {self.asked}, of {self.voted.of} votes {self.voted.hits} against"
        )


def _voted_share(claims: Sequence[VotedClaim]) -> float:
    """Return the share that ends without a citation; what was not voted on ends as what was."""
    asked = [c for c in claims if c.asked]
    voted = [c.end for c in asked if c.end is not None]
    rate = sum(map(bool, voted)) / len(voted) if voted else 0.0
    return (sum(c.gone for c in claims) + rate * len(asked)) / len(claims)


def stored(model: SupportModel) -> dict[str, Any]:
    """Return the model as `weights.json` holds it."""
    shares = {str(term): round(1000 * share) for term, share in model.section_shares.items()}
    return {**{field.name: getattr(model, field.name) for field in fields(model)}, "section_shares": shares}


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--on", type=Path)
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--sample", type=int, default=150)
    parser.add_argument("--to", type=Path)
    parser.add_argument("--votes", type=Path)
    options = parser.parse_args(arguments)

    if options.held or options.on:
        print(out_of_fold(load(options.on or HELD), [load_model()] * FOLDS))
        return
    bare = SupportModel((), (), 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, common_terms(options.data / "corpora"))
    files = (options.data / "answers" / "records.jsonl", *MORE)
    answers = [answer for file in files for answer in load(file)]
    data = [*rows(answers, bare), *own_rows(bare)]
    models, values, real = folded(data, bare)
    true = np.array([r.true for r in real])
    shares = (LOST, UNDECIDED, LENIENT)
    threshold, decided, lenient = (round(float(np.sort(values[true])[int(s * true.sum())]), 3) for s in shares)
    slope, shift = calibrated(values, true)
    fixed: dict[str, Any] = {
        "threshold": threshold,
        "uncited_threshold": round(threshold + DERIVED, 3),
        "vote_threshold": decided,
        "slope": slope,
        "offset": shift,
    }
    judges = [replace(model, **fixed) for model in models]
    if options.votes:
        rows_voted = (json.loads(line) for line in options.votes.open(encoding="utf-8"))
        votes = {row["id"]: row["supports"] for row in rows_voted}
        voted = load(options.data / "answers" / "records.jsonl")
        print("\n".join(with_votes(voted, judges, votes)))
        print(f"\nif the words dropped {LENIENT:.0%} of the true claims, and votes decided on the rest:")
        print("\n".join(with_votes(voted, [replace(m, threshold=lenient) for m in judges], votes)))
        return
    if options.to:
        asked = undecided(answers, judges) | undecided(answers, [replace(m, threshold=lenient) for m in judges])
        lines = (json.dumps(one, ensure_ascii=False) for one in drawn(asked, options.sample))
        options.to.write_text("\n".join(lines) + "\n", encoding="utf-8")
        print(f"{options.to}: {options.sample} of {len(asked)}")
        return
    print(f"sentences alone: {summary(values, real)}\nthreshold {threshold}\n")
    print(reliability(sigmoid(slope * values + shift), true), "\n")
    if options.ablation:
        for left in FEATURES:
            _, without, _ = folded(data, bare, [name for name in FEATURES if name != left])
            print(f"without {left:24} {summary(without, real)}", flush=True)
    print(out_of_fold(answers, judges))
    late = [pair for pair in answers if pair[0].fold > 1]
    print("\nfolds 2 to 4, whose sentences nobody read while features were chosen:")
    print(out_of_fold(late, judges))
    if options.train:
        model = replace(fitted(data, bare), **fixed)
        WEIGHTS.write_text(json.dumps(stored(model), separators=(",", ":")) + "\n", encoding="utf-8")
        print(f"\n{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes, {len(FEATURES)} features")


if __name__ == "__main__":
    main(sys.argv[1:])
