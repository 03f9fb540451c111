from __future__ import annotations

import asyncio
import base64
import copy
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from mangum.types import LambdaContext
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from api.scripted import ANSWER, Scripted
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery, dump
from chapterverse_api.ext.aws.events import LambdaHandler

Event = dict[str, Any]
CONTEXT: LambdaContext = None  # type: ignore[assignment] # nothing of ours reads it

# As a Function URL sends it (payload format 2.0).
FUNCTION_URL: Event = {
    "version": "2.0",
    "routeKey": "$default",
    "rawPath": "/v1/health",
    "rawQueryString": "",
    "headers": {
        "accept": "*/*",
        "host": "abc123.lambda-url.eu-central-1.on.aws",
        "user-agent": "curl/8.5.0",
        "x-amzn-trace-id": "Root=1-65f2f0f0-0123456789abcdef01234567",
        "x-forwarded-for": "203.0.113.7",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    },
    "requestContext": {
        "accountId": "anonymous",
        "apiId": "abc123",
        "domainName": "abc123.lambda-url.eu-central-1.on.aws",
        "domainPrefix": "abc123",
        "http": {
            "method": "GET",
            "path": "/v1/health",
            "protocol": "HTTP/1.1",
            "sourceIp": "203.0.113.7",
            "userAgent": "curl/8.5.0",
        },
        "requestId": "e1506fd5-9e7b-434f-bd42-4f8fa224b599",
        "routeKey": "$default",
        "stage": "$default",
        "time": "14/Mar/2026:12:00:00 +0000",
        "timeEpoch": 1773489600000,
    },
    "isBase64Encoded": False,
}

# As an HTTP API of API Gateway sends it (payload format 2.0, catch-all route).
HTTP_API: Event = {
    "version": "2.0",
    "routeKey": "ANY /{proxy+}",
    "rawPath": "/v1/chat",
    "rawQueryString": "a=1&a=2",
    "cookies": ["theme=dark", "consent=yes"],
    "headers": {
        "accept": "application/json",
        "content-length": "17",
        "content-type": "application/json",
        "host": "d-xyz.execute-api.eu-central-1.amazonaws.com",
        "origin": "https://docs.example.com",
        "x-forwarded-for": "198.51.100.9",
        "x-forwarded-port": "443",
        "x-forwarded-proto": "https",
    },
    "queryStringParameters": {"a": "1,2"},
    "pathParameters": {"proxy": "v1/chat"},
    "requestContext": {
        "accountId": "123456789012",
        "apiId": "d-xyz",
        "domainName": "d-xyz.execute-api.eu-central-1.amazonaws.com",
        "domainPrefix": "d-xyz",
        "http": {
            "method": "POST",
            "path": "/v1/chat",
            "protocol": "HTTP/1.1",
            "sourceIp": "198.51.100.9",
            "userAgent": "Mozilla/5.0",
        },
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": "ANY /{proxy+}",
        "stage": "$default",
        "time": "14/Mar/2026:12:00:00 +0000",
        "timeEpoch": 1773489600000,
    },
    "body": '{"query": "How?"}',
    "isBase64Encoded": False,
}


@pytest.fixture
def service() -> Scripted:
    return Scripted(settings=Settings(allowed_origins="https://docs.example.com"))


@pytest.fixture
def handler(service: Scripted) -> Iterator[LambdaHandler]:
    # Mangum runs on the loop of the thread, which pytest's other tests may have taken away.
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield LambdaHandler(create_app(service))
    asyncio.set_event_loop(None)
    loop.close()


def _event(event: Event, method: str | None = None, **changes: Any) -> Event:
    event = copy.deepcopy(event)
    if method is not None:
        event["requestContext"]["http"]["method"] = method
    event["headers"] |= changes.pop("headers", {})
    return event | changes


def test_health_over_a_function_url(handler: LambdaHandler) -> None:
    answer = handler(FUNCTION_URL, CONTEXT)
    assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"status": "ok"})
    assert answer["headers"]["content-type"] == "application/json"
    assert answer["isBase64Encoded"] is False


