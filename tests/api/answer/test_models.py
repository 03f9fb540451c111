"""The models of a turn at each budget level, and their charges, over Cohere's wire format."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from api import quill
from api.quill import ask
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.contract import ChatQuery, ChatResponse, Delta, Message, RetrievalRequest
from chapterverse_api.deadline import ClientDisconnected, Deadline
from chapterverse_api.ext.budget.daily_budget import DailyBudget, TurnBudget, UsualCost
from chapterverse_api.ext.evaluation.session import EvaluationSession
from chapterverse_api.limits import MemoryLimiter
from chapterverse_api.service import Service
from fakes.cohere_chat import ChatReply, ChatRequest
from fakes.cohere_server import KEY, CohereServer
from fakes.loopback import LONG, Answer, Fault, failing

QUESTION = "How do I clear the cache?"
SAID = "`quill cache clean` removes every entry."


@pytest.fixture
def cohere() -> Iterator[CohereServer]:
    with CohereServer() as running:
        yield running


def service(index: Path, cohere: CohereServer, **chosen: str) -> EvaluationSession:
    """Return a service with a generator and a reranker of Cohere's."""
    settings = Settings(
        store=f"edge:{index}", generator="cohere", reranker="cohere", cohere_url=cohere.url, cohere_api_key=KEY
    ).override(**chosen)
    return quill.service(settings, reranker=open_offer("reranker", settings))


def counted(asked: Service, micros: int = 5_000_000) -> tuple[EvaluationSession, Callable[[], int]]:
    """Give a service a budget of one long day; return it, and what tells how much is spent, in microdollars."""
    limiter = MemoryLimiter()
    budget = DailyBudget(limiter, micros, "docs", clock=lambda: 0.0)
    return quill.changed(asked, budget=budget), lambda: limiter.spent_micros("docs#1970-01-01")


def answered(asked: Service, question: str, turn_budget: TurnBudget) -> list[ChatResponse]:
    turn = opened(asked, ChatQuery(query=question), turn_budget)
    return [e for e in answer_turn(turn) if isinstance(e, ChatResponse)]


def opened(asked: Service, query: ChatQuery, budget: TurnBudget, deadline: Deadline | None = None) -> Turn:
    return Turn.open(query, asked.resources, models=quill.paid_from(budget, asked), deadline=deadline)


def without_usage(events: list[dict[str, object]]) -> list[dict[str, object]]:
    for event in events:
        delta = event.get("delta")
        if isinstance(delta, dict):
            delta.pop("usage", None)
    return events


def models(cohere: CohereServer) -> Counter[str]:
    return Counter(request.body["model"] for request in cohere.history)


def test_an_answer_costs_what_the_provider_bills(index: Path, cohere: CohereServer) -> None:
    asked = service(index, cohere)
    turn_budget = TurnBudget()
    *_, response = answered(asked, QUESTION, turn_budget)
    assert response.status == "answered"
    assert models(cohere) == {"command-a-03-2025": 1, "rerank-v3.5": 1}
    # 20 tokens in and 10 out, as the reply says, and one search.
    assert (turn_budget.input_tokens, turn_budget.output_tokens) == (20, 10)
    assert turn_budget.micros == 20 * 2.5 + 10 * 10 + 2000


def test_without_a_word_of_the_provider_more_is_counted_than_was_sent(index: Path, cohere: CohereServer) -> None:
    cohere.say(ChatReply(SAID, [(SAID, ["1"])], change=without_usage))
    turn_budget = TurnBudget()
    answered(service(index, cohere), QUESTION, turn_budget)
    chat = next(r for r in cohere.history if r.path == "/v2/chat")
    sent = "".join(m["content"] for m in chat.body["messages"])
    documents = "".join(d["data"]["title"] + d["data"]["snippet"] for d in chat.body["documents"])
    assert turn_budget.input_tokens > len(f"{sent}{documents}".encode()) / 2.6
    assert turn_budget.output_tokens >= len(SAID) / 2.5


def test_an_answer_that_is_left_is_counted_to_its_longest(index: Path, cohere: CohereServer) -> None:
    asked, turn_budget = service(index, cohere), TurnBudget()
    cohere.say(ChatReply(" ".join([SAID] * 5), [(SAID, ["1"])]))
    events = answer_turn(opened(asked, ChatQuery(query=QUESTION), turn_budget))
    next(e for e in events if isinstance(e, Delta))
    events.close()
    assert turn_budget.output_tokens == 600


def test_the_whole_turn_is_settled_in_the_budget(index: Path, cohere: CohereServer) -> None:
    asked = service(index, cohere)
    asked, spent = counted(asked)
    ask(asked, QUESTION)
    assert spent() == 20 * 2.5 + 10 * 10 + 2000
    asked.retrieve(RetrievalRequest(query=QUESTION))
    assert spent() == 20 * 2.5 + 10 * 10 + 2 * 2000


