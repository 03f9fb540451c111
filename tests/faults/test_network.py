"""Publishing to a server through a misbehaving proxy."""

from __future__ import annotations

import pytest

from faults.amounts import STRIKES
from faults.ground import Ground, Grounds, Nurseries
from faults.kinds import S3, Qdrant, Remote
from faults.proxy import Trouble

#: How often a deployment meets each trouble in the slow tests.
SEEDS = STRIKES or 25
#: Of the normal suite: an answer that is lost, one request done twice, and a gateway that fails.
FEW = (Trouble.RESET, Trouble.DUPLICATED, Trouble.BROKEN)
STORES = pytest.mark.parametrize("kind", [Qdrant(), S3()], ids=["qdrant", "s3"])


def assert_nothing_is_wrong(ground: Ground, nurseries: Nurseries, troubles: list[tuple[Trouble, int]]) -> None:
    wrong = nurseries.each(troubles, lambda nursery, trouble: ground.try_trouble(nursery, *trouble))
    assert not wrong, f"{len(wrong)} runs left something wrong:\n\n" + "\n\n".join(wrong[:5])


@STORES
def test_a_bad_wire_leaves_the_old_index_or_the_new_one(kind: Remote, grounds: Grounds, nurseries: Nurseries) -> None:
    ground = grounds.get("edit", kind)
    assert_nothing_is_wrong(ground, nurseries, [(trouble, 0) for trouble in FEW])


@pytest.mark.slow
@pytest.mark.parametrize("trouble", Trouble)
@STORES
def test_any_bad_wire_leaves_the_old_index_or_the_new_one(
    kind: Remote, trouble: Trouble, grounds: Grounds, nurseries: Nurseries
) -> None:
    ground = grounds.get("edit", kind)
    assert_nothing_is_wrong(ground, nurseries, [(trouble, seed) for seed in range(1, SEEDS + 1)])
