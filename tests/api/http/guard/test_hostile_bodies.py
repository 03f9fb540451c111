"""Every hostile value in every field: an answer or a rejection, never a 5xx, never an echo."""

from __future__ import annotations

import http.client
import socket
from collections import Counter
from urllib.parse import urlsplit

import pytest

from api import quill
from api.http.guard.hostile_bodies import CANARY, FIELDS, documents
from api.scripted import Client, Scripted, error_of, serving
from chapterverse.settings import Settings
from chapterverse_api.app import create_app

_CODES = {400: "malformed", 413: "too_large", 415: "not_json", 422: "out_of_contract"}


def _quoted(*texts: str) -> list[str]:
    return [f'"{text}"' for text in texts]


def _array(item: str, times: int) -> str:
    return f"[{','.join([item] * times)}]"


NUMBERS = [
    *("0", "-1", "21", "1.5", "1e3", "-0", "-0.0", "9223372036854775807", "9223372036854775808", "1e999", "9" * 400),
    *("NaN", "Infinity", "-Infinity", "0x10", "01", "+1", "1.", ".5", "1e", "--1", "1e-999", "0." + "3" * 999),
]
STRINGS = _quoted(
    *("", " ", "\\n", "\\u0000", "\\ud800", "\\udfff", "\\ud800\\ud800", "\\ud83d\\ude00", "\\x41", "\\\\u0000"),
    *("\u202e\u2066", "\u200b", "\ufeff", "\ufffe\uffff", "\U000e0041", "\x07", "\x00", "\x7f", "e\u0301", "%00"),
    *("a" * length for length in (1, 35, 36, 64, 65, 2048, 2049, 4000, 4001, 5001, 10_001)),
    *("é" * 4000, "\U0001d4b3" * 4000, "a " * 2000, "\\u00e9" * 4000, "日本語" * 1333),
    *(
        "; DROP TABLE x; --",
        "{{7*7}}",
        "${jndi:ldap://x}",
        "<script>",
        "../../etc/passwd",
        "%s%n",
        "\\r\\nSet-Cookie: a=b",
    ),
)
COMPOUNDS = [
    *("null", "true", "[]", "[[]]", "[null]", "[1]", '["a"]', "[NaN]", "[1e999]", "[0.0]", "[-0.0, 1e-320]"),
    *("{}", '{"a": 1}', '{"a": 1, "a": 2}', '{"": ""}', '{"__proto__": {}}', '{"$ref": "#"}', '{"a": {"b": {}}}'),
    *("[" * 29 + "]" * 29, "[" * 500 + "]" * 500, '{"a":' * 40 + "1" + "}" * 40, "[" * 5000),
    *('{"role": "user", "content": "a"}', '[{"role": "user", "content": "a"}]', '[{"role": "system", "content": "a"}]'),
    *(_array("0.5", 4097), _array('{"role":"user","content":"a"}', 11), _array('"a"', 9000)),
]
BROKEN = [
    "'a'",
    "a",
    "",
    "{",
    "[",
    '"',
    "\\",
    "]",
    "}",
    ",",
    ":",
    "/*",
    "//",
    "undefined",
    "None",
    "<a/>",
    "\t",
    "\x00",
]
CANARIES = [f'"{CANARY}"', f'["{CANARY}"]', f'{{"{CANARY}": "{CANARY}"}}', f'{{"{CANARY}": {{"{CANARY}": 1}}}}']

CHAT = [
    "%s",
    '{"query": %s}',
    '{"selected_text": %s}',
    '{"query": "a", "conversation_history": %s}',
    '{"query": "a", "conversation_history": [{"role": %s, "content": "a"}]}',
    '{"query": "a", "conversation_history": [{"role": "user", "content": %s}]}',
    '{"query": "a", "conversation_history": [{"role": "user", "content": "a", "signature": %s}]}',
    '{"query": "a", "filters": %s}',
    '{"query": "a", "filters": {"tags": %s}}',
    '{"query": "a", "filters": {"$or": %s}}',
    '{"query": "a", "filters": {"created_at": {"$gte": %s}}}',
    '{"query": "a", "filters": {%s: "a"}}',
    '{"query": "a", "top_k": %s}',
    '{"query": "a", "thread_id": %s}',
    '{"query": "a", "page_url": %s, "language": "en"}',
    '{"query": "a", "unknown": %s}',
    '{"query": "a", %s: 1}',
]
FEEDBACK = [f'{{"turn_id": "{"0" * 32}", "rating": "up", "{name}": %s}}' for name in ("reason", "comment", "unknown")]
FEEDBACK += [f'{{"turn_id": "{"0" * 32}", "rating": %s}}', '{"turn_id": %s, "rating": 1}', '{"rating": -1, %s: 1}']
RETRIEVE = ['{"embedding": %s}', '{"embedding": [0.5, %s]}', '{"query": "a", "threshold": %s}']


def test_no_value_in_any_field_is_ever_our_fault() -> None:
    values = [*NUMBERS, *STRINGS, *COMPOUNDS, *BROKEN, *CANARIES]
    cases = [("/v1/chat", frame.replace("%s", value)) for frame in CHAT for value in values]
    cases += [("/v1/retrieve", frame.replace("%s", value)) for frame in RETRIEVE for value in values]
    cases += [("/v1/feedback", frame.replace("%s", value)) for frame in FEEDBACK for value in values]
    assert len(cases) > 1500
    json = {"content-type": "application/json"}
    service = Scripted(settings=Settings(rates="off"))
    responses = Client(create_app(service)).many(
        ("POST", path, {"content": text.encode(), "headers": json}) for path, text in cases
    )
    for (path, text), response in zip(cases, responses, strict=True):
        done = 204 if path == "/v1/feedback" else 200
        assert response.status_code in (done, 400, 422), (path, text[:200], response.text)
        if response.status_code != done:
            assert error_of(response)["code"] == {400: "malformed", 422: "out_of_contract"}[response.status_code]
            assert CANARY not in response.text
            assert len(response.content) < 300
    assert len(service.asked) == sum(response.status_code == 200 for response in responses)
    assert len(service.rated) == sum(response.status_code == 204 for response in responses)
    # The corpus has to reach every outcome, or it proves nothing.
    assert {response.status_code for response in responses} == {200, 204, 400, 422}


