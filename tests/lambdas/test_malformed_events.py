"""Malformed events of every kind from AWS: an answer, never an exception or a call to a model."""

from __future__ import annotations

import base64
import copy
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from api.scripted import Scripted
from chapterverse_api.ext.aws.events import LambdaHandler
from ext.aws.test_events import CONTEXT, HTTP_API, Event
from ext.aws.test_events import handler as handler
from ext.aws.test_events import service as service

BODY = '{"query": "How?"}'
HEADERS = {
    "accept": "application/json",
    "content-type": "application/json",
    "host": "docs.example.com",
    "origin": "https://docs.example.com",
    "x-forwarded-for": "198.51.100.9",
    "x-forwarded-port": "443",
    "x-forwarded-proto": "https",
}

# As a REST API of API Gateway sends it (payload format 1.0).
REST_API: Event = {
    "version": "1.0",
    "resource": "/{proxy+}",
    "path": "/v1/chat",
    "httpMethod": "POST",
    "headers": HEADERS,
    "multiValueHeaders": {name: [value] for name, value in HEADERS.items()},
    "queryStringParameters": {"a": "2"},
    "multiValueQueryStringParameters": {"a": ["1", "2"]},
    "pathParameters": {"proxy": "v1/chat"},
    "requestContext": {
        "accountId": "123456789012",
        "apiId": "d-xyz",
        "domainName": "d-xyz.execute-api.eu-central-1.amazonaws.com",
        "httpMethod": "POST",
        "identity": {"sourceIp": "198.51.100.9", "userAgent": "Mozilla/5.0"},
        "path": "/live/v1/chat",
        "requestId": "41b45ea3-70b5-11e6-b7bd-69b5aaebc7d9",
        "stage": "live",
    },
    "body": BODY,
    "isBase64Encoded": False,
}

# As an application load balancer sends it.
BALANCER: Event = {
    "requestContext": {"elb": {"targetGroupArn": "arn:aws:elasticloadbalancing:eu-central-1:1:targetgroup/a/1"}},
    "httpMethod": "POST",
    "path": "/v1/chat",
    "queryStringParameters": {"a": "1"},
    "headers": HEADERS,
    "body": BODY,
    "isBase64Encoded": False,
}  # fmt: skip
BALANCER_MANY = {k: v for k, v in BALANCER.items() if k not in ("headers", "queryStringParameters")} | {
    "multiValueHeaders": {name: [value] for name, value in HEADERS.items()},
    "multiValueQueryStringParameters": {"a": ["1", "2"]},
}
FUNCTION_URL = copy.deepcopy(HTTP_API)
FUNCTION_URL["requestContext"]["domainName"] = "abc123.lambda-url.eu-central-1.on.aws"

BASES = {
    "function_url": FUNCTION_URL,
    "http_api": HTTP_API,
    "rest_api": REST_API,
    "balancer": BALANCER,
    "balancer_many": BALANCER_MANY,
}
MISSING = object()
WRONG: list[Any] = [MISSING, None, 5, True, 1.5, "", "x", "\0", "a\r\nb", "é\ud800", [], [None], {}, {"a": None}]

#: What a client can do to each header, and what a broken proxy can.
HOSTILE = [
    "",
    " ",
    "\0",
    "a\r\nset-cookie: evil=1",
    "a\nb",
    "\x7f\x1b[31m",
    "müller",
    "日本",
    "\ud800",
    "x" * 100_000,
    "a," * 5000,
    "evil.example.com",
    "[::1]:80",
    "a:b:c",
    "docs.example.com:99999999",
    "docs.example.com:-1",
    "javascript",
    "https://docs.example.com, https://evil.example.com",
    "https://docs.example.com\0.evil.example.com",
    "127.0.0.1, 203.0.113.7",
    "%00%0d%0a",
    "null",
    "-1",
    "1e9",
]
NAMES = [*HEADERS, "content-length", "content-encoding", "cookie", "transfer-encoding", "x-forwarded-host", "forwarded"]
PATHS = ["", "/", "//", "/v1", "/v1/chat/", "/v1/../v1/chat", "/%00", "/v1/ch%61t", "/%ff", "/\0", "/\r\nx", "/\ud800"]
PATHS += [
    "v1/chat",
    "https://evil.example.com/",
    "/v1/" + "x" * 100_000,
    "/widget/../../etc/passwd",
    "/widget/%2e%2e/x",
]
QUERIES = [
    "",
    "a",
    "a=",
    "=&=",
    "%",
    "%zz",
    "a=%00",
    "a=\r\n",
    "a=ü",
    "a=\ud800",
    "a[]=1&a[]=2",
    "&" * 5000,
    "x" * 100_000,
]
METHODS = ["", "get", "TRACE", "CONNECT", "PO ST", "POST\r\n", "\0", "\ud800", "X" * 10_000, "PROPFIND"]
COOKIES: list[Any] = [[], [""], ["a"], ["a=1; b"], ["\0"], ["a=\r\n"], [5], "a=1", {"a": "1"}, None, ["x" * 100_000]]
BODIES = ["", "{", "null", "[]", "\0", "\ud800", '{"query": NaN}', "x" * 200_000, "[" * 50_000, BODY + " x"]
ENCODED = ["!", "not base64", "a", "===", base64.b64encode(b"\xff\xfe").decode(), "e30=\r\n", "é", "\0", "A" * 400_000]


