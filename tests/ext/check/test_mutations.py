"""The verifier on sentences of our own: what it lets pass, and that it catches what no model's sentence should hide.

The sentences of even number are among those that the check is trained on; the bars are asserted on the others. They
keep a change from breaking the check. How well it works on what language models write is measured by
`benchmarks/grounding.py` on sentences of theirs, and says less of negations and swapped numbers than ours did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from random import Random

import pytest

from chapterverse_api.draft.draft import Span
from chapterverse_api.ext.check.verifier import verify
from ext.check import mutations
from ext.check.mutations import Case, Weights

CASES = mutations.load()
REPORTED = CASES[1::2]
WEIGHTS = Weights(CASES)
#: Foreign sentences drawn for each faithful one.
DRAWN = 4


@cache
def weigh(text: str) -> Mapping[int, float]:
    return WEIGHTS.weigh(text)


def is_unsupported(sentence: str, case: Case, *, cited: bool = True) -> bool:
    """Whether a sentence that cites the case's own passage ends without any citation."""
    verified = verify((Span(sentence, ("1",) if cited else ()),), case.passages, "en", weigh)
    return not any(span.citations for span in verified.spans)


def share(mutate: Callable[[Case, Random], Iterable[str]], *, cited: bool = True) -> float:
    """Return the share of sentences, in percent, that end so."""
    chance = Random(1)
    caught = [is_unsupported(s, case, cited=cited) for case in REPORTED for s in mutate(case, chance)]
    assert len(caught) >= 15
    return 100 * sum(caught) / len(caught)


def test_the_set_is_large_and_from_several_pages() -> None:
    assert len(CASES) >= 200
    assert len({case.page for case in CASES}) >= 10
    # Nothing is quoted: these are other words.
    assert sum(case.sentence in case.passages[0].text for case in CASES) <= 0.02 * len(CASES)


@pytest.mark.parametrize("same_site", [True, False])
def test_foreign_sentences_are_caught(same_site: bool) -> None:
    def foreign(case: Case, chance: Random) -> Iterable[str]:
        return [mutations.foreign(case, CASES, chance, same_site=same_site) for _ in range(DRAWN)]

    assert share(foreign) >= 95


def test_changed_numbers_and_names_are_caught() -> None:
    assert share(lambda case, chance: mutations.changed_numbers(case.sentence, chance)) >= 90
    assert share(lambda case, chance: mutations.changed_names(case, CASES, chance)) >= 90


def test_few_faithful_sentences_are_flagged() -> None:
    assert share(lambda case, _: [case.sentence]) <= 12
    # Nobody claims them: that takes more.
    assert share(lambda case, _: [case.sentence], cited=False) <= 25
