"""Publishing to a server through a misbehaving proxy."""

from __future__ import annotations

import pytest

from faults.amounts import STRIKES
from faults.ground import Grounds, Nurseries
from faults.kinds import S3, Qdrant, Remote
from faults.proxy import Trouble

#: How often a deployment meets each trouble.
SEEDS = STRIKES or 25


@pytest.mark.parametrize("trouble", Trouble)
@pytest.mark.parametrize("kind", [Qdrant(), S3()], ids=["qdrant", "s3"])
def test_any_bad_wire_leaves_the_old_index_or_the_new_one(
    kind: Remote, trouble: Trouble, grounds: Grounds, nurseries: Nurseries
) -> None:
    ground = grounds.get("edit", kind)
    wrong = nurseries.each(range(1, SEEDS + 1), lambda nursery, seed: ground.try_trouble(nursery, trouble, seed))
    assert not wrong, f"{len(wrong)} runs left something wrong:\n\n" + "\n\n".join(wrong[:5])
