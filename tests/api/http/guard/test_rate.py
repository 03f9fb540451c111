from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from api.limits.test_contract import DAY, MIDNIGHT
from api.scripted import Client, Scripted, error_of
from chapterverse.errors import ConfigurationError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.ext.aws.events import LambdaHandler
from chapterverse_api.ext.budget.circuit_breaker import FAILURE_THRESHOLD
from chapterverse_api.ext.limiter.sqlite import SqliteLimiter
from chapterverse_api.http.admission import RateLimit, client_key, client_network, parse_rates
from chapterverse_api.limits import LimiterFault, RateWindow
from chapterverse_api.rejections import Rejection
from ext.aws.test_events import CONTEXT, FUNCTION_URL, HTTP_API
from fakes.clocks import Clock

KEY = "0123456789abcdef" * 4
DOCS = "https://docs.example.com"
ADDRESS = "203.0.113.7"
TURN = "0" * 32


def came_from(app: ASGIApp, **scope: Any) -> Client:
    """Return a client whose requests come with these parts of a scope."""

    async def asgi(given: Scope, receive: Receive, send: Send) -> None:
        await app({**given, **scope}, receive, send)

    return Client(asgi)


def event_of(address: object, event: dict[str, Any] = FUNCTION_URL) -> dict[str, Any]:
    event = copy.deepcopy(event)
    event["requestContext"]["http"]["sourceIp"] = address
    return event


def ask(client: Client, times: int = 1, headers: Mapping[str, str] = {}) -> list[int]:
    request = ("POST", "/v1/chat", {"json": {"query": "a"}, "headers": headers})
    return [response.status_code for response in client.many([request] * times)]


@pytest.mark.parametrize(
    ("rates", "windows"),
    [
        ("10/min,60/h,200/day", [(10, 60), (60, 3600), (200, 86400)]),
        (" 200/Day , 5 / s ", [(5, 1), (200, 86400)]),
        ("999999999/h", [(999_999_999, 3600)]),
        ("off", []),
        (" OFF ", []),
    ],
)
def test_rates_are_read_as_an_operator_writes_them(rates: str, windows: list[tuple[int, int]]) -> None:
    assert parse_rates(rates) == tuple(RateWindow(*window) for window in windows)


def test_the_default_is_a_list_of_limits() -> None:
    assert parse_rates(Settings().rates) == (RateWindow(10, 60), RateWindow(60, 3600), RateWindow(200, 86400))


@pytest.mark.parametrize(
    "rates",
    [
        *("", "10", "10/", "/min", "0/min", "-1/min", "1.5/min", "1e3/h", "10/minute", "10/m", "10/min;60/h", "on"),
        *("10/min,", ",", "10/min,20/min", "1000000000/s", "１０/min", "10/min,off", "10/min\n60/h", "inf/h"),
    ],
)
def test_rates_that_are_none_fail_at_the_start(rates: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        create_app(settings=Settings(rates=rates))
    assert str(caught.value) == (
        "CHAPTERVERSE_RATES is no list of limits: write it as 10/min,60/h,200/day, each of s, min, h and day at most "
        "once, or write off."
    )


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat", {"query": "a"}),
        ("/v1/retrieve", {"query": "a"}),
        ("/v1/feedback", {"turn_id": TURN, "rating": "up"}),
    ],
)
def test_who_asks_too_often_is_refused_before_the_service_is_asked(path: str, body: dict[str, str]) -> None:
    service = Scripted(settings=Settings(rates="2/day", allowed_origins=DOCS))
    client = came_from(create_app(service), client=(ADDRESS, 1))
    request = ("POST", path, {"json": body, "headers": {"origin": DOCS}})
    *_, refused = responses = client.many([request] * 3)
    assert [r.status_code for r in responses] == [*([204, 204] if "feedback" in path else [200, 200]), 429]
    assert error_of(refused) == {
        "code": "too_many_requests",
        "message": "That is more than one reader may ask in so short a time: wait, and ask again.",
    }
    assert 1 <= int(refused.headers["retry-after"]) <= DAY
    assert refused.headers["access-control-allow-origin"] == DOCS
    assert "retry-after" in refused.headers["access-control-expose-headers"]
    assert refused.headers["cache-control"] == "no-store"
    assert len(service.asked) + len(service.rated) == 2


def test_a_stream_is_refused_like_any_other_answer() -> None:
    client = came_from(create_app(Scripted(settings=Settings(rates="1/day"))), client=(ADDRESS, 1))
    assert ask(client, 2, {"accept": "text/event-stream"}) == [200, 429]


