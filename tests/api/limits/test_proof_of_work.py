from __future__ import annotations

import asyncio
import hashlib
import hmac
import itertools
import random
from typing import Any

import httpx
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from api.scripted import Client, Scripted, error_of
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.ext.work.proof_of_work import (
    CHALLENGE_SECONDS,
    ITERATIONS,
    ProofOfWork,
    WorkRequired,
    check_solution,
    make_challenge,
)
from chapterverse_api.limits import MemoryLimiter, RateWindow

KEY = b"0123456789abcdef" * 4
SITE, READER = "docs", "c" * 32
NOW = 1_800_000_000.0
DOCS = "https://docs.example.com"


def tried(given: str, iterations: int = ITERATIONS) -> str:
    """Do the work as a browser does it."""
    for number in itertools.count():
        if hashlib.pbkdf2_hmac("sha256", str(number).encode(), given.encode(), iterations, 1) == b"\0":
            return f"{given}:{number}"
    raise AssertionError


@pytest.fixture(scope="module")
def answer() -> str:
    return tried(make_challenge(KEY, SITE, READER, NOW))


def test_work_that_was_done_counts_until_its_end(answer: str) -> None:
    done = check_solution(KEY, SITE, READER, answer, NOW)
    assert done is not None
    assert (len(done.nonce), done.expiry) == (32, NOW + CHALLENGE_SECONDS)
    assert check_solution(KEY, SITE, READER, answer, NOW + CHALLENGE_SECONDS - 1) == done
    assert check_solution(KEY, SITE, READER, answer, NOW + CHALLENGE_SECONDS) is None
    # Nor one that our clock can't have made.
    assert check_solution(KEY, SITE, READER, answer, NOW - 1) is None


def test_work_for_another_site_client_or_key_counts_for_nothing(answer: str) -> None:
    assert check_solution(KEY, "other", READER, answer, NOW) is None
    assert check_solution(KEY, SITE, "d" * 32, answer, NOW) is None
    assert check_solution(KEY[::-1], SITE, READER, answer, NOW) is None


def test_no_part_may_move_into_the_next(answer: str) -> None:
    """CVE-2025-68113: a challenge whose fields were joined without their lengths."""
    assert check_solution(KEY, f"{SITE}c", READER[1:], answer, NOW) is None
    assert check_solution(KEY, SITE[:-1], f"s{READER}", answer, NOW) is None
    version, expiry, nonce, rest = answer.split(".")
    for moved in ((f"{expiry}{nonce[0]}", nonce[1:]), (expiry[:-1], expiry[-1] + nonce)):
        assert check_solution(KEY, SITE, READER, ".".join([version, *moved, rest]), NOW) is None


def test_less_work_counts_for_nothing() -> None:
    given = make_challenge(KEY, SITE, READER, NOW)
    easy = tried(given, 1)
    assert check_solution(KEY, SITE, READER, easy, NOW) is None or easy == tried(given)


def test_a_challenge_from_when_less_was_asked_counts_for_nothing() -> None:
    given = make_challenge(KEY, SITE, READER, NOW)
    assert signed(given, ITERATIONS) == given
    assert check_solution(KEY, SITE, READER, tried(signed(given, 1)), NOW) is None


def signed(given: str, iterations: int) -> str:
    """Return the challenge as one that asks for so many iterations: each part of its MAC has its length before it."""
    _, expiry, nonce, _ = given.split(".")
    parts = (b"chapterverse/work/1", iterations.to_bytes(4, "big"), *map(str.encode, (SITE, READER, expiry, nonce)))
    mac = hmac.new(KEY, b"".join(len(part).to_bytes(4, "big") + part for part in parts), "sha256")
    return f"v1.{expiry}.{nonce}.{mac.hexdigest()}"


@pytest.mark.parametrize(
    "change",
    [
        lambda said: "",
        lambda said: said.rpartition(":")[0],
        lambda said: f"{said} ",
        lambda said: f"{said}\n",
        lambda said: said.replace(":", ":+"),
        lambda said: said.replace(":", ":0"),
        lambda said: said.replace(":", ":-"),
        lambda said: f"{said},{said}",
        lambda said: said.replace("v1.", "v2."),
        lambda said: "v1." + ".".join(said.split(".")[2:]),
        lambda said: said.upper(),
        lambda said: f"{said.rpartition(':')[0]}:{'9' * 5000}",
        lambda said: said.replace(said.split(".")[1], "9" * 11),
        lambda said: f"{said}é",
    ],
)
def test_what_is_no_answer_counts_for_nothing(answer: str, change: Any) -> None:
    assert check_solution(KEY, SITE, READER, change(answer), NOW) is None


