"""Second votes in whole answers, over HTTP: they can only take citations away, and their failures change nothing."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from api import quill
from api.answer.test_pipeline import ScriptedGenerator
from chapterverse.settings import Settings
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.resources import BudgetLevel
from chapterverse_api.answer.turn import Turn
from chapterverse_api.commands import ServiceSession
from chapterverse_api.contract import ChatQuery, ChatResponse, Delta, Segment
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import MAX_VOTE_BYTES, MAX_VOTES, Span
from chapterverse_api.ext.budget.daily_budget import TurnBudget
from chapterverse_api.ext.budget.meter import usual_cost
from chapterverse_api.ext.budget.prices import Price, Prices
from fakes.loopback import LONG, SOON, Fault, failing
from fakes.openai_server import KEY, OpenAIServer
from fakes.recorded_log import recorded_log

QUESTION = "How do I clear the cache?"
#: To the letter in its section, and by its words alone rather sure to be there.
SURE = "`quill cache clean` removes every entry."
DOUBTFUL = "Use `quill cache clean` to empty the whole cache."
ALSO = "Running `quill cache clean` deletes everything that the cache holds."
UNSAID = "Every penguin inherits seven golden bicycles from the ministry."


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    with recorded_log() as stream:
        yield stream


def service(
    index: Path, server: OpenAIServer | None, *sentences: str, breaks: int | None = None, prices: str = ""
) -> ServiceSession:
    """Return a service whose generator writes these sentences, each of source 1, with a checker where there is one."""
    settings = Settings(store=f"edge:{index}", prices=prices)
    if server:
        settings = settings.override(checker="openai:bespoke-minicheck", openai_url=server.url, openai_api_key=KEY)
    spans = [Span(f"{sentence}\n\n", ("1",)) for sentence in sentences]
    return quill.service(settings, generator=ScriptedGenerator(*spans, breaks=breaks))


def answered(
    asked: ServiceSession, *, budget: TurnBudget | None = None, deadline: Deadline | None = None
) -> ChatResponse:
    models = quill.paid_from(budget, asked) if budget else None
    return quill.whole(
        answer_turn(Turn.open(ChatQuery(query=QUESTION), asked.resources, models=models, deadline=deadline))
    )


def checks(answer: ChatResponse) -> list[tuple[str, str, list[str]]]:
    return [(s.text.strip(), s.check, s.citations) for s in answer.segments]


def by_words(index: Path, *sentences: str) -> list[Segment]:
    return answered(service(index, None, *sentences)).segments


def claims(server: OpenAIServer) -> list[str]:
    return sorted(r.body["messages"][-1]["content"].rpartition("\nClaim: ")[2] for r in server.history)


def test_a_vote_against_a_sentence_takes_its_citations_away(index: Path, server: OpenAIServer) -> None:
    server.verdict = lambda document, claim: "No" if claim == DOUBTFUL else "Yes"
    answer = answered(service(index, server, SURE, DOUBTFUL, ALSO))
    assert checks(answer) == [(SURE, "confirmed", ["1"]), (DOUBTFUL, "unconfirmed", []), (ALSO, "confirmed", ["1"])]
    # What the words are sure of is not asked, nor what they hold for unsaid.
    assert claims(server) == [ALSO, DOUBTFUL]
    document = server.history[0].body["messages"][-1]["content"]
    assert document.startswith("Document: Caching › Clearing the cache\n\n- `quill cache clean` removes every entry.")


def test_what_a_vote_rejects_counts_as_any_unconfirmed_claim(index: Path, server: OpenAIServer) -> None:
    before = answered(service(index, None, SURE, DOUBTFUL, ALSO))
    server.verdict = lambda document, claim: "No"
    after = answered(service(index, server, SURE, DOUBTFUL, ALSO))
    assert (before.status, after.status) == ("answered", "partial")
    assert after.grounding_confidence < before.grounding_confidence


def test_votes_for_sentences_change_nothing_whatever_a_page_talks_them_into(index: Path, server: OpenAIServer) -> None:
    sentences = (DOUBTFUL, UNSAID, SURE, ALSO, "`quill cache clean` never removes every entry.")
    assert answered(service(index, server, *sentences)).segments == by_words(index, *sentences)
    assert claims(server) == [ALSO, DOUBTFUL]


@pytest.mark.parametrize(
    "faults",
    [
        [failing(500)] * 4,
        [failing(429)] * 8,
        [Fault(401)] * 4,
        [Fault(change=lambda _: b"nonsense")] * 4,
        [Fault(change=lambda _: {"choices": [{"message": {"content": "As you like."}}]})] * 4,
        [Fault(cut=True)] * 4,
    ],
)
def test_a_vote_that_fails_leaves_the_answer_as_it_was_and_an_error_in_the_log(
    index: Path, server: OpenAIServer, stream: io.StringIO, faults: list[Fault]
) -> None:
    server.play(*faults)
    answer = answered(service(index, server, SURE, DOUBTFUL, ALSO))
    assert (answer.status, answer.degraded_reason) == ("answered", None)
    assert answer.segments == by_words(index, SURE, DOUBTFUL, ALSO)
    logged = [json.loads(line) for line in stream.getvalue().splitlines()]
    errors = [event for event in logged if event["event"] == "error"]
    assert errors
    assert {event["part"] for event in errors} == {"checker"}
    assert {event["turn_id"] for event in errors} == {answer.turn_id}
    assert DOUBTFUL not in stream.getvalue()


@pytest.mark.slow
def test_a_slow_vote_is_given_up_at_the_deadline(index: Path, server: OpenAIServer, stream: io.StringIO) -> None:
    server.play(*[Fault(hang=LONG)] * 2)
    start = time.monotonic()
    answer = answered(service(index, server, SURE, DOUBTFUL, ALSO), deadline=Deadline(0.3))
    assert time.monotonic() - start < SOON
    assert answer.segments == by_words(index, SURE, DOUBTFUL, ALSO)
    assert '"part": "checker"' in stream.getvalue()


def test_segments_wait_for_the_vote_before_them_and_none_overtakes_it(index: Path, server: OpenAIServer) -> None:
    gate = Event()

    def verdict(document: str, claim: str) -> str:
        gate.wait(LONG)
        return "No"

    server.verdict = verdict
    asked = service(index, server, SURE, DOUBTFUL, SURE)
    events = answer_turn(Turn.open(ChatQuery(query=QUESTION), asked.resources))
    deltas = (event for event in events if isinstance(event, Delta))
    # This one is there while the vote on the next is open.
    assert next(deltas).text.strip() == SURE
    assert not gate.is_set()
    gate.set()
    assert [(d.text.strip(), d.check) for d in deltas] == [(DOUBTFUL, "unconfirmed"), (SURE, "confirmed")]


def test_an_answer_of_which_no_citation_is_left_is_refused(index: Path, server: OpenAIServer) -> None:
    server.verdict = lambda document, claim: "No"
    answer = answered(service(index, server, DOUBTFUL, ALSO))
    assert (answer.status, answer.segments[0].kind) == ("not_in_docs", "framing")
    assert DOUBTFUL not in answer.response


def test_what_waits_for_a_vote_is_shown_before_the_model_is_said_to_have_failed(
    index: Path, server: OpenAIServer
) -> None:
    answer = answered(service(index, server, DOUBTFUL, SURE, breaks=2))
    assert (answer.status, checks(answer)) == ("degraded", [(DOUBTFUL, "confirmed", ["1"])])
    server.verdict = lambda document, claim: "No"
    answer = answered(service(index, server, DOUBTFUL, SURE, breaks=2))
    assert (answer.status, answer.segments[-1].kind) == ("degraded", "quote")


def test_of_one_answer_only_so_many_sentences_are_asked_about(index: Path, server: OpenAIServer) -> None:
    server.verdict = lambda document, claim: "No"
    answer = answered(service(index, server, SURE, *[DOUBTFUL] * (MAX_VOTES + 2)))
    assert len(server.history) == MAX_VOTES
    assert [s.check for s in answer.segments][-2:] == ["confirmed", "confirmed"]


def test_after_a_failure_no_more_is_asked_and_after_three_the_checker_rests(index: Path, server: OpenAIServer) -> None:
    asked = service(index, server, SURE, DOUBTFUL)
    server.play(*[failing(500)] * 3)
    for _ in range(3):
        answered(asked)
    assert asked.status().degraded == ["checker"]
    sent = len(server.history)
    assert answered(asked).status == "answered"
    assert len(server.history) == sent


def test_a_reader_who_leaves_ends_the_votes(index: Path, server: OpenAIServer) -> None:
    server.play(Fault(hang=LONG))
    deadline, start = Deadline(), time.monotonic()
    events = answer_turn(
        Turn.open(ChatQuery(query=QUESTION), service(index, server, SURE, DOUBTFUL).resources, deadline=deadline)
    )
    next(event for event in events if isinstance(event, Delta))
    deadline.abort()
    events.close()
    assert time.monotonic() - start < SOON


def test_votes_are_paid_from_the_turns_budget(index: Path, server: OpenAIServer) -> None:
    asked, budget = service(index, server, SURE, DOUBTFUL, ALSO, prices="checker=3/5"), TurnBudget()
    answered(asked, budget=budget)
    # One token in and one out, as each reply says.
    assert (len(server.history), budget.micros) == (2, 2 * (3 + 5))


def test_a_vote_without_a_count_costs_more_than_was_sent(index: Path, server: OpenAIServer) -> None:
    server.play(Fault(change=lambda frames: (f for f in frames if b"usage" not in f)))
    budget = TurnBudget()
    answered(service(index, server, SURE, DOUBTFUL, prices="checker=1/0"), budget=budget)
    (request,) = server.history
    assert budget.micros > sum(len(m["content"]) for m in request.body["messages"]) / 2.6


@pytest.mark.parametrize(("level", "prices", "votes"), [
    ("full", "checker=1/1", 1), ("economy", "checker=1/1", 0), ("free", "checker=1/1", 0),
    # What runs on one's own machine stays.
    ("economy", "", 1), ("free", "", 1),
])  # fmt: skip
def test_a_paid_checker_is_asked_while_most_of_the_budget_is_left(
    index: Path, server: OpenAIServer, level: BudgetLevel, prices: str, votes: int
) -> None:
    asked = service(index, server, SURE, DOUBTFUL, prices=prices)
    answered(asked, budget=TurnBudget(level))
    assert len(server.history) == votes


@pytest.mark.slow
def test_no_votes_cost_more_than_was_set_aside(index: Path, server: OpenAIServer) -> None:
    prices = Prices(checker=Price(input_token=3, output_token=7))
    most = usual_cost(prices, QUESTION, votes=MAX_VOTES).full
    # The longest texts that are asked about, and a server that does not count.
    assert most > MAX_VOTES * (MAX_VOTE_BYTES / 2.5 * 3 + 16 * 7)
    server.play(*[Fault(change=lambda frames: (f for f in frames if b"usage" not in f))] * MAX_VOTES)
    budget = TurnBudget()
    answered(service(index, server, SURE, *[DOUBTFUL] * 8, prices="checker=3/7"), budget=budget)
    assert 0 < budget.micros <= most


@pytest.mark.slow
def test_without_a_checker_no_turn_has_one(index: Path) -> None:
    assert service(index, None).resources.unlimited_models.checker is None
