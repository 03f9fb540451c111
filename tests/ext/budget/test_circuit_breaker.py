from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from api import quill
from chapterverse.errors import AnswerWithheld, ModelLoading, NotAsked, ProviderError
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.requests import ModelRequest
from chapterverse_api.ext.budget.circuit_breaker import (
    FAILURE_THRESHOLD,
    RESET_SECONDS,
    CircuitBreaker,
    CircuitOpen,
)
from chapterverse_api.ext.budget.daily_budget import TurnBudget
from chapterverse_api.ext.budget.meter import Metered, MeteredWriter
from chapterverse_api.ext.budget.prices import FREE
from fakes.clocks import Clock


class Reranker:
    """Fails this many times, then ranks."""

    name = "fake:reranker"

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.asked = 0

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        self.asked += 1
        if self.asked <= self.failures:
            raise ProviderError("The model is down.")
        return [0.5 for _ in texts]


def fail(circuit: CircuitBreaker, times: int = FAILURE_THRESHOLD) -> None:
    for _ in range(times):
        with pytest.raises(ProviderError, match=r"down"), circuit.calling():
            raise ProviderError("down")


def test_a_part_that_fails_again_and_again_is_left_alone() -> None:
    clock = Clock()
    circuit = CircuitBreaker("generator", clock=clock)
    fail(circuit)
    assert circuit.is_open
    ran = []
    with (
        pytest.raises(CircuitOpen, match=r"The generator failed 3 times in a row and is skipped"),
        circuit.calling(),
    ):
        ran.append(1)
    assert ran == []


def test_a_request_that_was_not_sent_says_nothing_about_the_part() -> None:
    circuit = CircuitBreaker("generator")
    fail(circuit, FAILURE_THRESHOLD - 1)
    for _ in range(FAILURE_THRESHOLD):
        with pytest.raises(NotAsked), circuit.calling():
            raise NotAsked("The budget is spent.")
    assert not circuit.is_open
    fail(circuit, 1)
    assert circuit.is_open


def test_a_success_in_between_begins_the_count_anew() -> None:
    circuit = CircuitBreaker("generator")
    fail(circuit, FAILURE_THRESHOLD - 1)
    with circuit.calling():
        pass
    fail(circuit, FAILURE_THRESHOLD - 1)
    assert not circuit.is_open


def test_a_question_that_a_filter_stops_says_nothing_about_others() -> None:
    circuit = CircuitBreaker("generator")
    for _ in range(FAILURE_THRESHOLD):
        with pytest.raises(AnswerWithheld), circuit.calling():
            raise AnswerWithheld("Ask in other words.")
    assert not circuit.is_open


@pytest.mark.parametrize("answer", [ModelLoading, AnswerWithheld])
def test_an_answer_of_another_kind_is_one_and_ends_the_rest(answer: type[Exception]) -> None:
    clock = Clock()
    circuit = CircuitBreaker("generator", clock=clock)
    fail(circuit)
    clock.now += RESET_SECONDS
    with pytest.raises(answer), circuit.calling():
        raise answer("of its own kind")
    assert not circuit.is_open


def test_other_errors_say_nothing_about_the_part() -> None:
    circuit = CircuitBreaker("generator")
    for _ in range(FAILURE_THRESHOLD):
        with pytest.raises(ValueError, match="ours"), circuit.calling():
            raise ValueError("ours")
    assert not circuit.is_open


def test_after_a_rest_one_question_tries_and_decides_for_the_others() -> None:
    clock = Clock()
    circuit = CircuitBreaker("generator", clock=clock)
    fail(circuit)
    clock.now += RESET_SECONDS
    with circuit.calling(), pytest.raises(CircuitOpen), circuit.calling():
        pytest.fail("a second question was let through")
    assert not circuit.is_open
    fail(circuit)
    clock.now += RESET_SECONDS
    fail(circuit, 1)
    with pytest.raises(CircuitOpen), circuit.calling():
        pytest.fail("the part has failed a moment ago")


def test_a_try_that_never_comes_back_does_not_block_for_ever() -> None:
    clock = Clock()
    circuit = CircuitBreaker("generator", clock=clock)
    fail(circuit)
    clock.now += RESET_SECONDS
    with pytest.raises(GeneratorExit), circuit.calling():
        raise GeneratorExit
    clock.now += RESET_SECONDS
    with circuit.calling():
        pass
    assert not circuit.is_open


def test_among_many_threads_one_tries() -> None:
    clock = Clock()
    circuit = CircuitBreaker("generator", clock=clock)
    fail(circuit)
    clock.now += RESET_SECONDS

    def tries(_: int) -> bool:
        try:
            with circuit.calling():
                raise ProviderError("down")
        except CircuitOpen:
            return False
        except ProviderError:
            return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(tries, range(64))) == 1


def test_a_reranker_behind_a_circuit() -> None:
    model = Reranker(FAILURE_THRESHOLD)
    guarded = Metered(model, FREE, TurnBudget(), CircuitBreaker("reranker"))
    assert guarded.name == model.name
    for _ in range(FAILURE_THRESHOLD + 2):
        with pytest.raises(ProviderError):
            guarded.rerank("a question", ["a text"])
    assert model.asked == FAILURE_THRESHOLD


def test_a_writer_is_left_alone_with_its_generator_and_its_own_failures_are_not_counted() -> None:
    class Late:
        def write(self, request: ModelRequest) -> str:
            raise ProviderError("too late")

    circuit = CircuitBreaker("generator")
    writer = MeteredWriter(Late(), FREE, TurnBudget(), circuit)
    for _ in range(FAILURE_THRESHOLD):
        with pytest.raises(ProviderError, match="too late"):
            writer.write(ModelRequest("", (), 1, Deadline()))
    assert not circuit.is_open
    fail(circuit)
    with pytest.raises(CircuitOpen):
        writer.write(ModelRequest("", (), 1, Deadline()))


def test_an_embedder_behind_a_circuit() -> None:
    model = quill.Terms()
    circuit = CircuitBreaker("embedder")
    guarded = Metered(model, FREE, TurnBudget(), circuit)
    assert guarded.card == model.card
    assert guarded.embed_query("cache") == model.embed_query("cache")
    fail(circuit)
    with pytest.raises(CircuitOpen, match="embedder"):
        guarded.embed_query("cache")
