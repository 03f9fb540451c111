from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chapterverse.errors import IndexMissing
from chapterverse.ledger.sqlite import SqliteLedger
from chapterverse.model import EmbedderCard, Scope, Source
from chapterverse.states import States, derive
from chapterverse.store.edge import EdgeStore
from chapterverse.sync import Target, index
from fakes.docs import BASE_URL, SCOPE, page, prose, section, source


@pytest.fixture
def target(tmp_path: Path) -> Target:
    return Target(SCOPE, EdgeStore(tmp_path), SqliteLedger(tmp_path / "ledger.sqlite"), base_url=BASE_URL)


def offered(*names: str, edited: str = "") -> list[Source]:
    return [source(page(f"{n}.md", section("One", prose((n, n in edited))))) for n in names]


def states(found: States) -> dict[str, str]:
    return {file.file_path: file.state for file in found.files}


def test_without_an_index_there_are_no_states(target: Target) -> None:
    with pytest.raises(IndexMissing, match="Nothing was published for docs yet"):
        derive(target.store, target.ledger, SCOPE)


def test_every_file_has_its_state(target: Target) -> None:
    index(offered("a", "b", "c"), target)
    found = derive(target.store, target.ledger, SCOPE, offered("a", "b", "d", edited="b"))
    assert states(found) == {"a.md": "Indexed", "b.md": "Stale", "c.md": "Removed", "d.md": "Unindexed"}


def test_while_somebody_publishes_files_are_on_their_way(target: Target) -> None:
    index(offered("a", "b", "c"), target)
    with target.store.publish(SCOPE, EmbedderCard()):
        found = derive(target.store, target.ledger, SCOPE, offered("a", "b", "d", edited="b"))
    assert states(found) == {"a.md": "Indexed", "b.md": "Re-indexing", "c.md": "Removed", "d.md": "Indexing"}


def test_without_a_site_the_ledger_alone_speaks(target: Target) -> None:
    index(offered("b", "a"), target)
    assert states(derive(target.store, target.ledger, SCOPE)) == {"a.md": "Indexed", "b.md": "Indexed"}


def test_a_ledger_of_another_generation_is_not_believed(target: Target) -> None:
    index(offered("a"), target)
    records = target.ledger.records(SCOPE)
    target.ledger.save(SCOPE, 7, records.values(), [])
    assert states(derive(target.store, target.ledger, SCOPE, offered("a"))) == {"a.md": "Unindexed"}
    assert derive(target.store, target.ledger, SCOPE).files == ()


def test_other_versions_have_states_of_their_own(target: Target) -> None:
    index(offered("a"), target)
    index(offered("b"), replace(target, scope=Scope("docs", "2")))
    assert states(derive(target.store, target.ledger, Scope("docs", "2"))) == {"b.md": "Indexed"}


def test_the_document_is_the_one_of_the_contract(target: Target) -> None:
    index(offered("a"), target)
    found = derive(target.store, target.ledger, SCOPE, offered("a", "new"))
    document = json.loads(json.dumps(found.to_json()))
    row, new = document.pop("files")
    assert document == {"site": "docs", "version": "", "generation": 1, "embedder": "none"}
    assert row == {
        "file_path": "a.md",
        "state": "Indexed",
        "content_hash": offered("a")[0].content_hash,
        "chunk_count": 1,
        "last_indexed_at": target.ledger.records(SCOPE)["a.md"].last_indexed_at,
    }
    assert new == {
        "file_path": "new.md",
        "state": "Unindexed",
        "content_hash": offered("new")[0].content_hash,
        "chunk_count": 0,
        "last_indexed_at": "",
    }


def test_the_summary_is_one_line(target: Target) -> None:
    index(offered("a"), replace(target, scope=Scope("docs", "2.0")))
    found = derive(target.store, target.ledger, Scope("docs", "2.0"))
    assert found.summary.startswith("docs 2.0: generation 1, 1 pages, 1 chunks, embedder none, published 20")
    assert "\n" not in found.summary
