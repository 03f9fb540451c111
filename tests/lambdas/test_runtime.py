"""Our runtime against the Runtime API: requests and responses, also after failures."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lambdas.environments import BOOTSTRAP, ROOT, Environment, Failed
from lambdas.function_url import event_of
from lambdas.runtime_api import ERROR_BODY, ERROR_TYPE, Invocation

HTTP_API_DOMAIN = {"domainName": "abc123.execute-api.eu-central-1.amazonaws.com"}


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gate") / "open"


def started(folder: Path, handler: str = "lambdas.strange_app.handler", **environment: str | Path) -> Environment:
    return Environment(BOOTSTRAP, folder, handler, **{"LAMBDA_TASK_ROOT": ROOT / "tests", **environment})


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, gate: Path) -> Iterator[Environment]:
    with started(tmp_path_factory.mktemp("process"), GATE=gate) as environment:
        yield environment
        # Nothing of all that has ended it.
        assert environment.process.poll() is None


def asking(path: str, body: str = "", **context: Any) -> bytes:
    event = event_of("POST", path, {"content-type": "text/plain"}, body.encode())
    event["requestContext"] |= context
    return json.dumps(event).encode()


def soon() -> dict[str, str]:
    """Return what tells the process that it will be killed, though it won't be: a busy machine is late."""
    return {"Lambda-Runtime-Deadline-Ms": str(int((time.time() + 2) * 1000))}


def read(invocation: Invocation) -> tuple[dict[str, Any], bytes]:
    """Return the head and the body of a streamed answer."""
    head, found, body = invocation.body().partition(b"\0" * 8)
    assert found
    return json.loads(head), body


def test_a_stream_goes_out_while_it_is_made(process: Environment, gate: Path) -> None:
    invocation = process.api.invoke(asking("/gated"), headers={"Lambda-Runtime-Invocation-Id": "again-7"})
    pieces = process.pieces(invocation)
    head, _, first = next(pieces).partition(b"\0" * 8)
    first = first or next(pieces)
    assert json.loads(head) == {"statusCode": 200, "headers": {"content-type": "text/event-stream"}, "cookies": []}
    assert first == b"event: delta\ndata: 1\n\n"
    gate.touch()
    assert list(pieces) == [b"event: final\ndata: 2\n\n"]
    assert invocation.sent["lambda-runtime-function-response-mode"] == "streaming"
    assert invocation.sent["content-type"] == "application/vnd.awslambda.http-integration-response"
    assert invocation.sent["transfer-encoding"] == "chunked"
    assert invocation.sent["lambda-runtime-invocation-id"] == "again-7"
    assert invocation.trailers == {}


def test_cookies_stand_apart_and_the_length_is_left_to_lambda(process: Environment) -> None:
    head, body = read(process.answer(asking("/cookies")))
    assert head == {
        "statusCode": 201,
        "headers": {"content-type": "text/plain", "vary": "a, b"},
        "cookies": ["a=1", "b=2"],
    }
    assert body == b"ok"


def test_an_answer_without_a_body_has_a_head(process: Environment) -> None:
    assert read(process.answer(asking("/empty"))) == ({"statusCode": 204, "headers": {}, "cookies": []}, b"")


def test_each_invocation_has_its_own_trace_and_id(process: Environment) -> None:
    trace = {"Lambda-Runtime-Trace-Id": "Root=1-2-3"}
    traced, plain = process.answer(asking("/echo", "one"), trace), process.answer(asking("/echo", "two"))
    assert json.loads(read(traced)[1]) == {"body": "one", "trace": "Root=1-2-3", "id": traced.id}
    assert json.loads(read(plain)[1]) == {"body": "two", "trace": None, "id": plain.id}


def test_an_answer_that_breaks_says_so_behind_its_body(process: Environment) -> None:
    invocation = process.answer(asking("/breaks"))
    assert read(invocation)[1] == b"half"
    assert invocation.trailers[ERROR_TYPE] == "RuntimeError"
    assert json.loads(base64.b64decode(invocation.trailers[ERROR_BODY])) == {
        "errorMessage": "Something went wrong on our side.",
        "errorType": "RuntimeError",
        "stackTrace": [],
    }


