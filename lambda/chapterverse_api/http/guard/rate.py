"""Rate limit per client, counted before anything is done for the request.

A client is an address that the platform saw itself: on Lambda that of the event, elsewhere that of the connection. What
a request says of its own origin, in X-Forwarded-For or any other header, is never read, as everybody may write it. What
is counted is a keyed hash of that address and the day, so that neither the counters nor the log hold an address, and
nobody can tell that two days' clients are one. Without `Settings.signing_key` the key is random and the process's own:
several processes then count apart, whatever they share.
"""

from __future__ import annotations

import hmac
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from threading import Lock
from typing import Any

from fastapi import Request
from starlette.datastructures import Headers
from starlette.types import Scope

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.settings import Settings
from chapterverse_api.circuit_breaker import CircuitBreaker, CircuitOpen
from chapterverse_api.http.routes import Service
from chapterverse_api.limits import Limiter, LimiterFault, RateWindow, open_limiter, proof_of_work
from chapterverse_api.limits.proof_of_work import ProofOfWork
from chapterverse_api.observability import log
from chapterverse_api.rejections import Rejection

_UNITS = {"s": 1, "min": 60, "h": 60 * 60, "day": 24 * 60 * 60}
_RATE = re.compile(r"([1-9][0-9]{0,8})\s*/\s*(s|min|h|day)")
_DAY = _UNITS["day"]

#: All whose address is missing or none: they share one count, and are never free of it.
_UNKNOWN = b"unknown"


class RateLimit:
    """Refuses clients that ask too often. Safe to use from several threads.

    Args:
        opening: returns the service; called only where the signing key is among the secrets that it asks for.

    Raises:
        ConfigurationError: `settings.rates` can't be read.
    """

    def __init__(
        self, settings: Settings, opening: Callable[[], Service], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings
        self._opening = opening
        self._clock = clock
        self._windows = windows_of(settings.rates)
        self._work = ProofOfWork(settings.site, self._windows) if settings.proof_of_work else None
        self._random = secrets.token_bytes(32)
        self._circuit = CircuitBreaker("limiter")
        self._lock = Lock()
        self._opened: Limiter | None = None

    def check(self, scope: Scope) -> None:
        """Count a request. Blocks.

        Raises:
            Refusal: 429, the client asks too often, or has to do some work first.
            ConfigurationError: there is no such limiter, or the secrets can't be had.
        """
        source = source_of(scope)
        if not self._windows or source is None:
            return
        now, salt = self._clock(), self._salt()
        client = client_of(source, salt, now)
        said = Headers(scope=scope).get(proof_of_work.HEADER, "") if self._work else ""
        wait = self._wait(lambda limiter: self._counted(limiter, client, salt, said, now))
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
            keys = self._opening().settings.signing_key
        newest = next(filter(None, map(str.strip, keys.split(","))), "")
        return newest.encode(errors="surrogateescape") or self._random

    def _wait(self, count: Callable[[Limiter], float | None]) -> float | None:
        # What can't be counted is admitted: it costs no more than a free answer, as money is counted too.
        try:
            with self._circuit.asking():
                return self._logging_faults(count)
        except CircuitOpen:
            return None
        except ProviderError as error:
            log.event("error", turn_id=None, code="limiter_unavailable", message=str(error))
            return None

    def _counted(self, limiter: Limiter, client: str, salt: bytes, said: str, now: float) -> float | None:
        if self._work:
            self._work.check(limiter, salt, client, said, now)
        return limiter.admit(client, self._windows, now)

    def _logging_faults(self, count: Callable[[Limiter], float | None]) -> float | None:
        limiter = self._limiter()
        try:
            return count(limiter)
        except LimiterFault as error:
            # The circuit knows failures by this name.
            raise ProviderError(str(error)) from error

    def _limiter(self) -> Limiter:
        with self._lock:
            if self._opened is None:
                self._opened = open_limiter(self._settings)
            return self._opened


def check(request: Request) -> None:
    """Count a request of a route, or refuse it; see `RateLimit.check`."""
    rates: RateLimit = request.app.state.rates
    rates.check(request.scope)


def windows_of(rates: str) -> tuple[RateWindow, ...]:
    """Return the windows that "10/min,60/h,200/day" spells; none for "off".

    Raises:
        ConfigurationError: it spells none, or a unit twice.
    """
    if rates.strip().lower() == "off":
        return ()
    found = [_RATE.fullmatch(rate.strip().lower()) for rate in rates.split(",")]
    limits = {_UNITS[match[2]]: int(match[1]) for match in found if match}
    if len(limits) < len(found):
        raise ConfigurationError(
            "CHAPTERVERSE_RATES is no list of limits: write it as 10/min,60/h,200/day, each of s, min, h and day at "
            "most once, or write off."
        )
    return tuple(RateWindow(limit, seconds) for seconds, limit in sorted(limits.items()))


def source_of(scope: Scope) -> bytes | None:
    """Return the network that a request came from, packed; None for this machine itself, which is not limited.

    A peer on this machine is its developer, `chapterverse serve` or `mkdocs serve`; or it is a proxy, behind which all
    readers would look like one. A server that trusts its proxy, as uvicorn trusts one on the same machine, names the
    reader in place of the proxy, and then the reader is limited. An event of Lambda never came from this machine.
    """
    event = scope.get("aws.event")
    address = _address(_peer(scope) if event is None else _event_source(event))
    if address is None:
        return _UNKNOWN
    if event is None and address.is_loopback:
        return None
    # One household has as many addresses of IPv6 as it likes, all of them in a /64 (RFC 6177).
    return address.packed if isinstance(address, IPv4Address) else address.packed[:8]


def client_of(source: bytes, salt: bytes, now: float) -> str:
    """Return the name under which a source is counted on the day (UTC) of `now`."""
    said = b"chapterverse/client/1" + int(now // _DAY).to_bytes(8, "big", signed=True) + source
    return hmac.digest(salt, said, "sha256").hex()[:32]


def _peer(scope: Scope) -> object:
    client = scope.get("client")
    return client[0] if client else None


def _event_source(event: object) -> object:
    """Return the address in an event of a Function URL or of API Gateway, in its format 2.0 or 1.0."""
    context = event.get("requestContext") if isinstance(event, Mapping) else None
    for part in ("http", "identity"):
        said: Any = context.get(part) if isinstance(context, Mapping) else None
        if isinstance(said, Mapping):
            return said.get("sourceIp")
    return None


def _address(said: object) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(said) if isinstance(said, str) else None
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