def test_in_a_economical_turn_the_cheaper_model_answers_and_nothing_is_reranked(
    index: Path, cohere: CohereServer
) -> None:
    turn_budget = TurnBudget("economy")
    *_, response = answered(service(index, cohere), QUESTION, turn_budget)
    assert (response.status, response.degraded_reason) == ("answered", None)
    assert models(cohere) == {"command-r7b-12-2024": 1}
    assert turn_budget.micros == pytest.approx(20 * 0.0375 + 10 * 0.15)


def test_a_economical_turn_takes_the_model_that_the_owner_names(index: Path, cohere: CohereServer) -> None:
    asked = service(index, cohere, economy_generator="cohere:command-r-08-2024")
    answered(asked, QUESTION, TurnBudget("economy"))
    assert models(cohere) == {"command-r-08-2024": 1}


def test_when_the_budget_is_used_up_answers_are_quoted_and_nobody_is_asked(index: Path, cohere: CohereServer) -> None:
    asked = service(index, cohere, daily_budget_usd="0")
    answer = ask(asked, QUESTION)
    assert answer.status == "degraded"
    assert answer.degraded_reason == "The day's budget for models is used up, so none was asked."
    assert "- `quill cache clean` removes every entry." in answer.response
    assert asked.retrieve(RetrievalRequest(query=QUESTION)).retrieved_chunks
    assert cohere.history == []
    assert "budget" in asked.status().degraded


def test_a_question_that_the_docs_do_not_answer_is_refused_all_the_same(index: Path, cohere: CohereServer) -> None:
    answer = ask(service(index, cohere, daily_budget_usd="0"), "Who won the cup in 1974?")
    assert answer.status == "not_in_docs"
    assert answer.degraded_reason == "The day's budget for models is used up, so none was asked."


def test_paid_vectors_are_left_out_when_nothing_may_be_paid(tmp_path: Path) -> None:
    embedder = quill.Terms()
    settings = quill.publish(tmp_path, embedder=embedder).override(
        embedder="cohere", daily_budget_usd="0", prices="embedder=1"
    )
    asked = quill.service(settings, embedder=embedder)
    answer = ask(asked, QUESTION)
    assert answer.source_chunks
    assert embedder.asked == []
    assert answer.status == "degraded"


def test_the_owners_own_questions_have_no_budget(index: Path, cohere: CohereServer) -> None:
    asked = service(index, cohere, daily_budget_usd="0")
    assert asked.answer(query=QUESTION)["status"] == "answered"
    assert asked.judge_answer(QUESTION, None).result.status == "answered"
    assert models(cohere)["command-a-03-2025"] == 2


def test_many_at_once_never_spend_more_than_there_is(index: Path, cohere: CohereServer) -> None:
    asked = service(index, cohere)
    asked, spent = counted(asked, 200_000)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: ask(asked, QUESTION), range(90)))
    found = models(cohere)
    # The least that each call can have cost, by the provider's own bill.
    billed = found["command-a-03-2025"] * (20 * 2.5 + 10 * 10) + found["rerank-v3.5"] * 2000
    # How many get the dear model depends on how many wait for it at once, as the most is set aside for each.
    assert 2_000 < billed <= spent() <= 200_000
    assert found["command-r7b-12-2024"] > 0
    assert {a.status for a in answers} == {"answered"}


def test_an_answer_that_is_left_before_its_first_word_is_counted_too(index: Path, cohere: CohereServer) -> None:
    cohere.say(ChatReply(SAID, pause=LONG))
    deadline, turn_budget = Deadline(), TurnBudget()
    asked = service(index, cohere)
    asked = quill.changed(asked, reranker=None)

    def leave() -> None:
        while not cohere.history:
            time.sleep(0.01)
        deadline.abort()

    leaving = Thread(target=leave)
    leaving.start()
    with pytest.raises(ClientDisconnected):
        list(answer_turn(opened(asked, ChatQuery(query=QUESTION), turn_budget, deadline)))
    leaving.join()
    assert turn_budget.output_tokens == 600
    assert turn_budget.input_tokens > 500


@pytest.mark.parametrize(
    ("fault", "billed"),
    [(Fault(hang=0.1, cut=True), True), (Fault(status=400), False), (failing(503), False)]
    # A model may have done its work by then.
    + [(failing(status), True) for status in (408, 500, 502, 504)],
)
def test_a_failure_is_counted_unless_it_is_known_to_be_free(
    index: Path, cohere: CohereServer, fault: Fault, billed: bool
) -> None:
    asked, turn_budget = service(index, cohere), TurnBudget()
    asked = quill.changed(asked, reranker=None)
    cohere.play(fault, fault)
    assert answered(asked, QUESTION, turn_budget)[-1].status == "degraded"
    assert (turn_budget.output_tokens == 600) is billed
    assert (turn_budget.micros > 0) is billed
    # And what may be billed was sent once.
    assert len(cohere.history) == 1 or not billed


