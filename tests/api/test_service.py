from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from api import quill
from api.quill import ask
from chapterverse.embedding import open_embedder
from chapterverse.errors import ConfigurationError, IndexMismatch, IndexMissing, InputError
from chapterverse.model import Scope
from chapterverse.settings import Settings
from chapterverse_api.commands import ServiceSession
from chapterverse_api.contract import RetrievalRequest
from fakes.openai_server import OpenAIServer

QUESTION = "How do I clear the cache?"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> ServiceSession:
    return quill.service(quill.publish(tmp_path_factory.mktemp("index")))


def test_who_only_comes_by_has_no_embedder_asked_for_its_size(tmp_path: Path) -> None:
    with OpenAIServer(key="") as server:
        settings = Settings(embedder="openai:local-model", openai_url=server.url)
        embedder = open_embedder(settings)
        published = quill.publish(tmp_path, embedder=embedder)
        server.history.clear()
        # The one that answers is another process', which never asked before.
        opened = quill.service(published.override(embedder=settings.embedder), embedder=open_embedder(settings))
        assert opened.status().models["embedder"] == "openai:local-model"
        assert opened.status().status == "ok"
        assert opened.snapshot().head.embedder.size == 64
        assert server.history == []
        assert opened.search(QUESTION, 1, {})
        assert len(server.history) == 1


def test_search_returns_unexpanded_rows(service: ServiceSession) -> None:
    rows = service.search(QUESTION, 3, {})
    assert [row["rank"] for row in rows] == [1, 2, 3]
    assert set(rows[0]) == {
        "rank", "score", "url", "chapter", "section", "heading_path", "source_file_path", "chunk_id", "text",
    }  # fmt: skip
    assert rows[0]["text"].startswith("- `quill cache clean`")


def test_search_reads_a_history_and_filters(service: ServiceSession) -> None:
    history = [{"role": "user", "content": "Where does the cache live on disk?"}]
    assert service.search("and QUILL_CACHE_DIR?", 1, {}, history)[0]["section"] == "Cache location"
    rows = service.search("quill", 20, {"source_file_path": "deploy.md"})
    assert {row["chapter"] for row in rows} == {"Deploying"}


@pytest.mark.parametrize(
    ("question", "history", "message"),
    [
        ("", None, r"^query must hold at least one letter or digit\.$"),
        ("🦄", None, r"^query must hold at least one letter or digit\.$"),
        ("x" * 4001, None, r"^query must hold at most 4000 characters\.$"),
        ("a b " * 999, [{"role": "user", "content": "c"}], r"^query is over 1000 tokens\.$"),
        ("why?", [{"role": "system", "content": "c"}], r"^conversation_history\.0\.role must be 'user' or"),
    ],
)
def test_a_question_out_of_contract_is_one_sentence(
    service: ServiceSession, question: str, history: list[dict[str, str]] | None, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        service.search(question, 3, {}, history)


def test_answer_is_a_chat_response_as_json(service: ServiceSession) -> None:
    answer = service.answer(query=QUESTION, selected_text=None)
    assert answer["status"] == "answered"
    assert answer["source_chunks"][0]["section"] == "Clearing the cache"
    with pytest.raises(InputError, match="query is missing; it may be left out only beside selected_text"):
        service.answer(query=None)


def test_what_is_published_while_the_service_is_open_is_found_at_the_next_question(tmp_path: Path) -> None:
    service = quill.service(quill.publish(tmp_path))
    assert ask(service, "How do wombats dig burrows?").status == "not_in_docs"
    pages = {**quill.PAGES, "wombats.md": "# Wombats\n\nWombats dig burrows with their strong claws."}
    quill.publish(tmp_path, pages)
    found = ask(service, "How do wombats dig burrows?")
    assert found.sources_cited == [f"{quill.BASE}wombats/#wombats"]
    material = ask(service, selected_text="Wombats dig.", page_url=f"{quill.BASE}wombats/")
    assert material.source_chunks[0].chapter == "Wombats"
    quill.publish(tmp_path)
    assert ask(service, "How do wombats dig burrows?").status == "not_in_docs"
    material = ask(service, selected_text="Wombats dig.", page_url=f"{quill.BASE}wombats/")
    assert material.source_chunks[0].url is None


def test_a_generation_is_opened_once(service: ServiceSession) -> None:
    with ThreadPoolExecutor(8) as pool:
        snapshots = set(pool.map(lambda _: service.snapshot(), range(50)))
    assert len(snapshots) == 1


def test_answers_in_many_threads_are_the_same(service: ServiceSession) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: service.answer(query=QUESTION), range(40)))
    assert len({a["response"] for a in answers}) == 1
    assert len({a["turn_id"] for a in answers}) == 40


