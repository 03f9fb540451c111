"""Publishers that are struck at each of their steps.

A step is any call that reaches outside of the process, found by watching a run (see `faults.steps`): whoever adds one to
the store, the ledger or sync adds a kill here.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from faults.ground import Ground, Nurseries
from faults.scenarios import SCENARIOS
from faults.steps import Strike

#: Strikes at each kind of step in the slow tests: the last, the first, and others; 0 for every single step.
EACH = int(os.environ.get("CHAPTERVERSE_STRIKES", "3"))


def strike_all(ground: Ground, nurseries: Nurseries, strike: Strike, each: int) -> None:
    wrong = nurseries.each(ground.chosen(each), lambda nursery, stop: ground.try_strike(nursery, stop, strike))
    assert not wrong, f"{len(wrong)} strikes left something wrong:\n\n" + "\n\n".join(wrong[:5])


@pytest.mark.parametrize("scenario", ["first build", "edit"])
def test_a_kill_at_any_kind_of_step_leaves_the_old_index_or_the_new_one(
    scenario: str, folder: Path, nurseries: Nurseries
) -> None:
    strike_all(Ground.laid(SCENARIOS[scenario], folder, nurseries), nurseries, Strike.KILL, each=1)


@pytest.mark.slow
@pytest.mark.parametrize("strike", Strike)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_strike_at_any_step_leaves_the_old_index_or_the_new_one(
    scenario: str, strike: Strike, folder: Path, nurseries: Nurseries
) -> None:
    strike_all(Ground.laid(SCENARIOS[scenario], folder, nurseries), nurseries, strike, EACH)