def leaves(event: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every value of an event, those that hold others too."""
    for name, value in event.items():
        yield (*path, name)
        if isinstance(value, dict):
            yield from leaves(value, (*path, name))


def changed(event: Event, path: tuple[str, ...], value: Any) -> Event:
    event = copy.deepcopy(event)
    *parents, last = path
    place = event
    for name in parents:
        place = place[name]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return event


def with_header(event: Event, name: str, value: str) -> Event:
    event = copy.deepcopy(event)
    if "headers" in event:
        event["headers"][name] = value
    if "multiValueHeaders" in event:
        # Twice: a client may repeat any header.
        event["multiValueHeaders"][name] = [*event["multiValueHeaders"].get(name, []), value]
    return event


def asking(event: Event, *, method: str | None = None, path: str | None = None, query: str | None = None) -> Event:
    """Return the event with another request line, in the fields of its format."""
    event = copy.deepcopy(event)
    http = event["requestContext"].get("http")
    if method is not None:
        (http or event)["method" if http else "httpMethod"] = method
    if path is not None:
        (http or event)["path"] = path
    if query is not None:
        event |= {"rawQueryString": query} if http else {"queryStringParameters": {query: query}}
    return event


NO_BOOLEANS: list[Any] = [None, "false", "true", 1, [], {}]


def variations(event: Event) -> Iterator[Event]:
    for path in leaves(event):
        yield from (changed(event, path, wrong) for wrong in WRONG)
    yield from (with_header(event, name, value) for name in NAMES for value in HOSTILE)
    yield from (asking(event, path=path) for path in PATHS)
    yield from (asking(event, query=query) for query in QUERIES)
    yield from (asking(event, method=method) for method in METHODS)
    yield from (event | {"cookies": cookies} for cookies in COOKIES)
    yield from (event | {"body": body} for body in BODIES)
    yield from (event | {"body": body, "isBase64Encoded": True} for body in ENCODED)
    yield from (event | {"body": BODY, "isBase64Encoded": said} for said in NO_BOOLEANS)


@pytest.mark.parametrize("name", BASES)
def test_a_sound_event_is_answered(handler: LambdaHandler, service: Scripted, name: str) -> None:
    assert handler(BASES[name], CONTEXT)["statusCode"] == 200
    assert len(service.asked) == 1


@pytest.mark.parametrize("name", BASES)
def test_every_broken_event_gets_a_well_formed_answer(
    handler: LambdaHandler, service: Scripted, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL, "mangum")
    broken = list(variations(BASES[name]))
    assert len(broken) > 500
    for event in broken:
        asked = len(service.asked)
        caplog.clear()
        answer = handler(event, CONTEXT)
        if "requestContext" not in event:
            assert answer == {"status": "ok"}
            continue
        check(answer)
        ours = [record for record in caplog.records if record.name == "chapterverse"]
        assert len(ours) <= 1, "one line for the operator"
        if answer["statusCode"] >= 400:
            assert len(service.asked) == asked, "nothing is asked for a request that is refused"
        assert not [record for record in caplog.records if record.name != "chapterverse"]


@pytest.mark.parametrize("name", BASES)
def test_headers_over_the_limit_are_refused(handler: LambdaHandler, service: Scripted, name: str) -> None:
    one, many = with_header(BASES[name], "x-a", "a" * 17_000), BASES[name]
    for number in range(500):
        many = with_header(many, f"x-{number}", "a" * 30)
    for event in (one, many, asking(BASES[name], path=f"/{'a' * 17_000}")):
        answer = handler(event, CONTEXT)
        check(answer)
        assert (answer["statusCode"], json.loads(answer["body"])["error"]["code"]) == (431, "headers_too_large")
    assert service.asked == []
    assert handler(with_header(BASES[name], "x-a", "a" * 15_000), CONTEXT)["statusCode"] == 200


def check(answer: dict[str, Any]) -> None:
    """Check what Lambda and a reader expect of an answer, and that nothing hostile came back in it."""
    text = json.dumps(answer)
    status = answer["statusCode"]
    assert status in {200, 204, 304} or 400 <= status < 500, text
    headers = answer.get("headers") or {k: v[0] for k, v in answer["multiValueHeaders"].items()}
    assert all(isinstance(v, str) and not set(v) & set("\r\n\0") for v in headers.values())
    if status >= 400:
        assert headers["content-type"] == "application/json"
        error = json.loads(answer["body"])["error"]
        assert {"code", "message"} <= error.keys() <= {"code", "message", "field"}
        assert "evil" not in text
        assert "xxxx" not in text
