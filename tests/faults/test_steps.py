"""Publishers killed at each of their steps.

A step is any call that reaches outside of the process, found by watching a run (see `faults.steps`): whoever adds one
to a store, a ledger or sync adds a kill here. One deployment is struck at every kind of step, the others at some, and
in a nightly run at every single one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from faults.amounts import STRIKES
from faults.ground import Ground, Grounds, Nurseries
from faults.kinds import S3, Kind, Postgres, Qdrant
from faults.scenarios import SCENARIOS
from faults.steps import Step, Strike


def strike_all(ground: Ground, nurseries: Nurseries, strike: Strike, stops: Sequence[int]) -> None:
    wrong = nurseries.each(stops, lambda nursery, stop: ground.try_strike(nursery, stop, strike))
    assert not wrong, f"{len(wrong)} strikes left something wrong:\n\n" + "\n\n".join(wrong[:5])


def test_a_kill_at_any_kind_of_step_leaves_the_old_index_or_the_new_one(grounds: Grounds, nurseries: Nurseries) -> None:
    ground = grounds.get("edit")
    stops = ground.last_of_each_kind()
    assert {ground.steps[stop - 1] for stop in stops[:-1]} == set(ground.steps)
    # Whatever the watch must not miss: the copy, its seal, the move of the head, what is retired, the ledger.
    assert {
        Step("FileIO.write", "store.files:_copy_file"),
        Step("EdgeShard.update", "store.shard_draft:ShardDraft._update"),
        Step("EdgeShard.flush", "store.shard_draft:ShardDraft.seal"),
        Step("fsync", "store.files:sync_path"),
        Step("replace", "store.edge:write_head"),
        Step("rmdir", "store.edge:_clear"),
        Step("Connection.execute", "database:_SqliteStatements.change"),
    } <= set(ground.steps)
    strike_all(ground, nurseries, Strike.KILL, stops)


@pytest.mark.parametrize("strike", Strike)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_strike_at_any_step_leaves_the_old_index_or_the_new_one(
    scenario: str, strike: Strike, grounds: Grounds, nurseries: Nurseries
) -> None:
    ground = grounds.get(scenario)
    strike_all(ground, nurseries, strike, ground.sample(STRIKES, strike))


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("kind", [Qdrant(), S3(), Postgres()], ids=["qdrant", "s3", "postgres"])
def test_a_kill_at_any_step_to_a_server_leaves_the_old_index_or_the_new_one(
    kind: Kind, scenario: str, grounds: Grounds, nurseries: Nurseries
) -> None:
    ground = grounds.get(scenario, kind)
    strike_all(ground, nurseries, Strike.KILL, ground.sample(STRIKES, type(kind).__name__))
