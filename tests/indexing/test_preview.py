from __future__ import annotations

from dataclasses import replace

from chapterverse.indexing.sync import index, preview
from fakes.docs import CountingEmbedder, prose
from indexing.site import Site, numbers


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


def test_without_a_model_nothing_costs_anything(site: Site) -> None:
    site.embedder = None
    for run in (preview, index):
        report = run(site.sources(), site.target)
        assert (report.tokens, report.cost) == (0, 0.0)
        assert "$" not in str(report)


def test_a_preview_tells_each_page_by_what_would_happen_to_it(site: Site) -> None:
    site.index()
    site.pages["moved.md"] = replace(site.pages.pop("a.md"), file_path="moved.md")
    site.put("b.md", "Other words.")
    site.put("d.md", "New words.")
    del site.pages["c.md"]
    told = preview(site.sources(), site.target)
    assert told.diff_json() == {
        "new": ["d.md"],
        "changed": ["b.md"],
        "moved": [{"from": "a.md", "to": "moved.md"}],
        "removed": ["c.md"],
        "tokens": 0,
        "cost_usd": 0.0,
    }
    assert list(told.diff_lines()) == [
        "new      d.md",
        "moved    a.md -> moved.md",
        "changed  b.md",
        "removed  c.md",
    ]
    assert told.embedded == 2


def test_a_plan_for_people_names_the_first_of_many_pages(site: Site) -> None:
    for i in range(40):
        site.put(f"{i:02}.md", prose(i))
    lines = list(preview(site.sources(), site.target).diff_lines())
    assert (len(lines), lines[0]) == (21, "new      00.md")
    assert lines[-1] == "new      … and 23 more; --json lists them all"
