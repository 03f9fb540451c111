from __future__ import annotations

from chapterverse.sync import preview
from fakes.docs import CountingEmbedder, prose
from syncing.site import Site, numbers


def test_a_preview_tells_what_index_would_do_and_writes_nothing(site: Site) -> None:
    empty = preview(site.sources(), site.target)
    assert numbers(empty) == {"total": 6, "new": 6}
    assert site.files() == {}
    site.index()
    for edit in (
        lambda: None,
        lambda: site.put("a.md", "Other words."),
        lambda: site.pages.pop("b.md"),
        lambda: site.put("d.md", prose(("c", 1))),
        lambda: setattr(site, "embedder", CountingEmbedder("other")),
        lambda: (site.folder / "index" / "ledger.sqlite").unlink(),
    ):
        edit()
        before = site.files()
        told = preview(site.sources(), site.target)
        # The engine touches files that it opens, and changes none.
        assert {k: content for k, (_, content) in site.files().items()} == {
            k: content for k, (_, content) in before.items()
        }
        done = site.index()
        assert numbers(told) == numbers(done)
        assert told.files == done.files
        assert told.embedded == done.embedded
        assert told.diff == done.diff


def test_a_preview_calls_no_model(site: Site) -> None:
    preview(site.sources(), site.target)
    assert site.embedder is not None
    assert site.embedder.seen == []
