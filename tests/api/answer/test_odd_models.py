"""Answers by servers that answer oddly: each reader gets an answer, quotes or one true sentence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import pytest

from api import quill
from chapterverse.settings import Settings
from chapterverse_api.commands import ServiceSession
from chapterverse_api.contract import ChatResponse
from chapterverse_api.ext.budget.circuit_breaker import FAILURE_THRESHOLD
from fakes.loopback import Fault
from fakes.odd_model import FORBIDDEN, ODDITIES, PIECES, TEXT, OddModel
from fakes.openai_server import OpenAIServer, chunk

QUESTION = "Where does the cache live, and how is it removed?"
FORBIDDEN_QUESTION = f"How do I {FORBIDDEN} a build that hangs in the cache location?"
SAID = TEXT.replace(" [1]", "")
FIRST = "".join(PIECES[:2]).replace(" [1]", "").strip()
THOUGHTS = ("Okay", "reader asks", "Hm.")
EARLY = {
    "early": "The answer ends early, since the model failed.",
    "withheld": "The answer ends early, since the model withholds the rest.",
}
SENTENCES = {
    "withheld-400": "withheld the answer by its content filter: ask in other words",
    "too-long-always": "finds the prompt longer than its model's context: give the model at least 8,000 tokens",
    "spent": "has a budget, a quota or a balance that is used up: check the account's billing",
    "reason-abort": "broke off in the middle of its answer: try again later",
    "login": "answered with something that is no reply",
}
READERS = 50
WITHHELD = "The answer is quoted, since the model gives none to this question."


@pytest.fixture
def model() -> Iterator[OddModel]:
    with OddModel() as server:
        yield server


def session(index: Path, model: OddModel, name: str) -> ServiceSession:
    return ServiceSession.open(Settings(store=f"edge:{index}", generator=f"openai:{name}", openai_url=model.url))


def ask(index: Path, model: OddModel, name: str) -> ChatResponse:
    question = FORBIDDEN_QUESTION if ODDITIES[name].withholds else QUESTION
    return quill.ask(session(index, model, name), question)


def check(name: str, answer: ChatResponse) -> None:
    """Check that a reader got what this oddity leaves."""
    outcome = ODDITIES[name].outcome
    kinds = {segment.kind for segment in answer.segments}
    assert not any(thought in answer.response for thought in THOUGHTS)
    assert "127.0.0.1" not in answer.model_dump_json()
    if outcome == "answered":
        assert (answer.response, answer.degraded_reason, answer.status) == (SAID, None, "answered")
        assert all(segment.check == "confirmed" for segment in answer.segments)
    elif outcome == "cut":
        assert answer.response.startswith(FIRST)
        assert (answer.status, answer.degraded_reason) == ("partial", None)
        assert "cut off here" in answer.response
    elif outcome in EARLY:
        assert answer.response.startswith(FIRST)
        assert (answer.status, answer.degraded_reason) == ("degraded", EARLY[outcome])
    else:
        assert "quote" in kinds
        assert "prose" not in kinds
        assert answer.status == "degraded"


@pytest.mark.parametrize("name", ODDITIES)
def test_an_odd_reply_is_read_as_what_it_is(index: Path, model: OddModel, name: str) -> None:
    check(name, ask(index, model, name))


@pytest.mark.parametrize("name", [name for name, odd in ODDITIES.items() if odd.withholds])
def test_a_question_that_is_withheld_is_its_reader_s_matter(index: Path, model: OddModel, name: str) -> None:
    service = session(index, model, name)
    for _ in range(2 * FAILURE_THRESHOLD):
        check(name, quill.ask(service, FORBIDDEN_QUESTION))
    assert quill.ask(service, QUESTION).response == SAID


def test_a_prompt_that_is_too_long_for_all_is_no_failure_of_the_service(index: Path, model: OddModel) -> None:
    service = session(index, model, "too-long-always")
    for _ in range(2 * FAILURE_THRESHOLD):
        assert quill.ask(service, QUESTION).degraded_reason == WITHHELD
    assert "generator" not in service.status().degraded


@pytest.mark.parametrize(("name", "requests"), [("no-stream", 2), ("no-system", 2), ("no-counts", 2)])
def test_what_a_server_does_not_take_is_learned_once(index: Path, model: OddModel, name: str, requests: int) -> None:
    service = session(index, model, name)
    quill.ask(service, QUESTION)
    assert len(model.history) == requests
    quill.ask(service, QUESTION)
    assert len(model.history) == requests + 1


def test_an_error_of_a_service_is_named_and_its_words_are_not(
    index: Path, model: OddModel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "chapterverse")
    for name, sentence in SENTENCES.items():
        caplog.clear()
        answer = ask(index, model, name)
        assert f"The model service {sentence}." in caplog.text
        assert "127.0.0.1" not in answer.model_dump_json()


@pytest.mark.slow
@pytest.mark.parametrize("name", ODDITIES)
def test_a_stream_that_is_cut_anywhere_is_no_whole_answer(index: Path, model: OddModel, name: str) -> None:
    whole = ask(index, model, name).response
    for share in (0.2, 0.5, 0.8):
        service = session(index, model, name)
        question = FORBIDDEN_QUESTION if ODDITIES[name].withholds else QUESTION
        model.faults.clear()
        model.play(Fault(change=partial(truncate, share=share)))
        answer = quill.ask(service, question)
        assert answer.response == whole or answer.status in ("degraded", "partial")
        assert all(s.check != "confirmed" or s.kind == "quote" or s.text.strip() in SAID for s in answer.segments)
        # The next one is right.
        model.faults.clear()
        check(name, quill.ask(service, question))


def truncate(body: object, share: float) -> object:
    """Cut a stream, or a document, at a share of its bytes."""
    if not isinstance(body, Iterator):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return raw[: int(len(raw) * share)]
    raw = b"".join(islice(body, 64))
    return iter([raw[: int(len(raw) * share)]])


@pytest.mark.slow
def test_fifty_readers_at_once_pay_for_no_other_s_question(index: Path, model: OddModel) -> None:
    # Large replies take most of the time, and say nothing about other readers.
    names = [name for name in ODDITIES if "large" not in name]
    services = {name: session(index, model, name) for name in names}

    def read(first: int) -> None:
        for name in islice(cycle(names), first, first + 4):
            question = FORBIDDEN_QUESTION if ODDITIES[name].withholds else QUESTION
            check(name, quill.ask(services[name], question))
            if ODDITIES[name].withholds:
                assert quill.ask(services[name], QUESTION).response == SAID

    with ThreadPoolExecutor(READERS) as readers:
        # Each oddity is met by several readers at once, and each reader meets several.
        for outcome in [readers.submit(read, n * len(names) // READERS) for n in range(READERS)]:
            outcome.result()
    failing = {name for name, service in services.items() if "generator" in service.status().degraded}
    assert failing <= {name for name in names if ODDITIES[name].outcome in ("quoted", "early")}
    assert not {name for name in failing if ODDITIES[name].withholds}


def test_a_sentence_with_a_lost_character_is_never_confirmed(index: Path, model: OddModel) -> None:
    with OpenAIServer(key="") as server:
        server.scripts.append(["The cache lives in `.quill/ca\ufffd", "\ufffdche` [1]. ", PIECES[2], PIECES[3]])
        service = ServiceSession.open(
            Settings(store=f"edge:{index}", generator="openai:local-model", openai_url=server.url)
        )
        damaged, whole = quill.ask(service, QUESTION).segments
    assert (damaged.check, damaged.citations) == ("unconfirmed", [])
    assert whole.check == "confirmed"


def test_a_draft_of_lost_characters_only_is_replaced_by_quotes(index: Path) -> None:
    with OpenAIServer(key="") as server:
        server.scripts.append(["The cache lives in `.quill/ca\ufffd", "\ufffdche` [1]."])
        answer = quill.ask(
            ServiceSession.open(Settings(store=f"edge:{index}", generator="openai:local-model", openai_url=server.url)),
            QUESTION,
        )
    assert (answer.status, answer.degraded_reason) == ("degraded", WITHHELD)
    assert "quote" in {segment.kind for segment in answer.segments}


def test_an_answer_to_another_question_is_not_confirmed(index: Path, model: OddModel) -> None:
    with OpenAIServer(key="") as server:
        other = "Your invoice of 40 euros is due on Monday [1]. The dentist opens at nine [2]."
        server.play(Fault(change=lambda _: iter([chunk({"content": other}), chunk({}, "stop")])))
        service = ServiceSession.open(
            Settings(store=f"edge:{index}", generator="openai:local-model", openai_url=server.url)
        )
        answer = quill.ask(service, QUESTION)
    assert answer.status == "not_in_docs"
    assert "invoice" not in answer.response