@pytest.mark.parametrize("path", ["/raises", "/silent"])
def test_what_fails_before_its_first_byte_is_a_clean_500(process: Environment, path: str) -> None:
    invocation = process.answer(asking(path))
    head, body = read(invocation)
    assert (head["statusCode"], json.loads(body)["error"]["code"]) == (500, "internal")
    assert invocation.trailers == {}


def test_a_request_that_can_not_be_read_is_400(process: Environment) -> None:
    head, body = read(process.answer(asking("/echo", http=None)))
    assert (head["statusCode"], json.loads(body)["error"]["code"]) == (400, "malformed")


def test_a_stream_ends_a_second_before_the_function_would_be_killed(process: Environment) -> None:
    invocation = process.answer(asking("/hangs-in-stream"), soon())
    _, body = read(invocation)
    assert body.startswith(b"event: meta\n\nevent: error\ndata: {")
    assert json.loads(body.partition(b"data: ")[2]) == {
        "code": "too_late",
        "message": "The answer took longer than this service may take.",
        "retryable": True,
    }
    assert invocation.trailers == {}
    process.answer(asking("/echo"))
    assert "told to stop" in process.lines()
    assert any(
        line.startswith("{") and json.loads(line).get("code") == "too_late" and "30 seconds" in line
        for line in process.lines()
    )


@pytest.mark.parametrize(
    "milliseconds", ["", "soon", "1", "-1", "1e99", "9999999999999", "9" * 30, "9" * 400, "9" * 5000], ids=len
)
def test_a_deadline_that_can_not_be_ends_nothing_and_is_told_once(process: Environment, milliseconds: str) -> None:
    invocation = process.answer(asking("/cookies"), {"Lambda-Runtime-Deadline-Ms": milliseconds})
    assert (read(invocation)[1], invocation.trailers) == (b"ok", {})
    (line,) = [json.loads(line) for line in process.lines() if "deadline" in line]
    assert (line["event"], line["code"]) == ("error", "runtime_api")
    assert "15 minutes" in line["message"]


def test_a_stream_in_openais_form_ends_with_its_error(process: Environment) -> None:
    _, body = read(process.answer(asking("/v1/chat/completions"), soon()))
    assert body.startswith(b"data: 1\n\ndata: {")
    error = json.loads(body.rpartition(b"data: ")[2])["error"]
    assert (error["code"], error["type"], error["param"]) == ("too_late", "server_error", None)


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/hangs-after-final", b"event: final\ndata: 2\n\n"),
        ("/hangs-after-done", b"data: 1\n\ndata: [DONE]\n\n"),
    ],
)
def test_a_stream_that_has_its_end_gets_no_second_one(process: Environment, path: str, sent: bytes) -> None:
    invocation = process.answer(asking(path), soon())
    assert (read(invocation)[1], invocation.trailers) == (sent, {})


def test_an_answer_that_never_began_is_503_in_time(process: Environment) -> None:
    head, body = read(process.answer(asking("/hangs"), soon()))
    assert (head["statusCode"], json.loads(body)["error"]["code"]) == (503, "too_late")


def test_half_of_what_is_no_stream_of_events_does_not_look_whole(process: Environment) -> None:
    invocation = process.answer(asking("/hangs-in-text"), soon())
    assert (read(invocation)[1], invocation.trailers[ERROR_TYPE]) == (b"event: meta\n\n", "too_late")


@pytest.mark.parametrize(
    "event",
    [b"{}", b"null", b"[]", b'"ping"', b'{"source": "aws.events"}', b'{"Records": [{"eventSource": "aws:sqs"}]}'],
)
def test_an_event_that_is_no_request_is_answered_calmly(process: Environment, event: bytes) -> None:
    invocation = process.answer(event, {"Lambda-Runtime-Invocation-Id": "again-8"})
    assert json.loads(invocation.body()) == {"status": "ok"}
    assert not invocation.is_streamed
    assert invocation.sent["lambda-runtime-invocation-id"] == "again-8"
    # Warming failed, which is for the log alone, under the id of this invocation.
    assert any(invocation.id in line and '"type": "OSError"' in line for line in process.lines())


@pytest.mark.parametrize("event", [b"", b"{", b"\xff", b"[" * 100_000])
def test_an_event_that_is_no_json_fails_alone(process: Environment, event: bytes) -> None:
    invocation = process.api.invoke(event, headers={"Lambda-Runtime-Invocation-Id": "again-9"})
    with pytest.raises(Failed, match=r"^Runtime\.UnmarshalError$"):
        list(process.pieces(invocation))
    assert invocation.sent["lambda-runtime-invocation-id"] == "again-9"


