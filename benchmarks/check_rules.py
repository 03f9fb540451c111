"""What each rule of the check of sentences wins alone: each is switched off in turn, with the weights as they are.

    python benchmarks/check_rules.py DATA [RULE …]

Asked are the labelled answers that weights are chosen on (`grounding.py` says which), never those that are held back.
Printed are the true claims and true code that lose their citation without the rule, the flaws that are caught, and the
whole answers called partial, each as the change that the rule makes. What only protects from hostile text shows nothing
here; its tests are in `tests/api/check`. `grounding.py --ablation` does the same for what is in the weights.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

from grounding import MORE, out_of_fold
from labelled_answers import FOLDS, Answer, Report, load

from chapterverse_api.ext.check import (
    analyzed_text,
    claims,
    cues,
    features,
    verdict,
    verifier,
)
from chapterverse_api.ext.check.verdict import load_model

_NEVER = re.compile(r"(?!)")
_off = mock.patch.object


def _without_feature(name: str) -> Callable[[], AbstractContextManager[Any]]:
    measure = features.measure_support
    return lambda: _off(verdict, "measure_support", lambda *args: {**measure(*args), name: 0.0})


#: Each rule, and what switches it off.
RULES: Mapping[str, Callable[[], AbstractContextManager[Any]]] = {
    "-": nullcontext,
    "a verbatim sentence needs no score": lambda: _off(
        analyzed_text.AnalyzedPassage, "normalized_excerpts", frozenset[str]()
    ),
    "brief sentences by one clause": lambda: _off(verdict, "MIN_WORDS", 0),
    "a number that no source has": _without_feature("missing_digits"),
    "an identifier that no source has": lambda: _off(features, "_lacks_identifier", lambda *_: False),
    "numbers alone by one clause": lambda: _off(verdict, "_NUMBER_CHARS", ""),
    "most of the words missing": lambda: _off(verdict, "_MAX_MISSING_SHARE", 2.0),
    "most of a clause missing": lambda: _off(verdict, "_MAX_CLAUSE_MISSING_SHARE", 2.0),
    "many words missing in a row": _without_feature("missing_run"),
    "a contradiction of the same subject": lambda: _off(verdict, "_MIN_SAME_SUBJECT", 2.0),
    "citations move": lambda: _off(verifier, "most_similar", lambda *_: []),
    "a citation that nobody claims needs more": lambda: _off(
        verifier, "load_model", lambda: _with_threshold(load_model().threshold)
    ),
    "words without a claim": lambda: _off(verifier, "says_nothing", lambda *_: False),
    "sentences that are no claim": lambda: _off(verifier, "is_claim", lambda *_: True),
    "forms of a heading, a colon, a gap": lambda: _off(claims, "_is_announcement", lambda *_: False),
    "statements of a gap": lambda: _off(claims, "_states_only_gaps", lambda *_: False),
    "according to the docs": lambda: _off(analyzed_text, "_ATTRIBUTION", _NEVER),
    "yes or no before a sentence": lambda: _off(analyzed_text, "_YES_OR_NO", _NEVER),
    "a bare cell is its column's value": lambda: _off(cues, "cell_value", lambda _: None),
    "headings and introductions count": lambda: _off(analyzed_text, "_CONTEXT_WEIGHT", 0.0),
    "the shorter excerpt": lambda: _off(analyzed_text, "_LENGTH_PENALTY", 0.0),
    "conjunctions begin a clause": lambda: _off(analyzed_text, "_CLAUSE_WORDS", frozenset[str]()),
    "not only, no longer": lambda: _off(analyzed_text, "_NOT_ONLY", frozenset[str]()),
    "two denials are none": lambda: _off(analyzed_text.AnalyzedText, "is_denied", lambda *_: False),
    "a name is held by its parts": lambda: _off(features, "holds", lambda terms, word: word[0] in terms),
    "words of one beginning": lambda: _off(analyzed_text.AnalyzedPassage, "prefixes", frozenset[str]()),
    "code by its names": lambda: _off(features, "_NAMES", _NEVER),
    "capitalized names": lambda: _off(features, "_CAPITALIZED", _NEVER),
    "the opposite of a word": lambda: _off(cues, "opposites", dict[str, frozenset[str]]),
    "another number in the place": lambda: _off(features, "_has_another_number", lambda *_: False),
    "words that changed places": lambda: _off(features, "_is_exchanged", lambda *_: False),
    "only one clause of two negated": lambda: _off(features, "_negation_mismatch", lambda *_: 0.0),
    "a denied cell": lambda: _off(features, "_denies", lambda *_: False),
    "number words": lambda: _off(cues, "_values", lambda _: {}),
    "units": lambda: _off(cues, "_UNITS", dict[str, str]()),
    "placeholders in code": lambda: _off(verdict, "_PLACEHOLDER", _NEVER),
    "comments behind code": lambda: _off(verdict, "_TRAILING_COMMENT", _NEVER),
    "marks of items and prompts": lambda: _off(analyzed_text, "_LINE_MARKS", _NEVER),
}


def _with_threshold(uncited: float) -> Any:
    from dataclasses import replace

    return replace(load_model(), uncited_threshold=uncited)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("rules", nargs="*", help="all if left out")
    options = parser.parse_args()
    answers = [pair for file in (options.data / "answers" / "records.jsonl", *MORE) for pair in load(file)]
    whole = measure(answers, "-")
    print(f"{'-':46} {_figures(whole)}")
    for rule in options.rules or [rule for rule in RULES if rule != "-"]:
        without = measure(answers, rule)
        print(f"{rule:46} {_figures(without)}  it changes {_changes(whole, without)}", flush=True)


def measure(answers: Sequence[tuple[Answer, Answer]], rule: str) -> Report:
    """Return what the check does without a rule."""
    # What was read with a rule must not be remembered without it.
    analyzed_text._terms.cache_clear()
    with RULES[rule]():
        # A rule may have replaced it there.
        return out_of_fold(answers, [vars(verifier)["load_model"]()] * FOLDS)


def _counts(report: Report) -> tuple[int, ...]:
    return (report.lost.hits, report.code.hits, report.all_caught.hits, report.partial.hits, report.open.hits)


_NAMES = ("lost", "code", "caught", "partial", "open")


def _figures(report: Report) -> str:
    return "  ".join(f"{name} {count:4}" for name, count in zip(_NAMES, _counts(report), strict=True))


def _changes(whole: Report, without: Report) -> str:
    changes = zip(_NAMES, _counts(whole), _counts(without), strict=True)
    return " ".join(f"{name} {now - then:+}" for name, now, then in changes if now != then) or "nothing"


if __name__ == "__main__":
    main()