def test_the_service_does_not_open_for_who_asks_too_often(tmp_path: Path) -> None:
    settings = Settings(store=f"edge:{tmp_path}/nothing", rates="1/day")
    app = create_app(settings=settings)
    assert ask(came_from(app, client=(ADDRESS, 1)), 3) == [503, 429, 429]


def test_all_routes_count_together_and_the_free_ones_do_not() -> None:
    client = came_from(create_app(Scripted(settings=Settings(rates="2/day"))), client=(ADDRESS, 1))
    rated = client.post("/v1/feedback", {"turn_id": TURN, "rating": "up"})
    found = client.post("/v1/retrieve", {"query": "a"})
    assert (rated.status_code, found.status_code, ask(client)) == (204, 200, [429])
    free = ["/v1/health", "/v1/status", "/v1/schema", "/openapi.json", "/v1/nope"]
    assert [client.get(path).status_code for path in free] == [200, 200, 200, 200, 404]


def test_what_is_refused_for_another_reason_is_not_counted() -> None:
    client = came_from(
        create_app(Scripted(settings=Settings(rates="1/day", allowed_origins=DOCS))), client=(ADDRESS, 1)
    )
    assert ask(client, 3, {"origin": "https://evil.example.com"}) == [403] * 3
    assert client.post_raw("/v1/chat", b"{").status_code == 400
    assert client.post("/v1/chat", {"query": ""}).status_code == 422
    assert ask(client, 2) == [200, 429]


def test_off_means_as_often_as_one_likes() -> None:
    client = came_from(create_app(Scripted(settings=Settings(rates="off"))), client=(ADDRESS, 1))
    assert ask(client, 15) == [200] * 15


@pytest.mark.parametrize("event", [FUNCTION_URL, HTTP_API], ids=["function-url", "http-api"])
def test_on_lambda_the_address_is_the_events_whatever_the_request_says(event: dict[str, Any]) -> None:
    client = came_from(
        create_app(Scripted(settings=Settings(rates="2/day"))),
        client=("127.0.0.1", 0),
        **{"aws.event": event_of(ADDRESS, event)},
    )
    names = [
        "x-forwarded-for",
        "forwarded",
        "x-real-ip",
        "true-client-ip",
        "cf-connecting-ip",
        "x-amzn-request-context",
    ]
    forged = [dict.fromkeys(names, f"198.51.100.{i}") for i in range(4)]
    assert [ask(client, headers=headers)[0] for headers in forged] == [200, 200, 429, 429]


def test_a_function_url_is_told_how_long_to_wait() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    handler = LambdaHandler(create_app(Scripted(settings=Settings(rates="1/day", allowed_origins=DOCS))))
    answers = [handler(copy.deepcopy(HTTP_API), CONTEXT) for _ in range(2)]
    asyncio.set_event_loop(None)
    loop.close()
    assert [answer["statusCode"] for answer in answers] == [200, 429]
    assert int(answers[1]["headers"]["retry-after"]) >= 1
    assert answers[1]["headers"]["access-control-allow-origin"] == DOCS


@pytest.mark.parametrize("event", [FUNCTION_URL, HTTP_API], ids=["function-url", "http-api"])
def test_events_without_an_address_share_one_count(event: dict[str, Any]) -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    handler = LambdaHandler(create_app(Scripted(settings=Settings(rates="2/day", allowed_origins=DOCS))))
    asked = {key: HTTP_API[key] for key in ("headers", "body")} | {"rawPath": "/v1/chat"}
    http = HTTP_API["requestContext"]["http"]
    sources: list[dict[str, Any]] = [{}, {"sourceIp": None}, {"sourceIp": ""}, {"sourceIp": ADDRESS}, {}]
    statuses = []
    for source_ip in sources:
        named = {key: value for key, value in http.items() if key != "sourceIp"} | source_ip
        context = event["requestContext"] | {"http": named}
        statuses.append(handler(event | asked | {"requestContext": context}, CONTEXT)["statusCode"])
    asyncio.set_event_loop(None)
    loop.close()
    assert statuses == [200, 200, 429, 200, 429]


def test_every_reader_has_their_own_count() -> None:
    app = create_app(Scripted(settings=Settings(rates="1/day")))
    readers = [came_from(app, **{"aws.event": event_of(f"203.0.113.{i}")}) for i in range(3)]
    assert [ask(reader, 2) for reader in readers] == [[200, 429]] * 3


def test_this_machine_is_not_limited() -> None:
    app = create_app(Scripted(settings=Settings(rates="1/day")))
    for peer in ("127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"):
        assert ask(came_from(app, client=(peer, 1)), 3) == [200] * 3


def source(client: object = None, **scope: Any) -> bytes | None:
    return client_network({"type": "http", "client": client, **scope})


