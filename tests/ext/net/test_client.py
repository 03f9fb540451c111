"""JSON over HTTP against a server on loopback that misbehaves on demand."""

from __future__ import annotations

import email.utils
import json
import math
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path

import pytest

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.ext.net import JsonClient, asked_pause, bearer, is_unbilled
from chapterverse.ext.net.address import Address
from chapterverse.ext.net.connections import Abort, Connections, Request
from chapterverse_api.deadline import Deadline
from fakes.loopback import LONG, Fault, LoopbackServer, failing, leaving, rate_limited


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with LoopbackServer() as running:
        yield running


def test_a_body_is_sent_as_json_and_the_reply_is_parsed(server: LoopbackServer) -> None:
    reply = JsonClient(f"{server.url}/prefix/", {"X-Key": "k"}).post("/path", {"text": "Grüße \U0001f30d"})
    assert (reply.status, reply.body) == (200, {"path": "/prefix/path", "body": {"text": "Grüße \U0001f30d"}})
    (request,) = server.history
    assert request.raw == '{"text":"Grüße \U0001f30d"}'.encode()
    assert request.headers["content-type"] == request.headers["accept"] == "application/json"
    assert request.headers["x-key"] == "k"
    assert reply.headers["content-type"] == "application/json"


def test_a_get_has_no_body(server: LoopbackServer) -> None:
    assert JsonClient(server.url, {}).send("GET", "/path").body == {"path": "/path", "body": None}
    assert (server.history[0].method, server.history[0].raw) == ("GET", b"")


def test_a_lone_surrogate_is_sent_as_a_question_mark(server: LoopbackServer) -> None:
    reply = JsonClient(server.url, {}).post("/", {"text": "a\ud800b"})
    assert reply.body["body"] == {"text": "a?b"}


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again(server: LoopbackServer, status: int) -> None:
    rest = JsonClient(server.url, {})
    server.play(failing(status))
    assert rest.post("/", {}).status == 200
    server.play(failing(status), failing(status))
    assert rest.post("/", {}).status == status
    assert len(server.history) == 4


@pytest.mark.parametrize(("status", "sends"), [(429, 2), (503, 2), (408, 1), (500, 1), (502, 1), (504, 1)])
def test_what_may_be_billed_is_not_sent_again(server: LoopbackServer, status: int, sends: int) -> None:
    server.play(failing(status))
    JsonClient(server.url, {}, billed=True).post("/", {})
    assert len(server.history) == sends


def test_only_refusals_cost_nothing() -> None:
    assert [s for s in (400, 401, 404, 422, 429, 498, 503) if not is_unbilled(s)] == []
    assert [s for s in (0, 200, 206, 301, 408, 424, 499, 500, 502, 504, 599) if is_unbilled(s)] == []


def test_who_has_a_patience_of_its_own_asks_once(server: LoopbackServer) -> None:
    server.play(failing(503))
    assert JsonClient(server.url, {}, tries=1).post("/", {}).status == 503
    assert len(server.history) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 404, 422])
def test_what_will_not_pass_is_not_tried_again(server: LoopbackServer, status: int) -> None:
    server.play(failing(status))
    assert JsonClient(server.url, {}).post("/", {}).status == status
    assert len(server.history) == 1


def test_a_reader_does_not_wait_long(server: LoopbackServer) -> None:
    server.play(rate_limited(30))
    reply = JsonClient(server.url, {}).post("/", {})
    assert (reply.status, reply.pause, len(server.history)) == (429, 30.0, 1)


def test_requests_share_a_connection(server: LoopbackServer) -> None:
    rest = JsonClient(server.url, {})
    for _ in range(3):
        rest.post("/", {})
    rest.send("GET", "/")
    assert server.connections == 1


def test_threads_share_connections_and_never_an_answer(server: LoopbackServer) -> None:
    rest = JsonClient(server.url, {})
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda i: rest.post(f"/{i}", {}).body["path"], range(400)))
    assert replies == [f"/{i}" for i in range(400)]
    assert server.connections <= 8


def test_a_connection_that_was_closed_while_idle_is_replaced(server: LoopbackServer) -> None:
    rest = JsonClient(server.url, {})
    server.play(Fault(close=True))
    rest.post("/", {})
    server.wait_closed()
    assert rest.post("/", {}).status == 200
    assert len(server.history) == 2


