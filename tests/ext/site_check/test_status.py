from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from chapterverse.embedding import Vector
from chapterverse.errors import IndexFault, IndexMissing, ProviderError
from chapterverse.ext.site_check.status import States, derive
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import EmbedderCard, Scope, Source
from chapterverse.settings import Settings
from chapterverse.store.edge import EdgeStore
from fakes import postgres
from fakes.docs import BASE_URL, SCOPE, CountingEmbedder, page, prose, section, source
from fakes.instead import instead

#: Makes the address of a new ledger in a folder of the test's own.
LEDGERS: dict[str, Callable[[Path], str]] = {
    "sqlite": lambda folder: f"sqlite:{folder / 'ledger.sqlite'}",
    "postgres": lambda folder: postgres.server().database(),
}


@pytest.fixture(params=LEDGERS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    ledger = open_ledger(Settings(ledger=LEDGERS[request.param](tmp_path)))
    return Target(SCOPE, EdgeStore(tmp_path / "index"), ledger, base_url=BASE_URL)


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


class Watching(CountingEmbedder):
    """Calls `look` in the middle of a run: everything is planned, and nothing is written yet."""

    look: Callable[[], object]

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        self.look()
        return super().embed_documents(texts)


def test_while_a_run_is_at_work_files_are_on_their_way(target: Target) -> None:
    watching = Watching()
    target = replace(target, embedder=watching)
    seen: list[dict[str, str]] = []
    watching.look = lambda: None
    index(offered("a", "b", "c"), target)
    after = offered("a", "b", "d", edited="b")
    watching.look = lambda: seen.append(states(derive(target.store, target.ledger, SCOPE, after)))
    index(after, target)
    assert seen == [{"a.md": "Indexed", "b.md": "Re-indexing", "c.md": "Removed", "d.md": "Indexing"}]
    done = states(derive(target.store, target.ledger, SCOPE, after))
    assert done == {"a.md": "Indexed", "b.md": "Indexed", "d.md": "Indexed"}


def test_the_first_run_has_states_before_its_end(target: Target) -> None:
    def look() -> None:
        found = derive(target.store, target.ledger, SCOPE, offered("a"))
        assert (states(found), found.summary) == ({"a.md": "Indexing"}, "Nothing was published for docs yet.")

    before = derive(target.store, target.ledger, SCOPE, offered("a"))
    assert states(before) == {"a.md": "Unindexed"}
    assert before.to_json() | {"files": []} == {
        "site": "docs", "version": "", "generation": 0, "embedder": "none", "files": [],
    }  # fmt: skip
    watching = Watching()
    watching.look = look
    target = replace(target, embedder=watching)
    index(offered("a"), target)
    assert watching.seen != []
    assert states(derive(target.store, target.ledger, SCOPE, offered("a"))) == {"a.md": "Indexed"}


def test_a_run_that_failed_leaves_the_states_of_before(target: Target) -> None:
    watching = Watching()
    watching.look = lambda: None
    target = replace(target, embedder=watching)
    index(offered("a", "b"), target)
    before = derive(target.store, target.ledger, SCOPE)

    def fail() -> None:
        raise ProviderError("The model is out.")

    watching.look = fail
    after = offered("b", "d", edited="b")
    with pytest.raises(ProviderError):
        index(after, target)
    assert derive(target.store, target.ledger, SCOPE) == before
    found = states(derive(target.store, target.ledger, SCOPE, after))
    assert found == {"a.md": "Removed", "b.md": "Stale", "d.md": "Unindexed"}


def break_off(*_: object) -> None:
    """Break as a connection does, before anything is saved."""
    raise IndexFault("It broke off.")


def test_a_run_that_lost_its_ledger_is_made_good_by_the_next(target: Target) -> None:
    index(offered("a", "b"), target)
    after = offered("a", "b", edited="b")
    with pytest.raises(IndexFault):
        index(after, replace(target, ledger=instead(target.ledger, save=break_off)))
    # The head moved, so the rows describe an index that is no more.
    found = derive(target.store, target.ledger, SCOPE, after)
    assert found.head is not None
    assert (found.head.generation, states(found)) == (2, {"a.md": "Unindexed", "b.md": "Unindexed"})
    assert index(after, target).generation == 2
    assert states(derive(target.store, target.ledger, SCOPE, after)) == {"a.md": "Indexed", "b.md": "Indexed"}


def test_a_publication_of_one_version_says_nothing_of_another(target: Target) -> None:
    index(offered("a"), target)
    with target.store.publish(Scope("docs", "2"), EmbedderCard()):
        found = derive(target.store, target.ledger, SCOPE, offered("a", "b", edited="a"))
    assert states(found) == {"a.md": "Stale", "b.md": "Unindexed"}


def test_a_page_without_text_is_indexed_with_no_chunk(target: Target) -> None:
    index([*offered("a"), source(page("empty.md"))], target)
    rows = {f.file_path: (f.state, f.chunk_count) for f in derive(target.store, target.ledger, SCOPE).files}
    assert rows == {"a.md": ("Indexed", 1), "empty.md": ("Indexed", 0)}


def test_files_are_sorted_by_path(target: Target) -> None:
    names = ("b", "A", "é", "a-b", "a/b")
    index(offered(*names), target)
    for sources in (None, offered(*names, "Z")):
        paths = list(states(derive(target.store, target.ledger, SCOPE, sources)))
        assert paths == sorted(paths)


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