def test_an_http_api_that_can_not_stream_gets_its_answer_whole(process: Environment) -> None:
    invocation = process.answer(asking("/cookies", **HTTP_API_DOMAIN))
    answer = json.loads(invocation.body())
    assert (answer["statusCode"], answer["body"], answer["cookies"]) == (201, "ok", ["a=1", "b=2"])
    assert not invocation.is_streamed


@pytest.mark.parametrize("status", [410, 413, 500])
def test_an_answer_that_is_not_taken_ends_nothing(process: Environment, status: int) -> None:
    for event in (asking("/cookies"), b"{}"):
        process.api.refusals.append(status)
        process.answer(event)
    assert read(process.answer(asking("/cookies")))[1] == b"ok"
    assert f"The Runtime API answered {status}." in "\n".join(process.lines())


@pytest.mark.parametrize("fault", [500, 410, b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
def test_a_runtime_api_that_hiccups_is_asked_again(process: Environment, fault: int | bytes) -> None:
    process.api.faults.append(fault)
    # The process already waits for the first of the two.
    for _ in range(2):
        assert json.loads(process.answer(b"{}").body()) == {"status": "ok"}


def test_a_runtime_api_that_stays_broken_ends_the_process_in_one_sentence(tmp_path: Path) -> None:
    with started(tmp_path) as environment:
        environment.api.faults.extend([500] * 4)
        assert environment.process.wait(60) == 1
        last = json.loads(environment.lines()[-1])
    assert last["code"] == "runtime_api"
    assert last["message"] == "The Runtime API answered 500. This process ends, and Lambda starts another."


def test_a_handler_that_can_not_be_imported_is_told_to_lambda_and_to_the_log(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_package\n")
    with started(tmp_path, "broken.handler", LAMBDA_TASK_ROOT=tmp_path) as environment:
        assert environment.process.wait(60) == 1
        kind, body = environment.api.failed["/init/error"]
        assert environment.api.history == ["POST /init/error"]
        (line,) = [json.loads(line) for line in environment.lines()]
    assert kind == "Runtime.ImportModuleError"
    message = "The handler broken.handler can't be loaded (ModuleNotFoundError): No module named 'no_such_package'"
    assert json.loads(body) == {"errorMessage": message, "errorType": kind, "stackTrace": []}
    assert (line["code"], line["message"]) == ("init_failed", message)
    assert (line["type"], line["where"]) == ("ModuleNotFoundError", "broken.py:1")


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        ("lambdas.strange_app.not_a_handler", "Runtime.HandlerNotFound"),
        ("lambdas.strange_app.nothing", "Runtime.HandlerNotFound"),
        ("exits.handler", "Runtime.SystemExit"),
        ("mistyped.handler", "Runtime.UserCodeSyntaxError"),
    ],
)
def test_whatever_else_is_wrong_with_a_handler_is_told_too(tmp_path: Path, handler: str, kind: str) -> None:
    (tmp_path / "exits.py").write_text("raise SystemExit\n")
    (tmp_path / "mistyped.py").write_text("def\n")
    with started(tmp_path, handler, LAMBDA_TASK_ROOT=f"{tmp_path}:{ROOT / 'tests'}") as environment:
        assert environment.process.wait(60) == 1
        assert environment.api.failed["/init/error"][0] == kind
        assert [json.loads(line)["code"] for line in environment.lines()] == ["init_failed"]


def test_started_by_hand_it_says_who_starts_it() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "AWS_LAMBDA_RUNTIME_API"}
    run = subprocess.run(
        [sys.executable, "-m", "chapterverse_api.ext.aws"], env=environment, capture_output=True, text=True
    )
    assert run.returncode == 1
    assert json.loads(run.stdout)["message"] == (
        "AWS_LAMBDA_RUNTIME_API is not set: this program is started by AWS Lambda, not by hand."
    )


def test_the_wrapper_without_arguments_says_what_it_needs() -> None:
    run = subprocess.run([*BOOTSTRAP[:2]], capture_output=True, text=True)
    assert run.returncode != 0
    assert "AWS_LAMBDA_EXEC_WRAPPER" in run.stderr
