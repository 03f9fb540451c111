"""Switches and counts of documents: persona, FAQ, memory, turns and summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.writers import Scribe
from chapterverse.embedding import open_embedder
from chapterverse.indexing import sync
from chapterverse.indexing.additions import find_documents
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse_api.answer.turn import Sources, Turn
from chapterverse_api.contract import ChatQuery, ChatResponse, RetrievalRequest
from chapterverse_api.ext.conversations.records import StoredTurn, open_records
from chapterverse_api.ext.conversations.threads import Threads
from chapterverse_api.service import Service

ENTRIES = "\n\n".join(
    f"## How do I rotate the engine key of fleet {n}?\n\nRotate key {n} of the fleet." for n in range(6)
)
FILES = {
    "faq/keys.md": f"---\ntopic: Keys\n---\n{ENTRIES}\n",
    "memory/fleet.md": "---\nimportance: 5\nentity: fleet-nine\n---\nThe engine key of fleet nine never expires.\n",
    "memory/acme.md": "---\nscope: entity:acme\n---\nThe engine key of Acme's fleet is in their safe.\n",
    "persona/voice.md": "---\nname: Quentin\n---\nSpeak like a clerk.\n",
}
QUESTION = "How do I rotate the engine key of a fleet?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("index")
    for name, text in FILES.items():
        file = root / "docs" / "knowledge" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    settings = Settings(store=f"edge:{root / 'store'}")
    index(settings, root / "docs")
    return settings


def index(settings: Settings, docs: Path) -> None:
    target = Target(
        quill.SCOPE, open_store(settings), open_ledger(settings), open_embedder(settings, None), ChunkSizes()
    )
    pages = [quill.source(path, text) for path, text in quill.PAGES.items()]
    others, _ = find_documents(settings, docs, docs).sources(pages, quill.BASE)
    sync.index([*pages, *others], target)


def context(settings: Settings, **chosen: Any) -> Sources:
    service = quill.service(settings.override(**chosen))
    # About a selection, so that no entry is the answer alone.
    query = ChatQuery(query=QUESTION, selected_text="The engine key of a fleet.")
    return Turn.open(query, service.resources).search()


def entries(found: Sources) -> int:
    return sum(source.chapter == "Keys" for source in found.shown)


def types(settings: Settings, filters: dict[str, Any], **chosen: Any) -> set[str]:
    service: Service = quill.service(settings.override(**chosen))
    found = service.retrieve(RetrievalRequest.model_validate({"query": QUESTION, "top_k": 20, "filters": filters}))
    return {chunk.type for chunk in found.retrieved_chunks}


def test_an_answer_is_made_with_so_many_entries(settings: Settings) -> None:
    assert entries(context(settings)) == 2
    assert entries(context(settings, faq_top_k=1)) == 1
    assert entries(context(settings, faq_top_k=10)) == 6


def test_what_is_switched_off_is_not_used(settings: Settings) -> None:
    assert context(settings).request.persona.name == "Quentin"
    assert context(settings, enable_persona=False).request.persona.name == ""
    assert entries(context(settings, enable_faq=False)) == 0
    assert types(settings, {}) >= {"faq", "memory"}
    assert "faq" not in types(settings, {}, enable_faq=False)
    assert types(settings, {"type": "faq"}, enable_faq=False) == set()
    assert "memory" not in types(settings, {}, enable_memory=False)


def test_the_command_searches_what_the_api_does(settings: Settings) -> None:
    def files(filters: dict[str, Any], **chosen: Any) -> set[str]:
        found = quill.service(settings.override(**chosen)).search(QUESTION, 20, filters)
        return {row["source_file_path"] for row in found}

    assert files({}) >= {"knowledge/faq/keys.md", "knowledge/memory/fleet.md"}
    # A document of one entity is searched only where it is named.
    assert "knowledge/memory/acme.md" not in files({})
    assert "knowledge/memory/acme.md" in files({"scope": "entity:acme"})
    assert "knowledge/faq/keys.md" not in files({}, enable_faq=False)


def test_filters_find_the_fields_of_documents(settings: Settings) -> None:
    assert types(settings, {"importance": {"$gte": 4}}) == {"memory"}
    assert types(settings, {"entity": "fleet-nine"}) == {"memory"}
    assert types(settings, {"topic": "Keys"}) == {"faq"}
    assert types(settings, {"topic": {"$prefix": ""}}) == {"faq"}
    assert types(settings, {"conversation_id": {"$contains": "-"}}) == set()


def test_what_is_switched_off_is_not_indexed_and_still_no_page(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    for name, text in FILES.items():
        file = docs / "knowledge" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    off = Settings(store=f"edge:{tmp_path / 'store'}", enable_faq=False, enable_persona=False)
    documents = find_documents(off, docs, docs)
    assert documents.no_pages >= {f"knowledge/{name}" for name in FILES}
    index(off, docs)
    store = open_store(off)
    assert {p.chunk.type for p in store.snapshot(quill.SCOPE).points()} == {"page", "memory"}
    index(off.override(enable_faq=True, enable_persona=True, enable_memory=False), docs)
    assert {p.chunk.type for p in store.snapshot(quill.SCOPE).points()} == {"page", "faq", "persona"}


def test_a_conversation_is_told_as_far_as_it_is_switched_on(settings: Settings, tmp_path: Path) -> None:
    records = f"sqlite:{tmp_path / 'records.sqlite'}"
    kept = settings.override(records=records)
    database = open_records(kept)
    assert database
    for n in range(8):
        stored = StoredTurn(
            f"{n:032x}", f"Which engine key has fleet {n}?", f"Fleet {n} has the engine key {n}.", "answered"
        )
        database.append("thread", stored)
    database.summarize("thread", "They spoke of fleets.", 6, read=database.thread("thread"))

    def turn(**chosen: Any) -> Turn:
        service = quill.service(kept.override(**chosen))
        return Turn.open(ChatQuery(query=QUESTION, thread_id="thread"), service.resources)

    told = turn().conversation
    assert (told.summary, told.recalled.count("Reader:")) == ("They spoke of fleets.", 4)
    assert turn(turn_top_k=1).conversation.recalled.count("Reader:") == 1
    off = turn(enable_turn=False).conversation
    assert (off.summary, off.recalled, off.messages) == ("They spoke of fleets.", "", ())
    assert turn(enable_summary=False).conversation.summary == ""


@pytest.mark.parametrize("on", [True, False])
def test_no_summary_is_written_where_none_is_used(settings: Settings, tmp_path: Path, on: bool) -> None:
    kept = settings.override(records=f"sqlite:{tmp_path / 'records.sqlite'}", enable_summary=on)
    service = quill.service(kept)
    threads = service.resources.threads
    assert isinstance(threads, Threads)
    answer = quill.ask(service, QUESTION)
    writer = Scribe(*["A summary."] * 8)
    for n in range(7):
        threads.remember("thread", ChatQuery(query=QUESTION), replace_turn(answer, n), writer)
    assert threads.recall("thread").summary == ("A summary." if on else "")


def replace_turn(answer: ChatResponse, number: int) -> ChatResponse:
    return answer.model_copy(update={"turn_id": f"{number:032x}"})