def test_an_ipv6_network_is_one_client() -> None:
    near = {source((f"2001:db8:1:2:{i:x}::{i:x}", 1)) for i in range(200)}
    assert near == {ip_address("2001:db8:1:2::").packed[:8]}
    assert source(("2001:db8:1:3::1", 1)) not in near
    assert source(("fe80::1%eth0", 1)) == ip_address("fe80::").packed[:8]


def test_an_ipv4_address_is_the_same_one_in_ipv6() -> None:
    assert source((ADDRESS, 1)) == source((f"::ffff:{ADDRESS}", 1)) == ip_address(ADDRESS).packed
    assert source(("203.0.113.8", 1)) != source((ADDRESS, 1))


EVENTS: list[object] = [
    *({}, [], "", 7, {"requestContext": None}, {"requestContext": []}, {"requestContext": {}}),
    *({"requestContext": {"http": None}}, {"requestContext": {"http": []}}, {"requestContext": {"http": {}}}),
    {"requestContext": {"elb": {"targetGroupArn": "x"}}},
]
ADDRESSES: list[object] = [
    *("", "localhost", "203.0.113", "203.0.113.7.1", "203.0.113.7 ", "203.0.113.7:80", "203.0.113.007", "::g", "\0"),
    *(
        None,
        7,
        3405803783,
        1.5,
        True,
        [],
        ["203.0.113.7"],
        {},
        "9" * 100_000,
        ":" * 1000,
        "203.0.113.7\n",
        b"\xcb\0q\7",
    ),
]


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_without_an_address_is_counted_with_all_such(event: object) -> None:
    assert source(("127.0.0.1", 1), **{"aws.event": event}) == b"unknown"


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_none_is_counted_with_all_such(address: object) -> None:
    assert source((address, 1)) == b"unknown"
    assert source(("127.0.0.1", 1), **{"aws.event": event_of(address)}) == b"unknown"
    assert source(**{"aws.event": {"requestContext": {"identity": {"sourceIp": address}}}}) == b"unknown"


def test_a_request_without_a_peer_is_limited() -> None:
    client = came_from(create_app(Scripted(settings=Settings(rates="1/day"))), client=None)
    assert ask(client, 2) == [200, 429]


def test_an_event_never_comes_from_this_machine() -> None:
    assert source(**{"aws.event": event_of("127.0.0.1")}) == ip_address("127.0.0.1").packed
    assert source(**{"aws.event": event_of("::1")}) == bytes(8)


def test_both_formats_of_events_name_the_address() -> None:
    old = {"requestContext": {"identity": {"sourceIp": ADDRESS}}}
    assert source(**{"aws.event": old}) == source(**{"aws.event": event_of(ADDRESS)}) == ip_address(ADDRESS).packed


def test_a_client_has_another_name_each_day_and_under_each_key() -> None:
    here = ip_address(ADDRESS).packed
    name = client_key(here, b"salt", MIDNIGHT)
    assert name == client_key(here, b"salt", MIDNIGHT + DAY - 1)
    assert len({name, client_key(here, b"salt", MIDNIGHT + DAY), client_key(here, b"pepper", MIDNIGHT)}) == 3
    assert client_key(b"unknown", b"salt", -5.0)
    assert len(name) == 32
    assert ADDRESS not in name


def admitted(rates: RateLimit, address: str = ADDRESS) -> bool:
    try:
        rates.check({"type": "http", "client": (address, 1)})
    except Rejection:
        return False
    return True


def never_opened() -> Scripted:
    raise AssertionError("the service was opened")


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (KEY, KEY, True),
        (f"{KEY}, older", f" ,{KEY}", True),
        (KEY, KEY[::-1], False),
        ("", "", False),
    ],
)
def test_processes_that_share_a_key_share_their_counts(tmp_path: Path, one: str, other: str, shared: bool) -> None:
    clock = Clock(MIDNIGHT)
    processes = [
        RateLimit(
            Settings(limiter=f"sqlite:{tmp_path}/limits.sqlite", rates="1/day", signing_key=key),
            never_opened,
            clock=clock,
        )
        for key in (one, other)
    ]
    assert [admitted(rates) for rates in processes] == [True, not shared]
    assert ADDRESS.encode() not in (tmp_path / "limits.sqlite").read_bytes()


def test_a_key_among_the_secrets_is_taken_from_the_service() -> None:
    opened = []

    def opening() -> Scripted:
        opened.append(Scripted(settings=Settings(signing_key=KEY)))
        return opened[-1]

    rates = RateLimit(Settings(secrets_arn="arn:aws:x", rates="1/day"), opening, clock=Clock(MIDNIGHT))
    assert admitted(rates)
    assert opened
    assert not admitted(rates)


