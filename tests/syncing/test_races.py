"""Publishers that meet, and publishers that are killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from chapterverse.errors import IndexLocked
from fakes.docs import SCOPE, CountingEmbedder, prose
from syncing.site import Site, assert_is_a_clean_build


def test_of_two_publishers_one_is_turned_away_before_it_pays(site: Site) -> None:
    loser = Site(site.folder, CountingEmbedder(), pages=site.pages)

    class Rival(CountingEmbedder):
        def embed_documents(self, texts: object) -> list[tuple[float, ...]]:
            with pytest.raises(IndexLocked, match="Another process is publishing docs"):
                loser.index()
            return super().embed_documents(texts)  # type: ignore[arg-type]

    site.embedder = Rival()
    assert site.index().generation == 1
    assert loser.embedder is not None
    assert loser.embedder.seen == []
    assert loser.index().generation == 1
    assert loser.embedder.seen == []


PUBLISH = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from chapterverse.errors import IndexLocked
from fakes.docs import CountingEmbedder, prose
from syncing.site import Site
site = Site(Path(sys.argv[1]), CountingEmbedder())
name = sys.argv[3]
won = lost = 0
for i in range(6):
    for j in range(20):
        site.put(f"{j}.md", prose((name, i, j)))
    try:
        site.index()
        won += 1
    except IndexLocked:
        lost += 1
print(won, lost)
"""


def test_processes_that_publish_at_once_leave_the_work_of_one(site: Site) -> None:
    command = [sys.executable, "-c", PUBLISH, str(site.folder), str(Path(__file__).parents[1])]
    rivals = [subprocess.Popen([*command, name], stdout=subprocess.PIPE, text=True) for name in ("x", "y", "z")]
    results = [list(map(int, rival.communicate(timeout=120)[0].split())) for rival in rivals]
    assert [rival.returncode for rival in rivals] == [0, 0, 0]
    assert sum(won for won, _ in results) >= 1
    assert sum(won + lost for won, lost in results) == 18
    texts = {c.text for c in site.stored().values()}
    whole = [{prose((name, i, j)) for j in range(20)} for name in "xyz" for i in range(6)]
    assert texts in whole
    assert site.store.snapshot(SCOPE).head.generation == sum(won for won, _ in results)


# Kills

KILLED = """
import os, sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from fakes.docs import CountingEmbedder, prose
from syncing.site import Site
from chapterverse import sync
site = Site(Path(sys.argv[1]), CountingEmbedder())
for j in range(8):
    site.put(f"{j}.md", prose(("after", j)))
target = site.target
ledger, store = target.ledger, target.store
stop = sys.argv[3]

class Dying:
    def __init__(self, real): self._real = real
    def __getattr__(self, name):
        if name == stop.removeprefix("before "): os._exit(9)
        return getattr(self._real, name)

from dataclasses import replace
if stop == "before save":
    target = replace(target, ledger=Dying(ledger))
if stop == "after save":
    class Saved(Dying):
        def save(self, *a):
            self._real.save(*a); os._exit(9)
    target = replace(target, ledger=Saved(ledger))
sync.index(site.sources(), target)
"""


@pytest.mark.parametrize("moment", ["before save", "after save"])
def test_a_kill_around_the_ledger_costs_nothing(site: Site, moment: str) -> None:
    site.pages = {}
    for j in range(8):
        site.put(f"{j}.md", prose(("before", j)))
    site.index()
    done = subprocess.run([sys.executable, "-c", KILLED, str(site.folder), str(Path(__file__).parents[1]), moment])
    assert done.returncode == 9
    for j in range(8):
        site.put(f"{j}.md", prose(("after", j)))
    report = site.index()
    assert report.embedded == 0
    assert report.generation == 2
    assert_is_a_clean_build(site)
