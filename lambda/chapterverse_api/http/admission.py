"""Lets a request through to what may cost something: its body is strict JSON, and its client doesn't ask too often.

Python's JSON parser accepts NaN, duplicate keys, numbers of any length and lone surrogates. Each breaks something later
(JSON writers, databases, caches), so all are rejected here, in linear time.

A client is an address that the platform itself saw: on Lambda from the event, elsewhere from the connection. Headers
such as X-Forwarded-For are never read, because anybody can write them. Counters hold a keyed hash of address and day,
so neither they nor the log contain addresses, and clients of two days can't be linked. Without `Settings.signing_key`
the key is random and private to the process, so several processes count separately.
"""

from __future__ import annotations

import hmac
import json
import math
import re
import secrets
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers
from starlette.types import Scope

from chapterverse.errors import ConfigurationError, NotAsked
from chapterverse.extensions import load_part, open_offer
from chapterverse.settings import Settings
from chapterverse.text.json_text import INTEGERS, SURROGATE, NestedTooDeep, check_depth
from chapterverse_api import log
from chapterverse_api.http.guard import parse_ip
from chapterverse_api.limits import Limiter, LimiterFault, RateWindow
from chapterverse_api.rejections import Rejection
from chapterverse_api.request_limits import MAX_BODY_BYTES, MAX_BODY_LEVELS, MAX_NUMBER_CHARS

if TYPE_CHECKING:
    from chapterverse_api.service import Service

_SECONDS = {"s": 1, "min": 60, "h": 60 * 60, "day": 24 * 60 * 60}
_RATE = re.compile(r"([1-9][0-9]{0,8})\s*/\s*(s|min|h|day)")
_DAY = _SECONDS["day"]

#: Readers and programs are counted apart.
_READER, _PROGRAM = b"chapterverse/client/1", b"chapterverse/program/1"

#: Clients with a missing or invalid address share one count.
_UNKNOWN_CLIENT = b"unknown"


class GuardedRoute(APIRoute):
    """A route whose body is read by `read_body` instead of by FastAPI."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def check_then_handle(request: Request) -> Response:
            if self.body_field is not None:
                request = _ParsedRequest(request, await read_body(request))
            return await handle(request)

        return check_then_handle


class _ParsedRequest(Request):
    """A request with its body read and parsed."""

    def __init__(self, request: Request, raw: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._raw = raw
        self._value = parse_body(raw)

    async def body(self) -> bytes:
        return self._raw

    async def json(self) -> Any:
        return self._value


async def read_body(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """Return the body of a JSON request.

    Raises:
        Rejection: 415 for another content type or an encoded body, 413 over `limit` bytes.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise Rejection(415, "not_json", "Send the body as plain application/json.")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and (len(declared) > 9 or int(declared) > limit):
        raise _too_large(limit)
    raw = bytearray()
    # Count while reading, because a chunked body declares no length and a client may lie.
    async for piece in request.stream():
        raw += piece
        if len(raw) > limit:
            raise _too_large(limit)
    return bytes(raw)