def test_no_bytes_are_ever_our_fault() -> None:
    history = '"conversation_history": [{"role": "user", "content": "a"}]'
    whole = f'{{"query": "é", {history}, "filters": {{"tags": ["k"]}}}}'.encode()
    bodies = [whole[:end] for end in range(len(whole))]
    bodies += [whole[:at] + bytes([byte]) + whole[at + 1 :] for at in range(len(whole)) for byte in b'\x00"{\\\xff9']
    responses = Client(create_app(Scripted(settings=Settings(rates="off")))).many(
        ("POST", "/v1/chat", {"content": raw, "headers": {"content-type": "application/json"}}) for raw in bodies
    )
    assert {response.status_code for response in responses} == {200, 400, 422}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    # Thousands of requests of one client are what the limits are there to stop.
    return quill.publish(tmp_path_factory.mktemp("index")).override(rates="off")


@pytest.mark.parametrize("route", FIELDS)
def test_no_document_of_any_family_is_our_fault_or_said_back(index: Settings, route: str) -> None:
    corpus = documents()
    assert len(corpus) == len(set(corpus)) > 1600
    responses = Client(create_app(quill.service(index))).many(
        ("POST", route, {"content": document.body, "headers": {"content-type": document.content_type}})
        for document in corpus
    )
    outcomes: Counter[int] = Counter()
    for document, response in zip(corpus, responses, strict=True):
        outcomes[response.status_code] += 1
        if response.status_code >= 400:
            assert error_of(response)["code"] == _CODES[response.status_code], (document.family, document.body[:200])
            assert len(response.content) < 300
            assert CANARY not in response.text + str(response.headers), (document.family, document.body[:200])
    # What is legal stays legal, and every kind of refusal is reached.
    done = 204 if route == "/v1/feedback" else 200
    assert set(outcomes) == {done, 400, 413, 415, 422}
    assert outcomes[done] > 20


_BODY = b'{"query": "cAnArY"}'
_HEAD = b"POST /v1/chat HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
_CHUNKED = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
#: Lies about where a body ends, as bytes on the wire, and the status of the first response.
LIES = {
    "honest": (_HEAD + b"Content-Length: 19\r\n\r\n" + _BODY, {200}),
    "one byte less": (_HEAD + b"Content-Length: 18\r\n\r\n" + _BODY, {400}),
    "none at all": (_HEAD + b"\r\n" + _BODY, {400}),
    "zero": (_HEAD + b"Content-Length: 0\r\n\r\n" + _BODY, {400}),
    "negative": (_HEAD + b"Content-Length: -1\r\n\r\n" + _BODY, {400}),
    "no number": (_HEAD + b"Content-Length: cAnArY\r\n\r\n" + _BODY, {400}),
    "hexadecimal": (_HEAD + b"Content-Length: 0x13\r\n\r\n" + _BODY, {400}),
    "signed": (_HEAD + b"Content-Length: +19\r\n\r\n" + _BODY, {400}),
    "two": (_HEAD + b"Content-Length: 19\r\nContent-Length: 5\r\n\r\n" + _BODY, {400}),
    "two alike in one": (_HEAD + b"Content-Length: 19, 19\r\n\r\n" + _BODY, {200, 400}),
    "over the limit": (_HEAD + b"Content-Length: 131073\r\n\r\n" + _BODY, {413}),
    "far over the limit": (_HEAD + b"Content-Length: 1" + b"0" * 18 + b"\r\n\r\n" + _BODY, {400, 413}),
    "chunked": (_CHUNKED + b"13\r\n" + _BODY + b"\r\n0\r\n\r\n", {200}),
    "chunked and empty": (_CHUNKED + b"0\r\n\r\n", {400}),
    "chunked and counted": (
        _HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n13\r\n" + _BODY + b"\r\n0\r\n\r\n",
        {200, 400},
    ),
    "a chunk that is no chunk": (_CHUNKED + b"zz\r\n" + _BODY + b"\r\n0\r\n\r\n", {400}),
    "a negative chunk": (_CHUNKED + b"-13\r\n" + _BODY + b"\r\n0\r\n\r\n", {400}),
    "a chunk with an endless size": (_CHUNKED + b"0" * 9000 + b"13\r\n" + _BODY + b"\r\n0\r\n\r\n", {400}),
    "chunks over the limit": (_CHUNKED + (b"2000\r\n" + b" " * 8192 + b"\r\n") * 17 + b"0\r\n\r\n", {413}),
    "chunked twice": (_HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", {400, 501}),
    "packed": (_HEAD + b"Content-Encoding: gzip\r\nContent-Length: 19\r\n\r\n" + _BODY, {415}),
}


def test_a_body_that_lies_about_its_length_is_refused() -> None:
    with serving(create_app(Scripted(settings=Settings(rates="off")))) as address:
        for lie, (sent, expected) in LIES.items():
            status, text = _first_response(address, sent)
            assert status in expected, (lie, status)
            assert CANARY not in text, lie


def _first_response(address: str, sent: bytes) -> tuple[int, str]:
    host = urlsplit(address)
    with socket.create_connection((host.hostname, host.port), timeout=10) as connection:
        connection.sendall(sent)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response.status, f"{response.headers} {response.read().decode()}"