def test_a_key_of_the_settings_opens_no_service() -> None:
    settings = Settings(secrets_arn="arn:aws:x", signing_key=KEY, rates="1/day")
    rates = RateLimit(settings, never_opened, clock=Clock(MIDNIGHT))
    assert [admitted(rates), admitted(rates)] == [True, False]


def test_readers_and_programs_of_one_network_are_counted_apart(tmp_path: Path) -> None:
    limiter = f"sqlite:{tmp_path}/limits.sqlite"
    settings = Settings(limiter=limiter, rates="1/day", mcp_rates="1/day", signing_key=KEY)
    readers, programs = (
        RateLimit(settings, never_opened, programs=programs, clock=Clock(MIDNIGHT)) for programs in (False, True)
    )
    assert [admitted(each) for each in (readers, programs, readers, programs)] == [True, True, False, False]


@pytest.mark.parametrize("jump", [-400 * DAY, -3600, 3600, 400 * DAY])
def test_a_clock_that_jumps_locks_nobody_out(jump: float) -> None:
    clock = Clock(MIDNIGHT)
    rates = RateLimit(Settings(rates="1/min,9/day"), never_opened, clock=clock)
    assert [admitted(rates), admitted(rates)] == [True, False]
    clock.now += jump
    assert admitted(rates)
    with pytest.raises(Rejection) as caught:
        rates.check({"type": "http", "client": (ADDRESS, 1)})
    assert caught.value.retry_after == 60
    clock.now -= jump - 60
    assert admitted(rates)


def test_the_wait_is_whole_seconds_and_at_least_one() -> None:
    clock = Clock(MIDNIGHT)
    rates = RateLimit(Settings(rates="1/min"), never_opened, clock=clock)
    assert admitted(rates)
    waits = []
    for clock.now in (MIDNIGHT + 0.25, MIDNIGHT + 59.0, MIDNIGHT + 59.999999):
        with pytest.raises(Rejection) as caught:
            rates.check({"type": "http", "client": (ADDRESS, 1)})
        waits.append(caught.value.retry_after)
    assert waits == [60, 1, 1]


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    path = tmp_path / "limits.sqlite"
    path.write_bytes(b"no database " * 100)
    return path


def test_a_limiter_that_fails_lets_readers_pass_and_is_told_once_in_a_while(
    broken: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chapterverse")
    service = Scripted(settings=Settings(rates="1/day", limiter=f"sqlite:{broken}"))
    assert ask(came_from(create_app(service), client=(ADDRESS, 1)), 20) == [200] * 20
    lines = [json.loads(record.message) for record in caplog.records]
    assert len(lines) == FAILURE_THRESHOLD
    assert {(line["event"], line["code"], line["message"]) for line in lines} == {
        ("error", "limiter_unavailable", f"The file {broken} is no database of counters: remove it, or name another.")
    }
    with pytest.raises(LimiterFault):
        SqliteLimiter(broken).spent_micros("docs")


def test_a_limiter_that_is_back_counts_again(broken: Path) -> None:
    rates = RateLimit(Settings(rates="1/day", limiter=f"sqlite:{broken}"), never_opened, clock=Clock(MIDNIGHT))
    assert [admitted(rates) for _ in range(FAILURE_THRESHOLD - 1)] == [True] * (FAILURE_THRESHOLD - 1)
    broken.unlink()
    assert [admitted(rates) for _ in range(3)] == [True, False, False]


def test_a_limiter_that_does_not_exist_is_a_mistake_of_the_owner() -> None:
    client = came_from(create_app(Scripted(settings=Settings(limiter="redis"))), client=(ADDRESS, 1))
    response = client.post("/v1/chat", {"query": "a"})
    assert (response.status_code, error_of(response)["code"]) == (503, "misconfigured")
    with pytest.raises(ConfigurationError):
        open_offer("limiter", Settings(limiter="redis"))


def test_openapi_tells_how_long_to_wait() -> None:
    document = Client(create_app(Scripted())).get("/openapi.json").json()
    limited = {path for path, item in document["paths"].items() for o in item.values() if "429" in o["responses"]}
    assert limited == {"/v1/chat", "/v1/chat/completions", "/v1/plans", "/v1/retrieve", "/v1/feedback"}
    header = document["paths"]["/v1/chat"]["post"]["responses"]["429"]["headers"]["Retry-After"]
    assert header["schema"] == {"type": "integer", "minimum": 1}


def test_a_flood_over_rotating_ids_and_addresses_of_one_network_stays_within_its_limit() -> None:
    rates = RateLimit(Settings(), never_opened, clock=Clock(MIDNIGHT))
    passed = sum(admitted(rates, f"2001:db8::{i:x}:{i * 7919 % 65536:x}") for i in range(2000))
    assert passed == 10