def parse_body(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in `raw`.

    Raises:
        Rejection: 400 for anything but strict JSON in UTF-8, 422 for a value that is no object.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise _malformed_error("The body is not valid UTF-8.") from None
    try:
        check_depth(text, MAX_BODY_LEVELS)
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except NestedTooDeep:
        raise _malformed_error(f"The body is nested deeper than {MAX_BODY_LEVELS} levels.") from None
    except json.JSONDecodeError:
        raise _malformed_error("The body is not valid JSON.") from None
    _check_strings(value)
    if not isinstance(value, dict):
        raise Rejection(422, "out_of_contract", "The body must be a JSON object.")
    return value


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS or int(digits) not in INTEGERS:
        raise _malformed_error("The body holds a number that is too large.")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > MAX_NUMBER_CHARS or float(digits) in (float("inf"), float("-inf")):
        raise _malformed_error("The body holds a number that is too large.")
    return float(digits)


def _constant(_: str) -> NoReturn:
    raise _malformed_error("The body holds NaN or Infinity, which JSON does not have.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _malformed_error("The body holds an object with the same key twice.")
    return value


def _check_strings(value: object) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise _malformed_error("The body holds a NUL character.")
        if SURROGATE.search(value):
            raise _malformed_error("The body holds half of a surrogate pair.")
    elif isinstance(value, list | dict):
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_strings(part)


def _malformed_error(message: str) -> Rejection:
    return Rejection(400, "malformed", message)


def _too_large(limit: int) -> Rejection:
    return Rejection(413, "too_large", f"The body is over {limit // 1024} KB.")


class RateLimit:
    """Rejects clients that ask too often. Thread-safe.

    Args:
        get_service: returns the service; called only if the signing key is among its secrets.
        programs: whether it counts calls of programs by `mcp_rates`, apart from readers' questions and without work.

    Raises:
        ConfigurationError: `settings.rates` or `settings.mcp_rates` is invalid.
    """

    def __init__(
        self,
        settings: Settings,
        get_service: Callable[[], Service],
        *,
        programs: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._settings = settings
        self._get_service = get_service
        self._clock = clock
        self._kind = _PROGRAM if programs else _READER
        self._windows = parse_rates(settings.rates)
        # Who limits in front of the service does so for programs too.
        if programs and self._windows:
            self._windows = parse_rates(settings.mcp_rates, "CHAPTERVERSE_MCP_RATES")
        works = settings.proof_of_work and not programs
        self._work = load_part("proof_of_work")(settings.site, self._windows) if works else None
        self._random = secrets.token_bytes(32)
        # The counters of this process can't fail.
        self._counting: Callable[[], AbstractContextManager[None]] = nullcontext
        if settings.limiter != "memory":
            self._counting = load_part("circuit_breaker")("limiter", failures=(LimiterFault,)).calling
        self._lock = Lock()
        self._opened: Limiter | None = None

    def check(self, scope: Scope) -> None:
        """Count a request. Blocks.

        Raises:
            Rejection: 429 if the client asks too often, or must first do some work.
            ConfigurationError: there is no such limiter, or the secrets can't be read.
        """
        source = client_network(scope)
        if not self._windows or source is None:
            return
        now, salt = self._clock(), self._salt()
        client = client_key(source, salt, now, self._kind)
        solution = Headers(scope=scope).get(self._work.header, "") if self._work else ""
        wait = self._admit(client, salt, solution, now)
        if wait is not None:
            raise Rejection(
                429,
                "too_many_requests",
                "That is more than one reader may ask in so short a time: wait, and ask again.",
                retryable=True,
                retry_after=max(1, math.ceil(wait)),
            )

    def _salt(self) -> bytes:
        keys = self._settings.signing_key
        if not keys and self._settings.secrets_arn:
            keys = self._get_service().settings.signing_key
        newest = next(filter(None, map(str.strip, keys.split(","))), "")
        return newest.encode(errors="surrogateescape") or self._random

    def _admit(self, client: str, salt: bytes, solution: str, now: float) -> float | None:
        """Return the seconds to wait; None if the request is admitted, as it is if counting fails."""
        try:
            with self._counting():
                limiter = self._limiter()
                if self._work:
                    self._work.check(limiter, salt, client, solution, now)
                return limiter.admit(client, self._windows, now)
        except LimiterFault as error:
            log.event("error", code="limiter_unavailable", message=str(error))
        except NotAsked:
            pass
        return None

    def _limiter(self) -> Limiter:
        with self._lock:
            if self._opened is None:
                self._opened = open_offer("limiter", self._settings)
            return self._opened


def check_rate(request: Request, *, program: bool = False) -> None:
    """Count a reader's question or a program's call, or reject it; see `RateLimit.check`."""
    rates: RateLimit = request.app.state.program_rates if program else request.app.state.rates
    rates.check(request.scope)


def parse_rates(rates: str, variable: str = "CHAPTERVERSE_RATES") -> tuple[RateWindow, ...]:
    """Return the windows of a setting such as "10/min,60/h,200/day", none for "off".

    Raises:
        ConfigurationError: it is invalid, or has a unit twice.
    """
    if rates.strip().lower() == "off":
        return ()
    matches = [_RATE.fullmatch(rate.strip().lower()) for rate in rates.split(",")]
    limits = {_SECONDS[match[2]]: int(match[1]) for match in matches if match}
    if len(limits) < len(matches):
        raise ConfigurationError(
            f"{variable} is no list of limits: write it as 10/min,60/h,200/day, each of s, min, h and day at "
            "most once, or write off."
        )
    return tuple(RateWindow(limit, seconds) for seconds, limit in sorted(limits.items()))


def client_network(scope: Scope) -> bytes | None:
    """Return the network of a request's sender, packed; None for this machine itself, which is not limited.

    A peer on this machine is the developer (`chapterverse serve`, `mkdocs serve`), or a proxy, behind which all readers
    would share one limit. If the server trusts its proxy, as uvicorn does on the same machine, it replaces the proxy's
    address by the reader's, who is then limited. A Lambda event never comes from this machine.
    """
    source = _source(scope)
    address = parse_ip(source) if isinstance(source, str) else None
    if address is None:
        return _UNKNOWN_CLIENT
    if scope.get("aws.event") is None and address.is_loopback:
        return None
    # A household may use all IPv6 addresses of a /64 (RFC 6177). An IPv4 address has four bytes.
    return address.packed[:8]


def client_key(source: bytes, salt: bytes, now: float, kind: bytes = _READER) -> str:
    """Return the key under which a source is counted on the day (UTC) of `now`."""
    message = kind + int(now // _DAY).to_bytes(8, "big", signed=True) + source
    return hmac.digest(salt, message, "sha256").hex()[:32]


def _source(scope: Scope) -> object:
    """Return the address of the peer, or that in an event of a Function URL or API Gateway, format 2.0 or 1.0."""
    event = scope.get("aws.event")
    if event is None:
        client = scope.get("client")
        return client[0] if client else None
    context = event.get("requestContext") if isinstance(event, Mapping) else None
    callers = (context.get(name) if isinstance(context, Mapping) else None for name in ("http", "identity"))
    return next((caller.get("sourceIp") for caller in callers if isinstance(caller, Mapping)), None)
