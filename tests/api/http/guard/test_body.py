from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from api.scripted import Client, Scripted, error_of
from chapterverse_api.app import create_app
from chapterverse_api.http.admission import parse_body
from chapterverse_api.rejections import Rejection
from chapterverse_api.request_limits import MAX_BODY_BYTES


def _refused(raw: bytes) -> Rejection:
    with pytest.raises(Rejection) as refusal:
        parse_body(raw)
    return refusal.value


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b'{"a": 1,}', "not valid JSON"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": 01}', "not valid JSON"),
        (b'{"a": 1} {}', "not valid JSON"),
        (b'{"a": "\x01"}', "not valid JSON"),
        (b'{"a": "\x00"}', "not valid JSON"),
        (b'\xef\xbb\xbf{"a": 1}', "not valid JSON"),
        (b'{"a": "\xff"}', "not valid UTF-8"),
        (b'{"a": "\xed\xa0\x80"}', "not valid UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "not valid UTF-8"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": [-Infinity]}', "NaN"),
        (b'{"a": 1, "a": 2}', "same key twice"),
        (b'{"a": 1, "\\u0061": 2}', "same key twice"),
        (b'[{"b": {"a": 1, "a": 1}}]', "same key twice"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"a": "\\udc00\\ud800"}', "surrogate"),
        (b'{"\\ud800": 1}', "surrogate"),
        (b'"\\ud800"', "surrogate"),
        (b'{"a": "\\u0000"}', "NUL"),
        (b'{"\\u0000": 1}', "NUL"),
        (b'{"a": ["x", {"b": ["\\u0000"]}]}', "NUL"),
        (b'{"a": 9223372036854775808}', "too large"),
        (b'{"a": -9223372036854775809}', "too large"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too large"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": -1e999}', "too large"),
        (b'{"a": 0.' + b"1" * 5000 + b"}", "too large"),
        (b"[" * 33 + b"]" * 33, "nested"),
        (b'{"a":' * 33 + b"1" + b"}" * 33, "nested"),
        (b"[" * 100_000, "nested"),
    ],
)
def test_what_is_no_strict_json_is_malformed(raw: bytes, sentence: str) -> None:
    refusal = _refused(raw)
    assert (refusal.status, refusal.code) == (400, "malformed")
    assert sentence in refusal.message


@pytest.mark.parametrize("raw", [b"null", b"1", b'"text"', b"[]", b"true", b"[" * 32 + b"]" * 32])
def test_what_is_no_object_is_out_of_contract(raw: bytes) -> None:
    assert (_refused(raw).status, _refused(raw).code) == (422, "out_of_contract")


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b' {"a": 1} \n', {"a": 1}),
        (b'{"a": "\\ud83d\\ude00\\\\u0000 [[[["}', {"a": "\U0001f600\\u0000 [[[["}),
        (b'{"a": 9223372036854775807, "b": -9223372036854775808}', {"a": 2**63 - 1, "b": -(2**63)}),
        (b'{"a": -0.5e-3, "b": null, "c": [true, {}]}', {"a": -0.0005, "b": None, "c": [True, {}]}),
        (b'{"a":' * 31 + b'{"b": "' + b"[" * 99 + b'"}' + b"}" * 31, None),
    ],
)
def test_strict_json_is_read(raw: bytes, value: dict[str, Any] | None) -> None:
    read = parse_body(raw)
    assert value is None or read == value


# Shapes on which a careless reader takes quadratic time or the whole stack.
PATHOLOGICAL = {
    "open brackets": b"[",
    "open and close": b"[]",
    "quotes": b'"',
    "escaped quotes": b'\\"',
    "an unclosed string of escapes": b"\\",
    "empty objects": b'{"a":{}},',
    "unknown keys": b'"k":1,',
    "digits": b"9",
    "minus": b"-",
    "surrogate halves": b"\\ud800",
    "spaces": b" ",
    "non-ascii": "é".encode(),
}


@pytest.mark.parametrize("unit", PATHOLOGICAL.values(), ids=PATHOLOGICAL.keys())
@pytest.mark.parametrize("frame", [(b"", b""), (b'{"a":"', b'"}'), (b'{"a":[', b"]}"), (b'{"a":"', b"")])
def test_the_largest_body_takes_no_time_to_read(unit: bytes, frame: tuple[bytes, bytes]) -> None:
    raw = frame[0] + unit * ((MAX_BODY_BYTES - 16) // len(unit)) + frame[1]
    begin = time.process_time()
    with contextlib.suppress(Rejection):
        parse_body(raw)
    # Linear is some 20 ms; quadratic would be minutes.
    assert time.process_time() - begin < 5


def _sized(size: int) -> bytes:
    frame = b'{"query": "a", "user_context": ""}'
    return frame[:-2] + b" " * (size - len(frame)) + frame[-2:]


def test_the_largest_body_is_read_and_one_byte_more_is_not() -> None:
    client = Client(create_app(Scripted()))
    assert client.post_raw("/v1/chat", _sized(MAX_BODY_BYTES)).status_code == 422
    response = client.post_raw("/v1/chat", _sized(MAX_BODY_BYTES + 1))
    assert (response.status_code, error_of(response)["code"]) == (413, "too_large")


def test_a_body_without_a_declared_length_is_cut_off_while_it_arrives() -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        for _ in range(10_000):
            sent += 1
            yield b" " * 1024

    client = Client(create_app(Scripted()))
    response = client.request("POST", "/v1/chat", content=endless(), headers={"content-type": "application/json"})
    assert (response.status_code, error_of(response)["code"]) == (413, "too_large")
    assert sent == 129


@pytest.mark.parametrize("declared", ["99999999999999999999", "131073", "9" * 6000])
def test_a_declared_length_over_the_limit_is_refused_unread(declared: str) -> None:
    headers = {"content-type": "application/json", "content-length": declared}
    response = Client(create_app(Scripted())).request("POST", "/v1/chat", content=b'{"query": "a"}', headers=headers)
    assert response.status_code == 413


@pytest.mark.parametrize("declared", ["-1", "x", "", "1"])
def test_a_length_that_lies_is_not_believed(declared: str) -> None:
    headers = {"content-type": "application/json", "content-length": declared}
    response = Client(create_app(Scripted())).request("POST", "/v1/chat", content=b'{"query": "a"}', headers=headers)
    assert response.status_code == 200


@pytest.mark.parametrize("media_type", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
def test_json_is_taken(media_type: str) -> None:
    assert _typed(media_type).status_code == 200


@pytest.mark.parametrize(
    "media_type",
    [
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/problem+json",
        "application/jsonx",
        "text/plain; application/json",
        "json",
    ],
)
def test_any_other_content_type_never_reaches_the_service(media_type: str) -> None:
    service = Scripted()
    response = _typed(media_type, service)
    assert (response.status_code, error_of(response)["code"]) == (415, "not_json")
    assert service.asked == []


def test_a_missing_content_type_is_refused() -> None:
    assert Client(create_app(Scripted())).request("POST", "/v1/chat", content=b"{}").status_code == 415


def test_a_compressed_body_is_refused() -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    response = Client(create_app(Scripted())).request("POST", "/v1/chat", content=b"\x1f\x8b", headers=headers)
    assert response.status_code == 415


def _typed(media_type: str, service: Scripted | None = None) -> httpx.Response:
    client = Client(create_app(service or Scripted()))
    return client.request("POST", "/v1/chat", content=b'{"query": "a"}', headers={"content-type": media_type})