@pytest.mark.parametrize("encoded", [False, True])
def test_a_question_over_an_http_api(handler: LambdaHandler, service: Scripted, encoded: bool) -> None:
    body = HTTP_API["body"]
    event = _event(
        HTTP_API, body=base64.b64encode(body.encode()).decode() if encoded else body, isBase64Encoded=encoded
    )
    answer = handler(event, CONTEXT)
    assert (answer["statusCode"], json.loads(answer["body"])) == (200, dump(ANSWER))
    assert answer["headers"]["access-control-allow-origin"] == "https://docs.example.com"
    assert "cookies" not in answer
    assert service.asked == [ChatQuery(query="How?")]


@pytest.mark.parametrize(("stage", "domain", "path", "status"), [
    ("prod", "d-xyz.execute-api.eu-central-1.amazonaws.com", "/prod/v1/health", 200),
    ("v1", "d-xyz.execute-api.eu-central-1.amazonaws.com", "/v1/v1/health", 200),
    ("$default", "d-xyz.execute-api.eu-central-1.amazonaws.com", "/v1/health", 200),
    ("v1", "api.example.com", "/v1/health", 200),
    ("prod", "d-xyz.execute-api.eu-central-1.amazonaws.com", "/production/v1/health", 404),
])  # fmt: skip
def test_the_stage_of_an_http_api_is_no_part_of_the_path(
    handler: LambdaHandler, stage: str, domain: str, path: str, status: int
) -> None:
    http = {**FUNCTION_URL["requestContext"]["http"], "path": path}
    context = {**FUNCTION_URL["requestContext"], "stage": stage, "domainName": domain, "http": http}
    assert handler({**FUNCTION_URL, "rawPath": path, "requestContext": context}, CONTEXT)["statusCode"] == status


@pytest.mark.parametrize("prefix", ["/chat", "/docs/chat", "/v1", "/prod/chat", "/"])
def test_the_key_that_maps_a_domain_of_one_s_own_is_no_part_of_the_path(handler: LambdaHandler, prefix: str) -> None:
    http_api = copy.deepcopy(FUNCTION_URL)
    http_api["rawPath"] = http_api["requestContext"]["http"]["path"] = f"{prefix}/v1/health"
    http_api["requestContext"] |= {"domainName": "api.docs.example", "stage": "prod"}
    rest_api = {
        "resource": "/{proxy+}",
        "path": f"{prefix}/v1/health",
        "httpMethod": "GET",
        "headers": {"host": "api.docs.example"},
        "multiValueHeaders": {"host": ["api.docs.example"]},
        "queryStringParameters": None,
        "multiValueQueryStringParameters": None,
        "pathParameters": {"proxy": "v1/health"},
        "requestContext": {
            "resourcePath": "/{proxy+}",
            "path": f"{prefix}/v1/health",
            "stage": "prod",
            "httpMethod": "GET",
            "protocol": "HTTP/1.1",
            "domainName": "api.docs.example",
            "identity": {"sourceIp": "203.0.113.5"},
        },
        "body": None,
        "isBase64Encoded": False,
    }
    for event in (http_api, rest_api):
        answer = handler(event, CONTEXT)
        assert (answer["statusCode"], json.loads(answer["body"])) == (200, {"status": "ok"})


def test_a_path_that_is_none_of_ours_stays_unknown(handler: LambdaHandler) -> None:
    for path in ("/chat/v1/healthy", "/v1", "/chat", "/mcp/x", "/xv1/health"):
        event = copy.deepcopy(FUNCTION_URL)
        event["rawPath"] = event["requestContext"]["http"]["path"] = path
        assert handler(event, CONTEXT)["statusCode"] == 404


def test_a_stream_arrives_whole(handler: LambdaHandler) -> None:
    answer = handler(_event(HTTP_API, headers={"accept": "text/event-stream"}), CONTEXT)
    assert answer["headers"]["content-type"] == "text/event-stream; charset=utf-8"
    names = [line for line in answer["body"].splitlines() if line.startswith("event: ")]
    assert names == ["event: meta", "event: delta", "event: delta", "event: final"]
    assert answer["isBase64Encoded"] is False


def test_one_environment_answers_one_request_after_another(handler: LambdaHandler, service: Scripted) -> None:
    assert [handler(HTTP_API, CONTEXT)["statusCode"] for _ in range(3)] == [200, 200, 200]
    assert (len(service.asked), service.closed) == (3, 3)