def test_citations_lead_to_where_the_site_is_read(tmp_path: Path) -> None:
    settings = quill.publish(tmp_path)
    for base in ("http://127.0.0.1:8765/", "http://127.0.0.1:8765"):
        service = quill.service(settings.override(base_url=base))
        answer = ask(service, QUESTION)
        assert answer.sources_cited == ["http://127.0.0.1:8765/cache/#clearing-the-cache"]
        assert service.search(QUESTION, 1, {})[0]["url"] == "http://127.0.0.1:8765/cache/#clearing-the-cache"
        found = service.retrieve(RetrievalRequest(query=QUESTION)).retrieved_chunks[0]
        assert found.url == "http://127.0.0.1:8765/cache/#clearing-the-cache"
        for address in ("http://127.0.0.1:8765/", quill.BASE):
            of_page = RetrievalRequest.model_validate({"query": QUESTION, "filters": {"url": f"{address}cache/"}})
            assert {c.chapter_title for c in service.retrieve(of_page).retrieved_chunks} == {"Caching"}
        near = ask(service, "How do I configure nginx as a reverse proxy for the cache?").nearest
        assert all(n.url.startswith("http://127.0.0.1:8765/") for n in near)
        here = ask(service, selected_text="Clearing", page_url="http://127.0.0.1:8765/cache/")
        assert here.source_chunks[0].url == "http://127.0.0.1:8765/cache/#clearing-the-cache"


def test_an_address_that_only_begins_like_the_sites_is_left_alone(tmp_path: Path) -> None:
    settings = quill.publish(tmp_path, base="https://quill.example.com/docs")
    service = quill.service(settings.override(base_url="http://127.0.0.1:1/"))
    chunk = next(service.snapshot().points()).chunk
    head = service.snapshot().head
    assert head.base_url == "https://quill.example.com/docs"
    assert service.resources.index.public_url(chunk, head).startswith("https://quill.example.com/docs")


def test_versions_share_a_store_and_never_an_answer(tmp_path: Path) -> None:
    quill.publish(tmp_path, scope=Scope("quill", "1.0"))
    settings = quill.publish(tmp_path, {"new.md": "# News\n\nWombats dig burrows now."}, scope=Scope("quill", "2.0"))
    service = quill.service(settings)
    assert ask(service, QUESTION, version="1.0").status == "answered"
    assert ask(service, QUESTION, version="2.0").status == "not_in_docs"
    for chosen in ("2.0", ["2.0"], {"$eq": "2.0"}, {"$in": ["2.0"]}):
        request = RetrievalRequest.model_validate({"query": "wombats", "filters": {"version": chosen}})
        assert service.retrieve(request).retrieved_chunks
        assert service.search("wombats", 5, {"version": chosen})
        assert ask(service, "Where do wombats dig burrows?", filters={"version": chosen}).status == "answered"
    assert ask(service, "Where do wombats dig burrows?", version="1.0", filters={"version": "2.0"}).nearest == []
    with pytest.raises(ConfigurationError, match="say which with --site and --docs-version"):
        ask(service, QUESTION)
    with pytest.raises(InputError, match=r"^These docs have no such version; there are 1\.0, 2\.0\.$") as error:
        ask(service, QUESTION, version="<b>3</b>")
    assert error.value.field == "version"
    pinned = quill.service(settings.override(docs_version="2.0"))
    assert ask(pinned, "Where do wombats dig burrows?").status == "answered"


