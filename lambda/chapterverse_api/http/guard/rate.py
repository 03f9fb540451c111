"""Limits requests per client, before a request costs anything.

A client is an address that the platform itself saw: on Lambda from the event, elsewhere from the connection. Headers
such as X-Forwarded-For are never read, because anybody can write them. Counters hold a keyed hash of address and day,
so neither they nor the log contain addresses, and clients of two days can't be linked. Without `Settings.signing_key`
the key is random and private to the process, so several processes count separately.
"""

from __future__ import annotations

import hmac
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from threading import Lock
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import Scope

from chapterverse.errors import ConfigurationError, NotAsked
from chapterverse.extensions import load_part, open_offer
from chapterverse.settings import Settings
from chapterverse_api.http.guard.origin import parse_ip
from chapterverse_api.limits.protocols import Limiter, LimiterFault, RateWindow
from chapterverse_api.observability import log
from chapterverse_api.rejections import Rejection

if TYPE_CHECKING:
    from chapterverse_api.service import Service

_SECONDS = {"s": 1, "min": 60, "h": 60 * 60, "day": 24 * 60 * 60}
_RATE = re.compile(r"([1-9][0-9]{0,8})\s*/\s*(s|min|h|day)")
_DAY = _SECONDS["day"]

#: Readers and programs are counted apart.
_READER, _PROGRAM = b"chapterverse/client/1", b"chapterverse/program/1"

#: Clients with a missing or invalid address share one count.
_UNKNOWN_CLIENT = b"unknown"


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


def check(request: Request, *, program: bool = False) -> None:
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
