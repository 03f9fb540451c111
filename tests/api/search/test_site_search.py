"""Two versions in two languages: an answer comes from the requested one, or says that it doesn't."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from api import quill
from chapterverse.errors import ConfigurationError, InputError
from chapterverse.model import Scope
from chapterverse.settings import Settings
from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, ChatResponse, Meta, RetrievalRequest
from chapterverse_api.deadline import Deadline
from chapterverse_api.ext.evaluation.session import EvaluationSession
from chapterverse_api.index.site_index import on_page
from chapterverse_api.log import QueryProgress
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchResources, find_closest_chunk, search_site

ROOT = "https://quill.example.com/docs/"
VERSIONS = ("1.0", "2.0")
QUESTION = "Where does the turbine keep its ledger?"


def pages(version: str) -> dict[str, str]:
    """Nearly the same pages in every scope, each with a distinct mark."""
    return {
        "turbine.md": f"# Turbine\n\nThe turbine keeps its ledger in `mark-{version}-en`.\n\n"
        "## Clearing\n\nRun `turbine clear` to clear the ledger.",
        "de/turbine.md": f"# Turbine\n\nDie Turbine führt ihr Ledger in `mark-{version}-de`.\n\n"
        "## Leeren\n\nMit `turbine clear` wird das Ledger geleert.\n\n"
        "## Wombats\n\nWombats graben nachts lange Gänge unter dem Serverraum.",
        "other.md": "# Other\n\nSomething else altogether stands here, on kettles and their lids.",
    }


def base(version: str) -> str:
    return f"{ROOT}{version}/"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    root = tmp_path_factory.mktemp("index")
    for version in VERSIONS:
        made = quill.publish(
            root, pages(version), scope=Scope("quill", version), base=base(version), languages={"de/turbine.md": "de"}
        )
    return made


@pytest.fixture(scope="module")
def service(settings: Settings) -> EvaluationSession:
    return quill.service(settings)


def chat(service: EvaluationSession, **fields: Any) -> tuple[ChatResponse, str]:
    """Return the answer, and everything that was sent on the way to it."""
    events = list(service.chat(ChatQuery.model_validate(fields)))
    answer = events[-1]
    assert isinstance(answer, ChatResponse)
    assert isinstance(events[0], Meta)
    return answer, "".join(event.model_dump_json() for event in events)


def results_for(service: EvaluationSession, query: str, **fields: Any) -> Retrieval:
    resources, question = service.resources, ChatQuery.model_validate({"query": query, **fields})
    snapshot = resources.index.snapshot(question.docs_version, question.page_url)
    models, progress = resources.models, QueryProgress("", logged=False)
    search = SearchResources(
        resources.index,
        resources.settings,
        models.embedder,
        models.reranker,
        models.reading_model,
        Deadline(),
        progress,
    )
    return search_site(question, snapshot, search)


def carriers(version: str) -> Iterator[dict[str, Any]]:
    other = next(v for v in VERSIONS if v != version)
    yield {"version": version}
    yield {"filters": {"version": version}}
    yield {"filters": {"$and": [{"version": version}, {"type": "page"}]}}
    yield {"page_url": f"{base(version)}turbine/"}
    yield {"page_url": f"{base(version)}nowhere/#x"}
    yield {"page_url": base(version).rstrip("/")}
    yield {"page_url": f"{base(version)}?{base(other)}turbine/"}
    # What is said outright outranks where the reader is.
    yield {"version": version, "page_url": f"{base(other)}turbine/"}
    yield {"filters": {"version": version}, "page_url": f"{base(other)}turbine/"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_question_in_one_version_never_sees_another(service: EvaluationSession, version: str) -> None:
    other = next(v for v in VERSIONS if v != version)
    for carrier in carriers(version):
        answer, sent = chat(service, query=QUESTION, **carrier)
        assert answer.status == "answered", carrier
        assert f"mark-{version}-" in sent
        assert f"mark-{other}" not in sent
        assert base(other) not in sent


@pytest.mark.parametrize("version", VERSIONS)
def test_nor_do_a_search_and_the_passages(service: EvaluationSession, version: str) -> None:
    rows = service.search("turbine ledger", 20, {"version": version})
    found = service.retrieve(
        RetrievalRequest.model_validate({"query": "turbine ledger", "top_k": 20, "filters": {"version": version}})
    )
    assert rows
    assert found.retrieved_chunks
    assert all(row["url"].startswith(base(version)) for row in rows)
    assert {c.version for c in found.retrieved_chunks} == {version}


def test_two_versions_that_are_asked_for_at_once_are_none(service: EvaluationSession) -> None:
    answer, sent = chat(service, version="1.0", query=QUESTION, filters={"version": "2.0"})
    assert answer.status == "not_in_docs"
    assert "mark-" not in sent
    _, sent = chat(service, query=QUESTION, page_url=f"{base('1.0')}x", filters={"version": list(VERSIONS)})
    assert "mark-2.0" not in sent


@pytest.mark.parametrize(
    "url",
    [
        "https://quill.example.com/docs/1.0-old/turbine/",
        "https://quill.example.com/docs/1.00/",
        "https://QUILL.example.com/docs/1.0/turbine/",
        "https://quill.example.com/docs/1%2E0/turbine/",
        "http://[#",
        "turbine/",
    ],
)
def test_an_address_that_is_none_of_the_docs_chooses_no_version(settings: Settings, url: str) -> None:
    with pytest.raises(ConfigurationError, match="say which with --site and --docs-version"):
        chat(quill.service(settings), query=QUESTION, page_url=url)
    pinned = quill.service(settings.override(docs_version="2.0"))
    _, sent = chat(pinned, query=QUESTION, page_url=url)
    assert "mark-2.0-" in sent
    assert "mark-1.0" not in sent


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example/docs/1.0/turbine/",
        "https://quill.example.com@evil.example/docs/1.0/",
        ("https://evil.example/" + "x" * 2048)[:2048],
    ],
)
def test_nor_does_one_of_another_site_which_is_refused(settings: Settings, url: str) -> None:
    with pytest.raises(ConfigurationError, match="say which with --site and --docs-version"):
        chat(quill.service(settings), query=QUESTION, page_url=url)
    with pytest.raises(InputError, match="page_url is on another site"):
        chat(quill.service(settings.override(docs_version="2.0")), query=QUESTION, page_url=url)


def test_settings_that_name_a_version_outrank_the_page(settings: Settings) -> None:
    pinned = quill.service(settings.override(docs_version="2.0"))
    _, sent = chat(pinned, query=QUESTION, page_url=f"{base('1.0')}turbine/")
    assert "mark-1.0" not in sent


def test_served_at_one_address_a_page_does_not_choose_between_versions(settings: Settings) -> None:
    local = quill.service(settings.override(base_url="http://127.0.0.1:1/"))
    with pytest.raises(ConfigurationError):
        chat(local, query=QUESTION, page_url="http://127.0.0.1:1/turbine/")
    answer, _ = chat(local, query=QUESTION, page_url="http://127.0.0.1:1/turbine/", version="1.0")
    assert answer.sources_cited[0].startswith("http://127.0.0.1:1/turbine/")


def test_a_version_that_there_is_not_is_refused(service: EvaluationSession) -> None:
    for version in ("3.0", "", "1", "1.0/../2.0"):
        with pytest.raises(InputError, match=r"^These docs have no such version; there are 1\.0, 2\.0\.$"):
            chat(service, query=QUESTION, version=version)


@pytest.mark.parametrize("carrier", [{"language": "de"}, {"language": "de-AT"}, {"page": "de/turbine/"}])
def test_the_readers_language_is_kept_to_where_it_holds_an_answer(
    service: EvaluationSession, carrier: dict[str, str]
) -> None:
    page = {"page_url": f"{base('1.0')}{carrier['page']}"} if "page" in carrier else carrier
    answer, sent = chat(service, query="Wo führt die Turbine ihr Ledger?", version="1.0", **page)
    assert "mark-1.0-de" in sent
    assert "mark-1.0-en" not in sent
    assert {source.url for source in answer.source_chunks if source.url and "/de/" not in source.url} == set()
    assert phrases.for_language("de").other_language not in sent


def test_what_only_another_language_holds_is_told_with_a_note(service: EvaluationSession) -> None:
    query = "Wombats graben Gänge Serverraum"
    results = results_for(service, query, version="1.0", language="en")
    assert (results.other_language, results.language) == (True, "en")
    for carrier in ({"language": "en", "version": "1.0"}, {"page_url": f"{base('1.0')}turbine/"}):
        answer, sent = chat(service, query=query, **carrier)
        assert answer.response.startswith(f"{phrases.for_language('en').other_language}\n\n")
        assert answer.status == "partial"
        assert "mark-2.0" not in sent
        assert "/de/turbine/" in answer.sources_cited[0]
    home = results_for(service, query, version="1.0", language="de")
    assert not home.other_language


def test_what_nothing_holds_is_refused_without_a_note(service: EvaluationSession) -> None:
    answer, sent = chat(service, query="Who won the football world cup in Uruguay?", version="1.0", language="de")
    assert (answer.status, answer.response) == ("not_in_docs", phrases.for_language("de").purpose)
    assert phrases.for_language("de").other_language not in sent


@pytest.mark.parametrize("language", [{"language": "en"}, {"$or": [{"language": "en"}, {"type": "faq"}]}])
def test_a_filter_on_language_is_never_widened(service: EvaluationSession, language: dict[str, Any]) -> None:
    query = {"query": "Wombats graben Gänge Serverraum", "version": "1.0", "filters": language}
    for more in ({}, {"language": "de"}, {"page_url": f"{base('1.0')}de/turbine/"}):
        answer, sent = chat(service, **query, **more)
        assert answer.status == "not_in_docs"
        assert "/de/" not in sent


def test_without_a_page_or_a_language_all_are_searched(service: EvaluationSession) -> None:
    results = results_for(service, "turbine clear", version="1.0")
    assert (results.language, results.other_language) == (None, False)
    assert {c.chunk.language for c in results.candidates} == {"en", "de"}


def test_a_question_is_embedded_once_however_often_it_is_searched(tmp_path: Path) -> None:
    embedder = quill.Terms()
    made = quill.publish(tmp_path, pages("1.0"), embedder=embedder, languages={"de/turbine.md": "de"})
    service = quill.service(made, embedder=embedder)
    results = results_for(service, "Wombats graben Gänge Serverraum", language="en")
    assert results.other_language
    assert embedder.asked == ["Wombats graben Gänge Serverraum"]
    assert "embed" in results.timings


def test_models_that_fail_or_cost_are_asked_once_however_often_it_is_searched(tmp_path: Path) -> None:
    embedder, reranker = quill.Terms(), quill.Reranker({})
    made = quill.publish(tmp_path, pages("1.0"), embedder=embedder, languages={"de/turbine.md": "de"})
    service = quill.service(made, embedder=embedder, reranker=reranker)
    embedder.down = True
    results = results_for(service, "Wombats graben Gänge Serverraum", language="en")
    assert results.other_language
    assert results.degraded == "The embedder could not be reached; only words were searched."
    refused = results_for(service, "Who won the football world cup?", language="en")
    assert not refused.other_language
    assert not refused.sure
    # Once for each question; and what is refused costs no reranking.
    assert (len(embedder.asked), len(reranker.asked)) == (2, 1)


def test_a_text_is_placed_where_it_likely_stands(service: EvaluationSession) -> None:
    snapshot = service.snapshot("1.0")
    held = on_page(f"{base('1.0')}turbine/", snapshot)
    likeliest = find_closest_chunk("clear the ledger", held, snapshot)
    assert likeliest is not None
    assert likeliest.section_heading == "Clearing"
    first = find_closest_chunk("zebra", held, snapshot)
    assert first is not None
    assert first.url == min(held)
    assert find_closest_chunk("clear", (), snapshot) is None