def test_what_was_never_sent_costs_nothing(index: Path, cohere: CohereServer) -> None:
    asked, turn_budget = service(index, cohere, cohere_url="http://127.0.0.1:1"), TurnBudget()
    assert answered(asked, QUESTION, turn_budget)[-1].status == "degraded"
    assert turn_budget.micros == 0


def test_a_part_that_is_left_alone_costs_nothing(index: Path, cohere: CohereServer) -> None:
    asked = service(index, cohere)
    asked = quill.changed(asked, reranker=None)
    asked, spent = counted(asked)
    cohere.play(*[Fault(cut=True)] * 100)
    for _ in range(4):
        ask(asked, QUESTION)
    failed, calls = spent(), len(cohere.history)
    assert failed > 0
    ask(asked, QUESTION)
    assert (spent(), len(cohere.history)) == (failed, calls)


def test_no_turn_costs_more_than_it_reserves(index: Path, cohere: CohereServer) -> None:
    asked, spent = counted(service(index, cohere))
    before = 0
    hostile = ["a", QUESTION, QUESTION * 20, "🏴󠁧󠁢󠁥󠁮󠁧󠁿 cache " * 30, "缓存怎么清除 cache " * 60]
    for question in hostile:
        history = [Message(role="user", content="the cache")] * 4
        # A service that counts nothing, for a rewriting and a draft.
        for _ in range(2):
            cohere.say(ChatReply(SAID, [(SAID, ["1"])], change=without_usage))
        with quill.meter_of(asked).budget.reserving(UsualCost(1, 1)) as budget:
            query = ChatQuery(query=question[:1500], conversation_history=history)
            assert [*answer_turn(opened(asked, query, budget))]
            assert 0 < budget.micros <= sum(reservation.micros for reservation in budget.reservations)
        assert spent() > before
        before = spent()


class Silent(CohereServer):
    """Its summaries fail, so that there is more and more to make the next one from."""

    def _chat(self, request: ChatRequest) -> Answer:
        if not request.stream:
            self.replies.appendleft(ChatReply(""))
        return super()._chat(request)


@pytest.fixture
def silent() -> Iterator[Silent]:
    with Silent() as running:
        yield running


def test_a_long_conversation_that_is_kept_costs_no_more_than_it_reserves(
    index: Path, silent: Silent, tmp_path: Path
) -> None:
    cohere = silent
    asked = service(index, cohere, records=f"sqlite:{tmp_path / 'records'}", reranker="none")
    asked, spent = counted(asked, 50_000_000)
    for number in range(9):
        lines = "" if number == 8 else ("─" * 120 + " ") * 14
        query = ChatQuery(query=f"{QUESTION} {number}? {lines}"[:1900], thread_id="t1")
        with quill.meter_of(asked).budget.reserving(UsualCost(1, 1)) as budget:
            assert [*answer_turn(opened(asked, query, budget))]
            assert 0 < budget.micros <= sum(reservation.micros for reservation in budget.reservations)
    assert spent() > 0
    told = [len(r.body["messages"][-1]["content"].encode()) for r in cohere.history if not r.body["stream"]]
    assert 15_000 < max(told) <= 16_000


def test_without_room_for_the_dearer_of_two_generators_none_is_asked(index: Path, cohere: CohereServer) -> None:
    asked = service(
        index,
        cohere,
        generator="cohere:command-r7b-12-2024",
        economy_generator="cohere:command-a-03-2025",
        reranker="none",
    )
    asked, spent = counted(asked, 40_000)
    for _ in range(3):
        ask(asked, QUESTION)
    assert quill.meter_of(asked).budget._limiter.reserve("docs#1970-01-01", 39_000, 40_000, 0.0)
    before = spent()
    assert ask(asked, QUESTION).status == "degraded"
    assert spent() == before


def test_without_a_model_nothing_is_metered() -> None:
    resources = Service.open(Settings()).resources
    assert resources.meter is None
    with resources.reserving("a question", drafts=True, votes=True) as models:
        assert models is resources.models
        assert (models.spending.level, models.spending.reason, models.spending.usd) == ("full", None, 0.0)


def test_nothing_is_logged_of_what_was_asked(
    index: Path, cohere: CohereServer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="chapterverse"):
        ask(service(index, cohere, daily_budget_usd="0"), "How do I clear the canary-71 cache?")
    assert "canary-71" not in caplog.text
