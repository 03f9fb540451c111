"""Sends signed requests to one AWS service. Retries failures that may pass, and corrects the clock once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from hashlib import sha256
from itertools import count
from pathlib import Path

from chapterverse.errors import ProviderError
from chapterverse.net.address import Address
from chapterverse.net.aws.credentials import Credentials
from chapterverse.net.aws.endpoints import title
from chapterverse.net.aws.signing import CredentialScope, UnsignedRequest, query_string, sign
from chapterverse.net.client import CONNECT_SECONDS, Received, Reply
from chapterverse.net.connections import Abort, Connections, Exchange, Request
from chapterverse.net.retry import RetryPolicy
from chapterverse.net.stream import Stream

#: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
_RETRY = RetryPolicy(tries=4, first=0.1, spread=(0.0, 1.0))

_FAILED = {429, 500, 502, 503, 504}
#: Codes of failures that may pass, for services that answer every error with 400.
_PASSING = {
    "InternalError", "InternalServerError", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
    "RequestTimeout", "SlowDown", "ThrottledException", "Throttling", "ThrottlingException", "TooManyRequestsException",
    "TransactionInProgressException",
}  # fmt: skip

#: Codes that a signature by a wrong clock may have; the reply to a HEAD has no body, and so no code.
_SKEWED = {
    "", "InvalidSignatureException", "RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
}  # fmt: skip
#: S3 accepts a clock that is wrong by 15 minutes, other services one that is wrong by 5.
_SKEW = timedelta(minutes=4)


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request to a service, before it is signed.

    Attributes:
        path: percent-encoded.
        body: bytes, or the path of a file.
        sha256: of the body in hex; "" if it is still to be computed.
    """

    method: str
    path: str = "/"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Path = field(default=b"", repr=False)
    sha256: str = ""

    @property
    def digest(self) -> str:
        return self.sha256 or sha256(self.body if isinstance(self.body, bytes) else self.body.read_bytes()).hexdigest()


class Client:
    """A client of one service. Safe to share between threads.

    Args:
        code: returns the service's code for an error, from its answer.
        stall: seconds without a byte after which a try has failed.
    """

    def __init__(
        self,
        service: str,
        region: str,
        address: Address,
        code: Callable[[Reply | Stream], str],
        *,
        stall: float,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self.code = code
        self._scope = CredentialScope(region, service)
        self._address = address
        self._stall = stall
        self._clock = clock
        self._credentials = Credentials(title(service))
        self._connections = Connections(address, CONNECT_SECONDS)
        self._skew = timedelta()

    def ask(self, call: ApiCall, seconds: float) -> Reply:
        """Return the answer, errors included.

        Args:
            seconds: for all of it: every try, the pauses between them and the answer.

        Raises:
            ConfigurationError: there are no credentials.
            ProviderError: no complete answer came within the time.
        """
        return self._try(call, seconds, lambda exchange, request: Reply.read(exchange, self._connections, request))

    def open(self, call: ApiCall, seconds: float) -> Stream:
        """Return the answer as a stream, which the caller has to finish or abandon; else as `ask`."""
        return self._try(call, seconds, lambda exchange, request: Stream(exchange, self._connections, request))

    def _try(self, call: ApiCall, seconds: float, use: Callable[[Exchange, Request], Received]) -> Received:
        started, retry = time.monotonic(), replace(_RETRY, seconds=seconds)
        for failed in count(1):
            try:
                answer = self._send_in_time(call, started + seconds, use)
            except ProviderError:
                pause = retry.pause(failed, time.monotonic() - started)
                if pause is None:
                    raise
            else:
                pause = retry.pause(failed, time.monotonic() - started)
                if pause is None or not self._passes(answer):
                    return answer
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _passes(self, answer: Reply | Stream) -> bool:
        return answer.status in _FAILED or (answer.status >= 400 and self.code(answer) in _PASSING)

    def _send_in_time(self, call: ApiCall, deadline: float, use: Callable[[Exchange, Request], Received]) -> Received:
        """Send a request. If the service rejects only its time, send it again by the service's clock."""
        answer = self._send(call, deadline, use)
        off = self._off(answer)
        if abs(off) < _SKEW:
            return answer
        self._skew += off
        return self._send(call, deadline, use)

    def _off(self, answer: Reply | Stream) -> timedelta:
        """Return by how much the service's clock is ahead of ours; 0 if the answer is no error about the time."""
        if answer.status not in (400, 401, 403) or self.code(answer) not in _SKEWED:
            return timedelta()
        try:
            return parsedate_to_datetime(answer.headers["date"]) - self._now()
        # A date without a zone can't be compared with one that has it.
        except (KeyError, ValueError, TypeError, OverflowError):
            return timedelta()

    def _now(self) -> datetime:
        return self._clock() + self._skew

    def _send(self, call: ApiCall, deadline: float, use: Callable[[Exchange, Request], Received]) -> Received:
        address, digest = self._address, call.digest
        query = query_string(call.query)
        unsigned = UnsignedRequest(
            call.method, address.authority, f"{address.prefix}{call.path}", call.query, call.headers, digest
        )
        headers = sign(unsigned, self._credentials.keys(), self._scope, self._now())
        path = f"{call.path}?{query}" if query else call.path
        body = call.body if call.body or call.method in ("PUT", "POST") else None
        request = Request(call.method, path, deadline, Abort(), body, headers, self._stall)
        return self._connections.send(request, lambda exchange: use(exchange, request))
