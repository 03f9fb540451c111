"""After any history of edits the index equals a clean build's."""

from __future__ import annotations

import random

import pytest

from chapterverse.indexing.chunking import chunk
from fakes.docs import SCOPE, prose
from indexing.site import Site, assert_is_a_clean_build, bare


def edit(site: Site, chance: random.Random) -> None:
    """Do to a site what authors do."""
    paths = sorted(site.pages)
    what = chance.choice(["add", "edit", "insert", "delete", "rename", "copy", "swap", "language", "break", "mend"])
    path = chance.choice(paths)
    texts = [s.blocks[0].text for s in site.pages[path].sections]
    if what == "add":
        site.put(f"{chance.randrange(100)}.md", *(prose(chance.random()) for _ in range(chance.randint(0, 3))))
    elif what == "edit" and texts:
        texts[chance.randrange(len(texts))] = prose(chance.random())
        site.put(path, *texts)
    elif what == "insert":
        site.put(path, prose(chance.random()), *texts)
    elif what == "delete" and len(paths) > 2:
        del site.pages[path]
    elif what == "rename":
        del site.pages[path]
        site.put(f"moved/{path}"[-60:], *texts)
    elif what == "copy":
        site.put(f"copy-{path}"[-60:], *texts)
    elif what == "swap":
        other = chance.choice(paths)
        mine, theirs = site.pages[path], site.pages[other]
        site.put(path, *(s.blocks[0].text for s in theirs.sections))
        site.put(other, *(s.blocks[0].text for s in mine.sections))
    elif what == "language":
        site.put(path, *texts, language=chance.choice(["en", "de"]))
    elif what == "break":
        (site.folder / "index" / "ledger.sqlite").unlink(missing_ok=True)


def live_history(site: Site, seed: int, steps: int) -> None:
    chance = random.Random(seed)
    site.index()
    for _ in range(steps):
        for _ in range(chance.randint(1, 4)):
            edit(site, chance)
        held = {c.embed_hash for c in site.stored().values()}
        wanted = [c for p in site.pages.values() for c in chunk(p, SCOPE, site.target.card.fingerprint)]
        report = site.index()
        assert bare(site.stored().values()) == bare(wanted)
        assert report.embedded == len({c.embed_hash for c in wanted} - held)
        assert report.total == len(wanted)
        assert report.kept >= 0
        counts = report.to_json()["chunks"]
        assert counts["total"] == counts["new"] + counts["kept"] + counts["moved"]
        before = site.files()
        assert site.index().embedded == 0
        assert site.files() == before
    assert_is_a_clean_build(site)


@pytest.mark.parametrize("seed", range(2))
def test_any_history_ends_in_a_clean_build(site: Site, seed: int) -> None:
    live_history(site, seed, 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 15))
def test_long_histories_end_in_clean_builds(site: Site, seed: int) -> None:
    live_history(site, seed, 25)
