"""Two keys: a build's, which writes, and the service's, which only reads."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from api import quill
from api.scripted import Client
from chapterverse.errors import ConfigurationError
from chapterverse.indexing import sync
from chapterverse.indexing.target import Target
from chapterverse.ledger import Ledger
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse_api.app import create_app
from chapterverse_api.service import Service
from fakes.qdrant_server import KEY, READ_KEY, QdrantServer


def publish(settings: Settings, folder: Path) -> None:
    embedder = quill.Terms()
    ledger = Ledger.on_sqlite(folder / "ledger.sqlite")
    pages = [quill.source(path, text) for path, text in quill.PAGES.items()]
    sync.index(pages, Target(quill.SCOPE, open_store(settings), ledger, embedder, base_url=quill.BASE))


@pytest.mark.parametrize("options", ["", "?collection=docs"])
def test_all_that_readers_ask_is_answered_by_a_key_that_only_reads(tmp_path: Path, options: str) -> None:
    with QdrantServer() as server:
        written = Settings(store=f"qdrant:{server.url}{options}", qdrant_api_key=KEY)
        publish(written, tmp_path)
        server.history.clear()
        read = written.override(qdrant_api_key=READ_KEY)
        web = Client(create_app(quill.service(read, embedder=quill.Terms())))
        for body in (
            {"query": "Where does the cache live?"},
            {"query": "What is on this page?", "page_url": f"{quill.BASE}cache/"},
            {"query": "brew", "filters": {"source_file_path": "install.md"}},
            {"selected_text": "The cache lives in `.quill/cache`."},
        ):
            assert web.post("/v1/chat", body).json()["status"] in {"answered", "partial", "not_in_docs"}
        assert web.post("/v1/retrieve", {"query": "cache"}).json()["retrieved_chunks"]
        assert web.get("/v1/status").json()["status"] == "ok"
        assert {request.headers["api-key"] for request in server.history} == {READ_KEY}
        assert not any(request.writes for request in server.history)


def test_a_key_that_only_reads_publishes_nothing(tmp_path: Path) -> None:
    with QdrantServer() as server:
        settings = Settings(store=f"qdrant:{server.url}", qdrant_api_key=KEY)
        publish(settings, tmp_path)
        before = {name: server.points(name) for name in server.collections}
        locked = settings.override(qdrant_api_key=READ_KEY)
        with pytest.raises(ConfigurationError, match=r"refused the key: set QDRANT_API_KEY to one that it accepts\."):
            sync.index(
                [quill.source("new.md", "# New\n\nSomething new.\n")],
                Target(
                    quill.SCOPE,
                    open_store(locked),
                    Ledger.on_sqlite(tmp_path / "other.sqlite"),
                    base_url=quill.BASE,
                ),
            )
        assert {name: server.points(name) for name in server.collections} == before


def test_a_key_that_is_not_known_is_noticed(tmp_path: Path) -> None:
    with QdrantServer() as server:
        settings = Settings(store=f"qdrant:{server.url}", qdrant_api_key=KEY)
        publish(settings, tmp_path)
        for key in (KEY, "taken back"):
            service: Service = quill.service(settings.override(qdrant_api_key=key), embedder=quill.Terms())
            with suppress(ConfigurationError):
                assert quill.ask(service, "Where does the cache live?").source_chunks
            assert service.resources.key_refused is (key != KEY)
