"""Concurrent publishers; tests/faults kills them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from chapterverse.embedding import Vector
from chapterverse.errors import IndexLocked
from fakes.docs import SCOPE, CountingEmbedder, prose
from indexing.site import Site


def test_of_two_publishers_one_is_turned_away_before_it_pays(site: Site) -> None:
    loser = Site(site.folder, CountingEmbedder(), pages=site.pages)

    class Rival(CountingEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            with pytest.raises(IndexLocked, match="Another process is publishing docs"):
                loser.index()
            return super().embed_documents(texts)

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
from indexing.site import Site
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
