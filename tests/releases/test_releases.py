"""What earlier releases wrote is read, or rebuilt after one sentence, and nothing of it is embedded twice."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from chapterverse.ext.transfer import maintenance
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery
from chapterverse_api.conversation.transcript import Signer
from chapterverse_api.ext.conversations.table import RecordsTable, sqlite_database
from cli.shell import Shell, clean
from fakes.cohere_server import KEY, CohereServer
from releases.release_files import DENSE, EXPORT, HERE, PLAIN, RECORDS, SIGNING_KEY, SITE, ReleaseFiles

VERSIONS = sorted(folder.name for folder in HERE.iterdir() if (folder / "written.tar.xz").exists())
assert VERSIONS
QUESTION = "How do I rotate a signing key?"
#: Chunks that are read otherwise than 0.1.0 did: a definition list's meanings stand below their terms without a colon,
#: and a footnote stands in its section without its marks.
REREAD = 2


@pytest.fixture(params=VERSIONS, scope="module")
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ReleaseFiles:
    """What a release wrote, for tests that only read it."""
    return ReleaseFiles.unpack(request.param, tmp_path_factory.mktemp("release"))


@pytest.fixture(params=VERSIONS)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> ReleaseFiles:
    """What a release wrote, for a test that continues it."""
    return ReleaseFiles.unpack(request.param, tmp_path)


def build(files: ReleaseFiles, store: str, **environment: str) -> str:
    """Build the project with MkDocs and return the line that says what was indexed."""
    command = [sys.executable, "-m", "mkdocs", "build"]
    variables = {"CHAPTERVERSE_STORE": f"edge:{files.root / store}", "NO_MKDOCS_2_WARNING": "1", **environment}
    done = subprocess.run(command, cwd=files.root, env=clean(variables), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if " Indexed " in line]
    return line


def ledger_rows(files: ReleaseFiles, store: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(files.root / store / "ledger.sqlite")) as connection:
        return connection.execute("SELECT * FROM document_metadata ORDER BY id").fetchall()


def index(files: ReleaseFiles) -> dict[str, Any]:
    """Index the built site once more."""
    report: dict[str, Any] = Shell(files.root).json(
        "index", "site", "--knowledge", "docs/knowledge", "--store", f"edge:{SITE}"
    )
    return report


@pytest.mark.parametrize("store", [PLAIN, DENSE, SITE])
def test_an_index_is_read(shared: ReleaseFiles, store: str) -> None:
    opened = open_store(shared.settings(store))
    (head,) = opened.heads()
    assert head.base_url == "https://harbor.example/docs/"
    assert head.embedder.size == (1024 if store == DENSE else 0)
    assert opened.is_complete(head.scope)
    assert {chunk.type for chunk in shared.chunks(store)} >= {"page", "faq", "memory"}


@pytest.mark.parametrize("store", [PLAIN, DENSE, SITE])
def test_its_export_is_the_same_byte_for_byte(shared: ReleaseFiles, store: str) -> None:
    opened = open_store(shared.settings(store))
    (head,) = opened.heads()
    assert "".join(maintenance.export(opened.snapshot(head.scope), canonical=True)) == shared.export(store)


@pytest.mark.parametrize("store", [PLAIN, SITE])
def test_a_question_is_answered(shared: ReleaseFiles, store: str) -> None:
    answer = Shell(shared.root).json("ask", QUESTION, "--store", f"edge:{store}")
    assert answer["status"] == "answered"
    assert answer["sources_cited"] == ["https://harbor.example/docs/guide/keys/#rotating-a-signing-key"]


def test_a_question_is_answered_with_dense_vectors(shared: ReleaseFiles) -> None:
    with CohereServer() as cohere:
        names = {"CHAPTERVERSE_EMBEDDER": "cohere", "CHAPTERVERSE_COHERE_URL": cohere.url, "COHERE_API_KEY": KEY}
        answer = Shell(shared.root).json("ask", QUESTION, "--store", f"edge:{DENSE}", **names)
        assert len(cohere.history) == 1
    assert answer["sources_cited"] == ["https://harbor.example/docs/guide/keys/#rotating-a-signing-key"]


def test_the_ledger_is_read(shared: ReleaseFiles) -> None:
    status = Shell(shared.root).json("status", "site", "--knowledge", "docs/knowledge", "--store", f"edge:{SITE}")
    assert {file["state"] for file in status["files"]} == {"Indexed"}
    assert "guide/keys/index.html" in {file["file_path"] for file in status["files"]}


def test_a_built_site_that_is_indexed_again_embeds_what_is_read_otherwise(files: ReleaseFiles) -> None:
    first = index(files)
    assert first["embedded"] == first["chunks"]["new"] == first["chunks"]["removed"] == REREAD
    assert first["chunks"]["moved"] == 0
    assert index(files)["embedded"] == 0


def test_a_project_that_is_built_again_embeds_what_is_read_otherwise(files: ReleaseFiles) -> None:
    with CohereServer() as cohere:
        names = {"CHAPTERVERSE_EMBEDDER": "cohere", "CHAPTERVERSE_COHERE_URL": cohere.url, "COHERE_API_KEY": KEY}
        line = build(files, DENSE, **names)
        assert [len(request.body["texts"]) for request in cohere.history] == [REREAD]
        assert f", {REREAD} embedded" in line
        assert ", 0 embedded" in build(files, DENSE, **names)
        assert len(cohere.history) == 1


def test_after_one_run_nothing_is_read_or_written(files: ReleaseFiles) -> None:
    """The first run reads pages again where this release reads them otherwise."""
    assert f"({REREAD} new, " in build(files, PLAIN).partition(" chunks ")[2]
    index(files)
    before = {store: ledger_rows(files, store) for store in (PLAIN, SITE)}
    assert "(0 new, 0 changed, 0 removed)" in build(files, PLAIN)
    report = index(files)
    assert report["pages"]["unchanged"] == 8
    assert {store: ledger_rows(files, store) for store in (PLAIN, SITE)} == before


def test_an_export_is_imported(shared: ReleaseFiles, tmp_path: Path) -> None:
    store = f"edge:{tmp_path / 'imported'}"
    assert Shell(shared.root).json("import", EXPORT, "--store", store)["embedded"] == 0
    Shell(shared.root).run("export", "--canonical", str(tmp_path / "again.jsonl"), "--store", store)
    assert (tmp_path / "again.jsonl").read_text("utf-8") == shared.export(DENSE)


def test_conversations_are_read_and_forgotten(files: ReleaseFiles) -> None:
    session = files.session()
    messages, thread = session["messages"], session["session_id"]
    records = RecordsTable(sqlite_database(files.root / RECORDS), 30, lambda: moment(session) + timedelta(minutes=5))
    stored = records.thread(thread)
    assert [turn.question for turn in stored.turns] == [m["content"] for m in messages if m["role"] == "user"]
    assert [turn.answer for turn in stored.turns] == [m["content"] for m in messages if m["role"] == "assistant"]
    assert (stored.through, stored.summary.splitlines()[0]) == (6, f"Asked: {messages[0]['content']}")
    assert {(rating.rating, rating.turn.number) for rating in records.ratings(9) if rating.turn} == {
        ("up", 1),
        ("down", 5),
    }
    assert len(records.matched_entries()) == 1
    assert records.forget(thread)
    assert records.thread(thread).turns == ()
    assert records.ratings(9) == []


def moment(session: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(session["created_at"]).astimezone(UTC)


def history(session: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what the widget sends of a conversation: its last ten messages."""
    fields = ("role", "content", "timestamp", "signature")
    return [{name: m[name] for name in fields if name in m} for m in session["messages"][-10:]]


def test_a_session_is_verified_and_goes_on(shared: ReleaseFiles) -> None:
    session = shared.session()
    query = ChatQuery.model_validate({"query": "And who may revoke it?", "conversation_history": history(session)})
    transcript = Signer([SIGNING_KEY]).read(query.conversation_history, now=moment(session).timestamp() + 60)
    assert transcript.positions == {1, 3, 5, 7, 9}
    settings = Settings(store=f"edge:{shared.root / PLAIN}", signing_key=SIGNING_KEY)
    with TestClient(create_app(settings=settings), base_url="http://localhost") as client:
        answer = client.post("/v1/chat", json=query.model_dump(mode="json", exclude_none=True))
    assert answer.status_code == 200, answer.text
    assert answer.json()["signature"]
