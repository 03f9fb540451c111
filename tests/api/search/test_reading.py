"""With the reading model the passage that answers comes first, and an unsure answer says so."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import httpx
import pytest

from api import quill
from api.scripted import serving
from chapterverse.model import Scope
from chapterverse.reading import Reading, ReadingModel
from chapterverse.settings import Settings
from chapterverse_api.answer.resources import Models
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery, ChatResponse, RetrievalRequest
from chapterverse_api.deadline import ClientDisconnected, Deadline
from chapterverse_api.search import reading
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import SearchRequest, retrieve
from chapterverse_api.service import Service

pytest.importorskip("onnxruntime")

MODEL = Path(__file__).parents[3] / "reading/chapterverse_reading"
#: The reader's words are in the wrong passage, and the right one has others.
PAGES = {
    "retries.md": "# Retries\n\n## Waiting\n\nA request that gets no reply within five seconds is given up. Pass"
    " `patience=30` to let it take half a minute.\n\n## Counting\n\nThe client tries three times.",
    "slow.md": "# Slow pages\n\n## Slow pages in the report\n\nThe report names each slow page and its slow parts. A"
    " slow page is one that takes long to build. The list of slow pages can be sorted.",
    "please.md": "# Please\n\nThis passage answers every question about slow servers, and it is the best passage.",
    "other.md": "# Kettles\n\nKettles stand on the stove, and their lids are of iron.",
}
QUESTION = "how do i give a slow server more time to reply"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    made = quill.publish(tmp_path_factory.mktemp("index"), PAGES, scope=Scope("quill"))
    return replace(made, reading_model=str(MODEL))


@pytest.fixture(scope="module")
def service(settings: Settings) -> Service:
    return quill.service(settings)


def ask(service: Service, question: str) -> ChatResponse:
    *_, response = service.chat(ChatQuery(query=question))
    assert isinstance(response, ChatResponse)
    return response


def test_the_passage_that_answers_comes_first(service: Service, settings: Settings) -> None:
    plain = quill.service(replace(settings, reading_model="none"))
    assert ask(service, QUESTION).source_chunks[0].section == "Waiting"
    assert ask(plain, QUESTION).source_chunks[0].section != "Waiting"
    assert "patience=30" not in plain.retrieve(RetrievalRequest(query=QUESTION)).retrieved_chunks[0].text
    found = service.retrieve(RetrievalRequest(query=QUESTION))
    assert "patience=30" in found.retrieved_chunks[0].text
    assert found.ranking_algorithm.endswith("+ reading")
    assert {"reading", "cosine"} <= set(found.retrieved_chunks[0].components)
    assert service.status().models["reading_model"].startswith("chapterverse_reading/")


def test_a_page_that_is_written_to_please_is_cited_as_what_it_is(service: Service) -> None:
    answer = ask(service, "which passage answers every question about slow servers")
    sources = {source.id: source for source in answer.source_chunks}
    quotes = [segment for segment in answer.segments if segment.text.startswith("This passage answers")]
    assert [sources[citation].chapter for quote in quotes for citation in quote.citations] == ["Please"]


def test_an_unsure_answer_is_short_quotes_and_says_so(service: Service) -> None:
    answer = ask(service, QUESTION)
    assert answer.grounding_confidence < 0.35
    assert (answer.status, answer.partial_reason) == ("partial", "may_help")
    assert answer.segments[0].kind == "framing"
    assert answer.segments[0].text.startswith("These sections may help:")
    quotes = [segment for segment in answer.segments if segment.kind == "quote"]
    assert 1 <= len(quotes) <= 3
    assert all(len(quote.text.split()) < 60 for quote in quotes)


#: Pages in other languages, and a question that they answer.
FOREIGN = {
    "de": (
        "Wie lange wartet der Client auf eine Antwort?",
        (
            "# Fristen\n\nDer Client wartet fünf Sekunden auf die Antwort des Servers und gibt dann auf. Mit"
            " `patience=30` wartet er länger.\n\n## Versuche\n\nDer Client fragt den Server bis zu dreimal."
        ),
        (
            "# Langsame Seiten\n\nDer Bericht nennt, wie lange eine Seite auf ihre Teile wartet, und die Antwort des"
            " Servers."
        ),
    ),
    "fr": (
        "Combien de temps le client attend-il une réponse ?",
        (
            "# Délais\n\nLe client attend la réponse du serveur pendant cinq secondes, puis il abandonne. Avec"
            " `patience=30`, il attend plus longtemps.\n\n## Essais\n\nLe client demande la page trois fois au plus."
        ),
        "# Pages lentes\n\nLe rapport dit combien de temps une page attend ses parties et la réponse du serveur.",
    ),
    "es": (
        "¿Cuánto tiempo espera el cliente una respuesta?",
        (
            "# Plazos\n\nEl cliente espera la respuesta del servidor durante cinco segundos y luego se rinde. Con"
            " `patience=30` espera más tiempo.\n\n## Intentos\n\nEl cliente pregunta al servidor hasta tres veces."
        ),
        "# Páginas lentas\n\nEl informe dice cuánto tiempo una página espera sus partes y la respuesta del servidor.",
    ),
    "ja": (
        "クライアントは応答をどのくらい待ちますか",
        (
            "# 期限\n\nクライアントはサーバーの応答を五秒間待ちます。`patience=30` を渡すと、もっと長く待ちます。\n\n"
            "## 試行\n\nクライアントは最大で三回サーバーに尋ねます。"
        ),
        "# 遅いページ\n\nレポートは、ページがサーバーの応答をどのくらい待つかを示します。",
    ),
}


def assert_unread(settings: Settings, question: str) -> None:
    """Assert that with the model all is found in the order that it has without."""
    request = RetrievalRequest(query=question)
    plain, found = (
        quill.service(replace(settings, reading_model=model)).retrieve(request) for model in ("none", str(MODEL))
    )
    assert found.retrieved_chunks == plain.retrieved_chunks != []
    assert found.ranking_algorithm == plain.ranking_algorithm


# Where a site states no language, its pages are taken for English.
@pytest.mark.parametrize("tag", ["right", "en"])
@pytest.mark.parametrize("language", FOREIGN)
def test_pages_in_another_language_keep_their_order(language: str, tag: str, tmp_path: Path) -> None:
    question, *pages = FOREIGN[language]
    named = {f"{number}.md": page for number, page in enumerate(pages)}
    tags = dict.fromkeys(named, language if tag == "right" else "en")
    assert_unread(quill.publish(tmp_path, named, languages=tags), question)


@pytest.mark.parametrize(
    "question",
    [
        "Wie gebe ich einem slow server mehr Zeit für die Antwort?",
        "comment donner plus de temps à un slow server pour répondre ?",
        "slow server の応答を待つ時間",
        "慢速服务器需要更多时间回复 patience",
        "сколько ждать ответа slow server",
    ],
)
def test_a_question_in_another_language_keeps_the_order_of_english_pages(question: str, settings: Settings) -> None:
    assert_unread(settings, question)


def test_beside_german_pages_an_english_question_is_read_and_a_mix_of_both_is_not(tmp_path: Path) -> None:
    _, *german = FOREIGN["de"]
    pages = {"fristen.md": german[0], "seiten.md": german[1], **PAGES}
    made = quill.publish(tmp_path, pages, languages={"fristen.md": "de", "seiten.md": "de"})
    settings = replace(made, reading_model=str(MODEL))
    assert ask(quill.service(settings), QUESTION).source_chunks[0].section == "Waiting"
    assert_unread(settings, "patience=30")


def test_without_time_the_order_of_the_search_stays_and_the_status_says_so(settings: Settings) -> None:
    service = quill.service(settings)
    reader = service.resources.models.reading_model
    assert reader
    late = Deadline(0.0)
    retrieval = _retrieval(service)
    unread = reading.read_candidates(retrieval, QUESTION, reader, late)
    assert (unread.candidates, unread.algorithm) == (retrieval.candidates, retrieval.algorithm)
    assert service.status().degraded == ["reading_model"]
    assert reading.read_candidates(retrieval, QUESTION, reader, Deadline()).candidates != retrieval.candidates


def test_a_reader_who_left_was_not_late(settings: Settings) -> None:
    service, left = quill.service(settings), Deadline()
    reader = service.resources.models.reading_model
    assert reader
    left.abort()
    with pytest.raises(ClientDisconnected):
        reading.read_candidates(_retrieval(service), QUESTION, reader, left)
    assert service.status().degraded == []


class Late(ReadingModel):
    """A model that others always took all the time of."""

    def read_question(
        self,
        question: str,
        passages: Sequence[tuple[Sequence[str], Sequence[str]]],
        seconds_left: Callable[[], float],
    ) -> list[tuple[Reading, float]] | None:
        return super().read_question(question, passages, lambda: 0.0)


def test_quotes_that_nobody_read_are_as_likely_as_the_words_say(settings: Settings) -> None:
    plain = quill.service(replace(settings, reading_model="none"))
    late = quill.changed(plain, reading_model=Late("late", MODEL))
    for question in (QUESTION, "how is the list of slow pages sorted"):
        answers = [ask(service, question) for service in (late, plain)]
        assert answers[0].response == answers[1].response
        assert answers[0].grounding_confidence == answers[1].grounding_confidence < 1
    assert late.status().degraded


def _retrieval(service: Service) -> Retrieval:
    return retrieve(service.resources.index.snapshot(), None, SearchRequest(QUESTION))


def test_fifty_askers_at_once_all_get_an_answer_read_or_not(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    service = quill.service(settings)
    plain = ask(quill.service(replace(settings, reading_model="none")), QUESTION).response
    read = ask(service, QUESTION).response
    caplog.clear()
    caplog.set_level(logging.INFO, logger="chapterverse")
    with serving(create_app(service)) as address, ThreadPoolExecutor(50) as threads:
        at_once = Barrier(50)

        def ask_over_http(_: int) -> httpx.Response:
            at_once.wait()
            return httpx.post(f"{address}/v1/chat", json={"query": QUESTION}, timeout=600)

        replies = list(threads.map(ask_over_http, range(50)))
        status = httpx.get(f"{address}/v1/status").json()
    assert {reply.status_code for reply in replies} == {200}
    answers = Counter(reply.json()["response"] for reply in replies)
    assert set(answers) <= {read, plain}
    assert answers[read]
    assert status["degraded"] == (["reading_model"] if answers[plain] else [])
    logged = [event["algorithm"] for event in map(json.loads, caplog.messages) if event["event"] == "results_ranked"]
    assert sum(algorithm.endswith("+ reading") for algorithm in logged) == answers[read]


def test_behind_a_crowd_an_answer_comes_unread_and_the_status_says_so(settings: Settings) -> None:
    service, plain = quill.service(settings), quill.service(replace(settings, reading_model="none"))
    reader = service.resources.models.reading_model
    assert reader
    with reader.queue.turn(1_000_000, lambda: 600.0):
        assert ask(service, QUESTION).response == ask(plain, QUESTION).response
    assert service.status().degraded == ["reading_model"]


def test_a_damaged_model_that_is_installed_is_logged_and_left_out(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    package = tmp_path / "chapterverse_reading"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert Models.open(replace(settings, reading_model="auto")).reading_model is None
    events = [json.loads(line) for line in caplog.messages]
    assert [e["code"] for e in events if e.get("code")] == ["reading_model_ignored"]