def test_a_wrong_method_keeps_our_shape(handler: LambdaHandler) -> None:
    answer = handler(_event(HTTP_API, method="DELETE"), CONTEXT)
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (405, "method_not_allowed")


def test_a_foreign_origin_is_refused(handler: LambdaHandler, service: Scripted) -> None:
    answer = handler(_event(HTTP_API, headers={"origin": "https://evil.com"}), CONTEXT)
    assert (answer["statusCode"], service.asked) == (403, [])


def test_with_an_empty_list_the_functions_own_host_is_the_same_origin() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        handler = LambdaHandler(create_app(Scripted()))
        host = FUNCTION_URL["headers"]["host"]
        assert handler(_event(FUNCTION_URL, headers={"origin": f"https://{host}"}), CONTEXT)["statusCode"] == 200
        assert handler(_event(FUNCTION_URL, headers={"origin": f"http://{host}"}), CONTEXT)["statusCode"] == 403
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_a_crash_is_a_json_500(handler: LambdaHandler, service: Scripted) -> None:
    service.queue.append([RuntimeError("x")])
    answer = handler(HTTP_API, CONTEXT)
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (500, "internal")


def test_the_lifespan_is_not_run_for_each_request(handler: LambdaHandler) -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])
        await Response()(scope, receive, send)

    LambdaHandler(app)(FUNCTION_URL, CONTEXT)
    assert seen == ["http"]


WARM_PING = {
    "version": "0",
    "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
    "detail-type": "Scheduled Event",
    "source": "aws.events",
    "account": "123456789012",
    "time": "2026-03-14T12:00:00Z",
    "region": "eu-central-1",
    "resources": ["arn:aws:events:eu-central-1:123456789012:rule/warm"],
    "detail": {},
}


@pytest.mark.parametrize("event", [{}, WARM_PING, {"Records": []}, {"warm": True}])
def test_an_event_that_is_no_request_is_answered_calmly(
    handler: LambdaHandler, event: Event, service: Scripted
) -> None:
    assert handler(event, CONTEXT) == {"status": "ok"}
    assert service.asked == []


@pytest.mark.parametrize(
    "event",
    [
        {"requestContext": {}},
        {"version": "2.0", "requestContext": {"http": {}}},
        {"version": "2.0", "requestContext": None},
        _event(HTTP_API, body="not base64", isBase64Encoded=True),
        _event(HTTP_API, headers={"host": "[::1]:80"}),
        _event(HTTP_API, headers={"x-forwarded-port": "many"}),
        _event(HTTP_API, headers={"accept": None}),
        _event(HTTP_API, body=5),
    ],
)
def test_a_request_that_can_not_be_read_is_400_and_one_line_in_the_log(
    handler: LambdaHandler, event: Event, caplog: pytest.LogCaptureFixture
) -> None:
    answer = handler(event, CONTEXT)
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (400, "malformed")
    assert answer["headers"]["content-type"] == "application/json"
    (record,) = [r for r in caplog.records if r.name == "chapterverse"]
    assert record.levelno == logging.ERROR


@pytest.mark.usefixtures("handler")
def test_an_answer_that_lambda_could_not_take_is_a_json_500() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-name", b"m\xfcller")]})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    answer = LambdaHandler(app)(FUNCTION_URL, CONTEXT)
    assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (500, "internal")


@pytest.mark.usefixtures("handler")
def test_a_ping_warms_and_a_failure_of_that_is_for_the_log_alone(caplog: pytest.LogCaptureFixture) -> None:
    warmed: list[str] = []

    def warm() -> None:
        warmed.append("once")
        raise OSError("the index is gone")

    assert LambdaHandler(Response(), warm)(WARM_PING, CONTEXT) == {"status": "ok"}
    assert warmed == ["once"]
    (record,) = [r for r in caplog.records if r.name == "chapterverse"]
    assert json.loads(record.getMessage())["type"] == "OSError"


@pytest.mark.parametrize("event", [None, [], "requestContext", 5, True, {}])
def test_an_event_of_any_type_is_answered(handler: LambdaHandler, event: object) -> None:
    assert handler(event, CONTEXT) == {"status": "ok"}
