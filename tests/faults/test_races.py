"""Publishers that start at once: one wins, the others fail with one sentence, and the index is the winner's."""

from __future__ import annotations

from pathlib import Path

from faults.amounts import STRIKES
from faults.commands import exported, index, indexing, one_sentence, write_site

RIVALS, PAGES = 2, 12


def race(folder: Path, races: int) -> None:
    sites = [write_site(folder / f"site-{i}", i, PAGES) for i in range(RIVALS)]
    clean = []
    for number, site in enumerate(sites):
        store = f"edge:{folder / f'clean-{number}'}"
        index(store, site, folder)
        clean.append(exported(store, folder))
    for number in range(races):
        store = f"edge:{folder / f'race-{number}'}"
        rivals = [indexing(store, site, folder) for site in sites]
        said = [rival.communicate()[1] for rival in rivals]
        won = [i for i, rival in enumerate(rivals) if rival.returncode == 0]
        assert won, said
        assert all(rival.returncode in (0, 1) for rival in rivals), said
        assert all(one_sentence(said[i]) for i in range(RIVALS) if i not in won), said
        # Both may win, one after the other; then the index is the work of either.
        assert exported(store, folder) in [clean[i] for i in won]


def test_of_two_publishers_at_once_one_wins(folder: Path) -> None:
    race(folder, STRIKES or 50)
