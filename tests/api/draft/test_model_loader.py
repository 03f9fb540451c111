"""A model that takes long to load is loaded in the background, and readers get quotes until it is there."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from api import quill
from chapterverse import local_server as entry_points
from chapterverse.errors import ModelLoading
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.commands import ServiceSession
from chapterverse_api.deadline import Deadline
from chapterverse_api.ext.budget.circuit_breaker import FAILURE_THRESHOLD
from chapterverse_api.ext.openai.model_loader import ModelLoader, open_loaders
from fakes.loopback import LONG, SOON, Answer, Fault, Request
from fakes.odd_model import ODDITIES, TEXT, OddModel

QUESTION = "Where does the cache live?"
LOADING = "The answer is quoted, since the model is still being loaded: ask again in a minute."


class ColdModel(OddModel):
    """A server that answers nothing until its model is loaded, as Ollama does."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded = threading.Event()
        self.waiting = threading.Event()

    def answer(self, request: Request) -> Answer:
        self.waiting.set()
        self.loaded.wait(LONG)
        return ODDITIES["usual"].answer({"stream": False, **request.body})


@pytest.fixture
def cold() -> Iterator[ColdModel]:
    with ColdModel() as server:
        yield server
        server.loaded.set()


def test_readers_get_quotes_until_the_model_is_loaded(index: Path, cold: ColdModel) -> None:
    service = ServiceSession.open(Settings(store=f"edge:{index}", generator="openai:usual", openai_url=cold.url))
    (loader,) = open_loaders(service.resources)
    loader.start_if_cold()
    assert cold.waiting.wait(SOON)
    for _ in range(FAILURE_THRESHOLD + 1):
        answer = quill.ask(service, QUESTION)
        assert (answer.status, answer.degraded_reason) == ("degraded", LOADING)
    # No reader's request ended the loading, or asked for it again.
    assert len(cold.history) == 1
    assert "generator" not in service.status().degraded
    cold.loaded.set()
    until = time.monotonic() + LONG
    while (answer := quill.ask(service, QUESTION)).degraded_reason == LOADING and time.monotonic() < until:
        time.sleep(0.01)
    assert answer.response == TEXT.replace(" [1]", "")


def test_a_process_without_such_a_model_loads_nothing_of_the_room() -> None:
    program = (
        "import sys\nfrom chapterverse.settings import Settings\n"
        "from chapterverse_api.app import ServiceLoader\n"
        "ServiceLoader(Settings(generator=sys.argv[1])).load_models()()\n"
        "print('chapterverse_api.ext.openai.model_loader' in sys.modules)"
    )
    for generator, is_loaded in (("extractive", "False"), ("cohere", "False"), ("openai:m", "True")):
        done = subprocess.run([sys.executable, "-c", program, generator], capture_output=True, text=True)
        assert (done.stdout.strip(), done.stderr) == (is_loaded, "")


def test_a_server_of_others_is_not_asked() -> None:
    service = ServiceSession.open(Settings(generator="openai:gpt-4.1-mini", openai_api_key="k"))
    assert open_loaders(service.resources) == []


def test_the_served_model_is_loaded_at_the_start_and_the_loading_ends_at_the_shutdown(
    index: Path,
) -> None:
    with OddModel() as silent:
        silent.play(Fault(hang=LONG))
        settings = Settings(store=f"edge:{index}", generator="openai:usual", openai_url=silent.url)
        service = entry_points.Background(create_app(settings=settings), entry_points.bind("127.0.0.1", 0))
        until = time.monotonic() + LONG
        while not silent.history and time.monotonic() < until:
            time.sleep(0.01)
        assert silent.history
        service.stop()
        assert silent.left.wait(SOON)


def test_a_server_that_says_that_it_loads_is_asked_again() -> None:
    outcomes: list[Exception | None] = [ModelLoading("Loading.", retryable=True), None]
    done = threading.Event()

    def request(deadline: Deadline) -> None:
        outcome = outcomes.pop(0)
        if outcome:
            raise outcome
        done.set()

    loader = ModelLoader(request)
    loader.start()
    assert loader.is_loading
    assert done.wait(SOON)
    with loader.asking(Deadline()):
        assert not loader.is_loading


def test_a_loader_that_was_stopped_stays_so() -> None:
    asked = list[Deadline]()
    loader = ModelLoader(asked.append)
    loader.stop()
    loader.start()
    with loader.asking(Deadline()):
        assert asked == []


def test_a_model_that_answers_at_once_is_never_asked_more(index: Path) -> None:
    with OddModel() as warm:
        service = ServiceSession.open(Settings(store=f"edge:{index}", generator="openai:usual", openai_url=warm.url))
        assert open_loaders(service.resources)
        for _ in range(3):
            assert quill.ask(service, QUESTION).degraded_reason is None
        assert len(warm.history) == 3