def closing(reply: object) -> bytes:
    """Take a request, and close the connection without a word."""
    raise ConnectionResetError


def warmed(server: LoopbackServer, *, billed: bool) -> JsonClient:
    """Return a client with eight open connections."""
    rest = JsonClient(server.url, {}, billed=billed)
    server.play(*[Fault(hang=0.3)] * 8)
    with ThreadPoolExecutor(8) as pool:
        assert {reply.status for reply in pool.map(lambda _: rest.post("/", {}), range(8))} == {200}
    assert server.connections == 8
    server.history.clear()
    return rest


@pytest.mark.parametrize(("billed", "sends"), [(True, 1), (False, 2)])
def test_what_is_taken_without_a_reply_is_sent_once_more_at_most(
    server: LoopbackServer, billed: bool, sends: int
) -> None:
    rest = warmed(server, billed=billed)
    server.play(*[Fault(change=closing)] * 20)
    with pytest.raises(ProviderError, match=r"^127\.0\.0\.1 could not be reached or broke off\.$") as caught:
        rest.post("/", {})
    assert not caught.value.unbilled
    assert len(server.history) == sends


def test_a_connection_that_failed_takes_the_idle_ones_with_it(server: LoopbackServer) -> None:
    rest = warmed(server, billed=False)
    server.play(Fault(change=closing))
    assert rest.post("/", {}).status == 200
    assert server.connections == 9
    assert rest.post("/", {}).status == 200
    assert server.connections == 9


@pytest.mark.parametrize("seconds", [40, -40])
def test_a_connection_that_waited_for_long_is_not_used_again(
    server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    rest = JsonClient(server.url, {}, billed=True)
    rest.post("/", {})
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + seconds)
    assert rest.post("/", {}).status == 200
    assert server.connections == 2


def test_a_billed_request_goes_over_no_connection_that_the_server_closed(server: LoopbackServer) -> None:
    rest = JsonClient(server.url, {}, billed=True)
    for _ in range(5):
        server.play(Fault(close=True))
        rest.post("/", {})
        server.wait_closed()
    assert (len(server.history), server.connections) == (5, 5)


