"""Publishers killed at each of their steps.

A step is any call that reaches outside of the process, found by watching a run (see `faults.steps`): whoever adds one
to a store, a ledger or sync adds a kill here. CHAPTERVERSE_STRIKES says how many steps of each kind the slow tests
strike at; 0 means every single one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from faults.ground import Ground, Nurseries
from faults.kinds import S3, Embedded, Kind, Postgres, Qdrant
from faults.scenarios import SCENARIOS
from faults.steps import Step, Strike

EACH = int(os.environ.get("CHAPTERVERSE_STRIKES", "3"))
#: Strikes in the normal suite at steps to a server.
_FEW = 3


def strike_all(ground: Ground, nurseries: Nurseries, strike: Strike, stops: Sequence[int]) -> None:
    wrong = nurseries.each(stops, lambda nursery, stop: ground.try_strike(nursery, stop, strike))
    assert not wrong, f"{len(wrong)} strikes left something wrong:\n\n" + "\n\n".join(wrong[:5])


def test_a_kill_at_any_kind_of_step_leaves_the_old_index_or_the_new_one(folder: Path, nurseries: Nurseries) -> None:
    ground = Ground.laid(SCENARIOS["edit"], folder, nurseries)
    stops = ground.chosen(each=1)
    assert {ground.steps[stop - 1] for stop in stops[:-1]} == set(ground.steps)
    # Whatever the watch must not miss: the copy, its seal, the move of the head, what is retired, the ledger.
    assert {
        Step("FileIO.write", "store.files:_copy_file"),
        Step("EdgeShard.update", "store.draft:ShardDraft._update"),
        Step("EdgeShard.flush", "store.draft:ShardDraft.seal"),
        Step("fsync", "store.files:_sync"),
        Step("replace", "store.heads:write_head"),
        Step("rmdir", "store.edge:_retire"),
        Step("Connection.execute", "database.sqlite:_SqliteStatements.change"),
    } <= set(ground.steps)
    strike_all(ground, nurseries, Strike.KILL, stops)


@pytest.mark.parametrize("kind", [Qdrant(), S3()], ids=["qdrant", "s3"])
def test_a_kill_at_some_steps_to_a_server_leaves_the_old_index_or_the_new_one(
    kind: Kind, folder: Path, nurseries: Nurseries
) -> None:
    ground = Ground.laid(SCENARIOS["edit"], folder, nurseries, kind)
    stops = ground.chosen(each=1)
    strike_all(ground, nurseries, Strike.KILL, stops[:: len(stops) // _FEW])


@pytest.mark.slow
@pytest.mark.parametrize("strike", Strike)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_strike_at_any_step_leaves_the_old_index_or_the_new_one(
    scenario: str, strike: Strike, folder: Path, nurseries: Nurseries
) -> None:
    ground = Ground.laid(SCENARIOS[scenario], folder, nurseries, Embedded())
    strike_all(ground, nurseries, strike, ground.chosen(EACH))


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("kind", [Qdrant(), S3(), Postgres()], ids=["qdrant", "s3", "postgres"])
def test_a_kill_at_any_step_to_a_server_leaves_the_old_index_or_the_new_one(
    kind: Kind, scenario: str, folder: Path, nurseries: Nurseries
) -> None:
    ground = Ground.laid(SCENARIOS[scenario], folder, nurseries, kind)
    strike_all(ground, nurseries, Strike.KILL, ground.chosen(min(EACH, 1)))