def test_a_site_is_chosen_by_its_name(tmp_path: Path) -> None:
    quill.publish(tmp_path)
    settings = quill.publish(tmp_path, {"a.md": "# Other\n\nWombats dig."}, scope=Scope("other"))
    assert ask(quill.service(settings.override(site="quill")), QUESTION).status == "answered"
    with pytest.raises(IndexMissing, match="nothing for that site and version, only"):
        ask(quill.service(settings.override(site="nope")), QUESTION)


def test_an_index_without_any_text_refuses(tmp_path: Path) -> None:
    service = quill.service(quill.publish(tmp_path, {"a.md": ""}))
    snapshot = service.resources.index.snapshot()
    assert (snapshot.head.chunks, snapshot.head.languages, snapshot.head.main_language) == (0, (), "en")
    assert ask(service, QUESTION).status == "not_in_docs"
    assert ask(service, QUESTION, selected_text="The cache is cleared.").mode == "selected_text"
    assert service.retrieve(RetrievalRequest(query=QUESTION)).retrieved_chunks == []


def test_nothing_is_published_yet(tmp_path: Path) -> None:
    with pytest.raises(IndexMissing, match="There is no index yet"):
        ask(quill.service(Settings(store=f"edge:{tmp_path}/none")), QUESTION)
    with pytest.raises(IndexMissing):
        ask(quill.service(Settings(store=f"edge:{tmp_path}/none")), QUESTION, version="1")


def test_an_index_of_another_embedder_is_refused_at_the_first_question(tmp_path: Path) -> None:
    embedder = quill.Terms()
    settings = quill.publish(tmp_path, embedder=embedder)
    for other in (None, quill.renamed(embedder, "others")):
        name = other.card.name if other else "none"
        with pytest.raises(IndexMismatch, match=f"made with the embedder 'terms' and the settings say '{name}'"):
            ask(quill.service(settings, embedder=other), QUESTION)


def test_an_embedder_that_shares_the_space_is_welcome(tmp_path: Path) -> None:
    settings = quill.publish(tmp_path, embedder=quill.Terms())
    assert ask(quill.service(settings, embedder=quill.Terms()), QUESTION).status == "answered"


def test_an_embedder_that_is_down_degrades_the_answer(tmp_path: Path) -> None:
    embedder = quill.Terms()
    service = quill.service(quill.publish(tmp_path, embedder=embedder), embedder=embedder)
    assert ask(service, QUESTION).status == "answered"
    embedder.down = True
    answer = ask(service, QUESTION)
    assert answer.status == "degraded"
    assert answer.degraded_reason == "The embedder could not be reached; only words were searched."
    refused = ask(service, "What is the weather in Paris?")
    assert (refused.status, refused.degraded_reason) == ("not_in_docs", answer.degraded_reason)


def test_settings_choose_the_parts(tmp_path: Path) -> None:
    assert ServiceSession.open(Settings(store=f"edge:{tmp_path}")).resources.models.generator.name == "extractive"
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_RERANKER is 'best': use none"):
        ServiceSession.open(Settings(store=f"edge:{tmp_path}", reranker="best"))
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_EMBEDDER is 'best'"):
        ServiceSession.open(Settings(store=f"edge:{tmp_path}", embedder="best"))
    with pytest.raises(ConfigurationError, match="CHAPTERVERSE_STORE is 'nowhere'"):
        ServiceSession.open(Settings(store="nowhere"))


def test_an_answer_without_a_model_enters_no_room(index: Path) -> None:
    script = """
import sys
from chapterverse.settings import Settings
from chapterverse_api.contract import ChatQuery
from chapterverse_api.service import Service
_, index, question = sys.argv
service = Service.open(Settings(store=f"edge:{index}", reading_model="none"))
*_, answer = service.chat(ChatQuery(query=question))
print(answer.status, [name for name in sys.modules if ".ext." in name])
"""
    run = [sys.executable, "-c", script, str(index), QUESTION]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "answered []\n"
