"""A question on AWS: a Function URL, AWS's runtime and ours, the real service, a model behind HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from api import quill
from api.mcp.calls import headers, modern
from fakes.cohere_chat import ChatReply, Events
from fakes.cohere_server import KEY, CohereServer
from fakes.loopback import Fault
from fakes.sse import events
from lambdas.environments import AWSLAMBDARIC, BOOTSTRAP, HANDLER, ROOT, Environment
from lambdas.function_url import FunctionUrl

STREAM = {"accept": "text/event-stream"}
QUESTION = {"query": "How do I clear the cache?"}
TRUE = "`quill cache clean` removes every entry."
MORE = " `quill cache prune` removes the entries that no page uses any more."
LAST = " That is all there is."

needs_awslambdaric = pytest.mark.skipif(
    find_spec("awslambdaric") is None, reason="awslambdaric has no wheel for this platform; it runs on Linux"
)
RUNTIMES = [
    pytest.param(AWSLAMBDARIC, id="awslambdaric", marks=needs_awslambdaric),
    pytest.param(BOOTSTRAP, id="bootstrap"),
]
Start = Callable[..., Environment]


@pytest.fixture(scope="module")
def cohere() -> Iterator[CohereServer]:
    with CohereServer() as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("function")
    quill.publish(folder / "index")
    return folder


@pytest.fixture(scope="module", params=RUNTIMES)
def command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    arguments: tuple[str, ...] = request.param
    return arguments


@pytest.fixture(scope="module")
def start(command: tuple[str, ...], folder: Path, cohere: CohereServer) -> Start:
    """What starts a process of the real service."""
    settings = {
        "CHAPTERVERSE_STORE": f"edge:{folder / 'index'}",
        "CHAPTERVERSE_GENERATOR": "cohere",
        "CHAPTERVERSE_COHERE_URL": cohere.url,
        "COHERE_API_KEY": KEY,
        "CHAPTERVERSE_MCP": "1",
        "LAMBDA_TASK_ROOT": ROOT / "tests",
        "PYTHONPATH": ROOT / "tests",
    }
    return lambda handler=HANDLER, **more: Environment(command, folder, handler, **{**settings, **more})


@pytest.fixture(scope="module")
def function(start: Start) -> Iterator[FunctionUrl]:
    with FunctionUrl(start, most=2) as function:
        yield function


@pytest.fixture(scope="module")
def strange(start: Start) -> Iterator[FunctionUrl]:
    with FunctionUrl(partial(start, "lambdas.strange_app.handler"), seconds=4.0) as function:
        yield function


def ask(function: FunctionUrl, **headers: str) -> httpx.Response:
    return httpx.post(f"{function.url}/v1/chat", json=QUESTION, headers=headers, timeout=60)


def gated(gate: threading.Event, ended: Callable[[], None] = lambda: None) -> ChatReply:
    """Return an answer that says two sentences, so that the first is shown, and the rest when the gate opens."""

    def waiting(documented: Events) -> Any:
        for event in documented:
            if LAST[6:] in json.dumps(event):
                gate.wait(60)
            yield event

    cited = [(TRUE, ["1"]), (MORE.strip(), ["1"])]
    return ChatReply([TRUE, MORE, LAST[:6], LAST[6:]], cited, change=waiting, ended=ended)


def test_it_starts_and_the_first_answer_is_as_good_as_the_next(function: FunctionUrl) -> None:
    health = httpx.get(f"{function.url}/v1/health", timeout=60)
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    (environment,) = function.environments
    assert environment.api.asked.is_set()
    first, warm = ask(function), ask(function)
    assert first.json()["status"] == warm.json()["status"] == "answered"
    assert first.json()["response"] == warm.json()["response"]
    assert first.json()["sources_cited"]
    assert function.environments == [environment]


def test_an_agent_asks_over_mcp(function: FunctionUrl) -> None:
    def call(method: str, status: int = 200, **params: Any) -> dict[str, Any]:
        message = modern(method, **params)
        answer = httpx.post(f"{function.url}/mcp", json=message, headers=headers(message), timeout=60)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
        reply: dict[str, Any] = answer.json()
        return reply

    assert call("server/discover")["result"]["capabilities"] == {"tools": {}, "resources": {}}
    called = call("tools/call", name="verify_claim", arguments={"claim": TRUE})["result"]["structuredContent"]
    assert (called["verdict"], called["url"]) == ("supported", f"{quill.BASE}cache/#clearing-the-cache")
    asked = call("tools/call", name="ask_docs", arguments={"question": QUESTION["query"]})["result"]
    assert asked["structuredContent"]["status"] == "answered"
    assert call("no/such/method", 404)["error"]["code"] == -32601
    batch = httpx.post(f"{function.url}/mcp", json=[modern("tools/list")] * 2, timeout=60)
    assert (batch.status_code, batch.json()["error"]["code"]) == (400, -32600)


def test_a_stream_is_whole_and_valid(function: FunctionUrl, cohere: CohereServer) -> None:
    cohere.say(ChatReply(TRUE, [(TRUE, ["1"])]))
    answer = ask(function, **STREAM)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    (first, *drafted, last) = events(iter(answer.text.splitlines()))
    assert (first[0], {name for name, _ in drafted}, last[0]) == ("meta", {"delta"}, "final")
    assert "".join(data["text"] for _, data in drafted) == last[1]["response"] == TRUE


def test_the_first_words_are_read_before_the_model_says_the_last(
    command: tuple[str, ...], function: FunctionUrl, cohere: CohereServer
) -> None:
    gate = threading.Event()
    cohere.say(gated(gate))
    if command == AWSLAMBDARIC:
        # It sends an answer whole: nothing would come while the model waits.
        gate.set()
    with httpx.stream("POST", f"{function.url}/v1/chat", json=QUESTION, headers=STREAM, timeout=60) as response:
        coming = events(response.iter_lines())
        assert next(coming)[0] == "meta"
        name, delta = next(coming)
        assert (name, delta["text"][:6]) == ("delta", TRUE[:6])
        assert gate.is_set() is (command == AWSLAMBDARIC)
        gate.set()
        (*_, (name, final)) = coming
    assert (name, final["response"]) == ("final", TRUE + MORE + LAST)


def test_a_reader_who_leaves_is_answered_to_the_end(function: FunctionUrl, cohere: CohereServer) -> None:
    # Lambda tells nobody that a reader is gone: what keeps the cost down is the limit of an answer's length.
    gate, ended = threading.Event(), threading.Event()
    cohere.say(gated(gate, ended.set))
    asked = len(cohere.history)
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{function.url}/v1/chat", json=QUESTION, headers=STREAM, timeout=httpx.Timeout(60, read=1))
    gate.set()
    assert ended.wait(60)
    assert len(cohere.history) == asked + 1
    assert ask(function).status_code == 200


def test_more_readers_than_environments_are_told_so(function: FunctionUrl, cohere: CohereServer) -> None:
    gate = threading.Event()
    cohere.say(*[gated(gate)] * 2)
    with ThreadPoolExecutor(5) as pool:
        answers = [pool.submit(ask, function, **STREAM) for _ in range(5)]
        statuses = []
        for answer in as_completed(answers):
            statuses.append(answer.result().status_code)
            if statuses.count(429) == 3:
                gate.set()
    assert sorted(statuses) == [200, 200, 429, 429, 429]
    assert len(function.environments) == 2


@pytest.mark.slow
def test_a_model_that_is_slower_than_the_function_leaves_quotes(start: Start, cohere: CohereServer) -> None:
    cohere.play(Fault(hang=60))
    with FunctionUrl(start, seconds=5.0) as function:
        answer = ask(function, **STREAM)
        (environment,) = function.environments
        assert environment.process.poll() is None
    (*_, (name, final)) = events(iter(answer.text.splitlines()))
    assert (name, final["status"]) == ("final", "degraded")
    assert "since the model failed" in final["degraded_reason"]


def test_a_function_that_runs_out_of_time(command: tuple[str, ...], strange: FunctionUrl) -> None:
    assert httpx.get(f"{strange.url}/empty", timeout=60).status_code == 204
    before = len(strange.environments)
    answer = httpx.get(f"{strange.url}/hangs", timeout=60)
    assert answer.status_code == (502 if command == AWSLAMBDARIC else 503)
    # Lambda kills the one and starts another; ours stopped by itself and lives on.
    assert httpx.get(f"{strange.url}/empty", timeout=60).status_code == 204
    assert len(strange.environments) - before == (1 if command == AWSLAMBDARIC else 0)


def test_an_answer_that_breaks_does_not_look_whole(command: tuple[str, ...], strange: FunctionUrl) -> None:
    if command == AWSLAMBDARIC:
        assert httpx.get(f"{strange.url}/breaks", timeout=60).status_code == 500
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{strange.url}/breaks", timeout=60)
    assert httpx.get(f"{strange.url}/empty", timeout=60).status_code == 204


@pytest.mark.slow
def test_six_megabytes_are_the_most_of_an_answer_that_comes_whole(
    command: tuple[str, ...], strange: FunctionUrl
) -> None:
    answer = httpx.get(f"{strange.url}/large", timeout=60)
    if command == AWSLAMBDARIC:
        assert answer.status_code == 502
    else:
        assert (answer.status_code, len(answer.content)) == (200, 7 * 1024 * 1024)


def test_a_bad_setting_is_one_sentence_for_readers_and_one_for_the_operator(start: Start) -> None:
    with FunctionUrl(partial(start, CHAPTERVERSE_ALLOWED_ORIGINS="*")) as function:
        answer = ask(function)
        (environment,) = function.environments
        (line,) = [json.loads(line) for line in environment.lines() if '"misconfigured"' in line]
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "misconfigured")
    assert "CHAPTERVERSE_ALLOWED_ORIGINS" in line["message"]


def test_an_import_that_fails_is_told_to_lambda(start: Start) -> None:
    with FunctionUrl(partial(start, "no_such_module.handler")) as function:
        assert httpx.get(f"{function.url}/v1/health", timeout=60).status_code == 502
        (environment,) = function.environments
        environment.process.wait(60)
        assert environment.api.failed["/init/error"][0] == "Runtime.ImportModuleError"