def test_of_a_hundred_thousand_forgeries_none_counts_and_none_costs_work(
    answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, number = answer.rsplit(":", 1)
    other = make_challenge(KEY, SITE, READER, NOW + 1)
    costly = 0

    def counted(*_: object) -> bytes:
        nonlocal costly
        costly += 1
        return b"\0"

    # As if all work were done: what is left to refuse them is the MAC.
    monkeypatch.setattr(hashlib, "pbkdf2_hmac", counted)
    choose = random.Random(1)
    accepted = 0
    for _ in range(100_000):
        forged = _forged(given, other, choose)
        accepted += forged != given and check_solution(KEY, SITE, READER, f"{forged}:{number}", NOW) is not None
    assert (accepted, costly) == (0, 0)


def _forged(given: str, other: str, choose: random.Random) -> str:
    fields = given.split(".")
    kind = choose.randrange(4)
    if kind == 0:
        # One character becomes another.
        at = choose.randrange(3, len(given))
        return given[:at] + choose.choice([c for c in "0123456789abcdef." if c != given[at]]) + given[at + 1 :]
    if kind == 1:
        # A field comes from another challenge of the same client.
        at = choose.randrange(1, 4)
        return ".".join([*fields[:at], other.split(".")[at], *fields[at + 1 :]])
    if kind == 2:
        # It ends later, up to the latest that would be believed.
        fields[1] = str(int(fields[1]) - choose.randrange(1, CHALLENGE_SECONDS))
        return ".".join(fields)
    fields[2], fields[3] = (f"{choose.getrandbits(4 * size):0{size}x}" for size in (32, 64))
    return ".".join(fields)


def test_work_is_asked_for_from_half_of_a_window_on_and_counts_once(answer: str) -> None:
    limiter, toll = MemoryLimiter(), ProofOfWork(SITE, [RateWindow(5, 60)])
    toll.check(limiter, KEY, READER, "", NOW)
    toll.check(limiter, KEY, READER, "", NOW)
    for said in ("", "x", answer.replace(":", ":1")):
        with pytest.raises(WorkRequired) as refused:
            toll.check(limiter, KEY, READER, said, NOW)
    assert 1 <= (refused.value.retry_after or 0) <= 60
    assert check_solution(KEY, SITE, READER, tried(refused.value.challenge), NOW) is not None
    toll.check(limiter, KEY, READER, answer, NOW)
    with pytest.raises(WorkRequired):
        toll.check(limiter, KEY, READER, answer, NOW)
    # Another reader is asked for none.
    toll.check(limiter, KEY, "d" * 32, "", NOW)


def from_afar(app: ASGIApp) -> ASGIApp:
    async def asgi(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "client": ("203.0.113.7", 1)}, receive, send)

    return asgi


def test_a_refusal_holds_a_challenge_and_its_answer_is_let_in_up_to_the_limit() -> None:
    settings = Settings(rates="4/day", proof_of_work=True, allowed_origins=DOCS, site=SITE)
    service = Scripted(settings=settings)
    app = from_afar(create_app(service))

    def ask(client: Client, **headers: str) -> httpx.Response:
        return client.post("/v1/chat", {"query": "a"}, headers={"origin": DOCS, **headers})

    client = Client(app)
    assert [ask(client).status_code for _ in range(2)] == [200, 200]
    for _ in range(2):
        for _ in range(3):
            refused = ask(client)
            assert refused.status_code == 429
        assert error_of(refused) == {
            "code": "work_required",
            "message": (
                "This reader has asked a lot in a short time: answer the challenge in the header x-work, or wait, "
                "and ask again."
            ),
        }
        assert int(refused.headers["retry-after"]) >= 1
        assert "x-work" in refused.headers["access-control-expose-headers"]
        solution = tried(refused.headers["x-work"])
        assert ask(client, **{"x-work": solution}).status_code == 200
        assert error_of(ask(client, **{"x-work": solution}))["code"] == "work_required"
    spent = ask(client, **{"x-work": tried(ask(client).headers["x-work"])})
    assert error_of(spent)["code"] == "too_many_requests"
    assert len(service.asked) == 4


def test_no_work_is_asked_for_unless_an_operator_wants_it() -> None:
    client = Client(from_afar(create_app(Scripted(settings=Settings(rates="4/day")))))
    answers = [client.post("/v1/chat", {"query": "a"}) for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200] * 4 + [429]
    assert "x-work" not in answers[-1].headers


def test_no_work_is_asked_for_on_this_machine_or_without_limits() -> None:
    for rates, app in (
        ("2/day", create_app(Scripted(settings=Settings(rates="2/day", proof_of_work=True)))),
        ("off", from_afar(create_app(Scripted(settings=Settings(rates="off", proof_of_work=True))))),
    ):
        assert [Client(app).post("/v1/chat", {"query": "a"}).status_code for _ in range(5)] == [200] * 5, rates


def test_a_browser_may_send_the_answer() -> None:
    app = create_app(Scripted(settings=Settings(allowed_origins=DOCS, proof_of_work=True)))
    asked = {"origin": DOCS, "access-control-request-method": "POST", "access-control-request-headers": "x-work"}
    preflight = Client(app).request("OPTIONS", "/v1/chat", headers=asked)
    assert "x-work" in preflight.headers["access-control-allow-headers"]


def test_answers_at_once_count_once(answer: str) -> None:
    limiter, toll = MemoryLimiter(), ProofOfWork(SITE, [RateWindow(2, 60)])
    toll.check(limiter, KEY, READER, "", NOW)

    async def race() -> list[object]:
        calls = (asyncio.to_thread(toll.check, limiter, KEY, READER, answer, NOW) for _ in range(16))
        return await asyncio.gather(*calls, return_exceptions=True)

    assert sum(result is None for result in asyncio.run(race())) == 1