def test_what_was_not_sent_to_its_end_costs_nothing(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = JsonClient(server.url, {}, billed=True)
    rest.post("/", {})

    def broken(*_: object, **__: object) -> None:
        raise BrokenPipeError

    whole = HTTPConnection.request
    monkeypatch.setattr(HTTPConnection, "request", broken)
    with pytest.raises(ProviderError) as caught:
        rest.post("/", {})
    assert caught.value.unbilled
    # Over a connection that waited, it is sent anew.
    monkeypatch.setattr(HTTPConnection, "request", whole)
    rest.post("/", {})
    calls = iter([broken, whole])
    monkeypatch.setattr(HTTPConnection, "request", lambda *a, **k: next(calls)(*a, **k))
    assert rest.post("/", {}).status == 200


@pytest.mark.parametrize("fault", [Fault(hang=10), Fault(drip=0.02)], ids=["silent", "dripping"])
def test_a_request_has_a_time_in_all(server: LoopbackServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match=r"^127\.0\.0\.1 did not answer in time\.$") as caught:
        JsonClient(server.url, {}, total_seconds=0.3).post("/", {})
    assert caught.value.retryable


def test_a_request_may_have_another_time(server: LoopbackServer) -> None:
    server.play(Fault(hang=2))
    with pytest.raises(ProviderError, match="did not answer in time"):
        JsonClient(server.url, {}).post("/", {}, seconds=0.1)


@pytest.mark.parametrize("fault", [Fault(hang=LONG), Fault(drip=1), rate_limited(0.9)])
def test_a_request_can_be_ended_from_another_thread(server: LoopbackServer, fault: Fault) -> None:
    rest = JsonClient(server.url, {}, tries=20)
    rest.post("/", {})
    for _ in range(2):
        server.play(*[fault] * 20)
        deadline = Deadline()
        with (
            leaving(server, deadline.abort),
            pytest.raises(ProviderError, match=r"^Nobody waits for 127\.0\.0\.1 any more: ask again\.$"),
        ):
            rest.post("/", {}, closing=deadline.closing)
        server.faults.clear()
    assert rest.post("/", {}).status == 200


def test_a_reply_that_breaks_off_is_one_sentence(server: LoopbackServer) -> None:
    server.play(Fault(cut=True))
    with pytest.raises(ProviderError, match=r"^127\.0\.0\.1 could not be reached or broke off\.$") as caught:
        JsonClient(server.url, {}).post("/", {})
    assert caught.value.retryable


def test_no_server_is_one_sentence() -> None:
    with LoopbackServer() as gone:
        rest = JsonClient(gone.url, {})
    with pytest.raises(ProviderError, match="could not be reached") as caught:
        rest.send("GET", "/")
    assert caught.value.retryable


def test_a_reply_without_an_end_is_not_read_to_its_end(server: LoopbackServer) -> None:
    server.play(Fault(change=lambda reply: b" " * (17 * 1024 * 1024)))
    with pytest.raises(ProviderError, match="more than a reply may hold"):
        JsonClient(server.url, {}).post("/", {})
    assert JsonClient(server.url, {}).post("/", {}).status == 200


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a":', b"[" * 100_000, b"\xff\xfe", b'{"a":' * 100_000])
def test_what_is_no_json_is_none(server: LoopbackServer, body: bytes) -> None:
    server.play(Fault(change=lambda reply: body))
    assert JsonClient(server.url, {}).post("/", {}).body is None


@pytest.mark.parametrize(
    "address",
    ["", "host", "ftp://host", "https://", "https://host:port", "https://[::1", "https://a..b", "https://host/a b",
     "https://host/\r\nX-Evil: 1", "https://host/grüße"],
)  # fmt: skip
def test_what_is_no_address_is_one_sentence(address: str) -> None:
    with pytest.raises(ConfigurationError, match="is no address of a service: use https://HOST") as caught:
        JsonClient(address, {})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("address", ["https://me:s3cret@host", "ftp://me:s3cret@host", "ftp://host?key=s3cret"])
def test_a_password_in_an_address_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(ConfigurationError, match="host") as caught:
        JsonClient(address, {})
    assert "s3cret" not in str(caught.value)


def test_a_host_of_another_script_is_an_address() -> None:
    JsonClient("https://bücher.example", {})
    JsonClient("http://[::1]:8080/", {})


@pytest.mark.parametrize("key", ["k\r\nX-Evil: 1", "schlüssel", "k\x00"])
def test_a_malformed_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigurationError, match="SOME_KEY holds characters that no key has") as caught:
        bearer(key, "SOME_KEY")
    assert key not in str(caught.value)
    with pytest.raises(ConfigurationError, match="The header api-key for host holds characters") as caught:
        JsonClient("https://host", {"api-key": key})
    assert key not in str(caught.value)


def test_a_key_becomes_a_header() -> None:
    assert bearer("k", "SOME_KEY") == {"Authorization": "Bearer k"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-1"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "7"}, 7.0),
        ({"x-ratelimit-reset": "1"}, 0.0),
    ],
)
def test_how_long_a_server_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_pause(headers) == seconds


def test_a_server_may_name_a_time_of_day() -> None:
    date = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert 90 < (asked_pause({"retry-after": date}) or 0) <= 100
    assert 90 < (asked_pause({"x-ratelimit-reset": str(int(time.time()) + 100)}) or 0) <= 100


# What a client of another protocol sends


def sent(server: LoopbackServer, data: bytes | Path, stall: float = math.inf) -> int:
    pool = Connections(Address.parse(server.url), 3.0)
    request = Request("POST", "/", time.monotonic() + 30, Abort(), data, {}, stall)
    exchange = pool.send(request, lambda exchange: exchange)
    exchange.connection.close()
    return exchange.response.status


def test_a_file_is_sent_with_its_length(server: LoopbackServer, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(json.dumps("x" * 700_000))
    assert sent(server, tmp_path / "file") == 200
    (request,) = server.history
    assert request.body == "x" * 700_000
    assert request.headers["content-length"] == "700002"
    assert "transfer-encoding" not in request.headers


def test_a_server_that_falls_silent_is_not_waited_for_to_the_end(server: LoopbackServer) -> None:
    server.play(Fault(hang=20.0))
    with pytest.raises(ProviderError, match="did not answer in time"):
        sent(server, b"{}", stall=0.2)
    assert server.left.wait(10)
