"""Sends signed requests to one AWS service. Retries failures that may pass, and corrects the clock once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import count

from chapterverse.errors import ProviderError
from chapterverse.ext.aws.environment import Credentials, title
from chapterverse.ext.aws.signing import ApiCall, CredentialScope, query_string, sign
from chapterverse.ext.net.address import Address
from chapterverse.ext.net.client import CONNECT_SECONDS, Reply, Result
from chapterverse.ext.net.connections import Abort, Connections, Exchange, Request
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.ext.net.stream import Stream

#: https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
_RETRY = RetryPolicy(tries=4, first_pause=0.1, spread=(0.0, 1.0))

_RETRIED_STATUSES = {429, 500, 502, 503, 504}
#: Codes of errors after which a further try may succeed, for services that answer every error with 400.
_RETRIED_CODES = {
    "InternalError", "InternalServerError", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
    "RequestTimeout", "SlowDown", "ThrottledException", "Throttling", "ThrottlingException", "TooManyRequestsException",
    "TransactionInProgressException",
}  # fmt: skip

#: Codes of the error of a signature by a wrong clock. The reply to a HEAD has no body, and so no code.
_SKEW_CODES = {
    "", "InvalidSignatureException", "RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
}  # fmt: skip
#: The difference from which our clock is corrected. S3 accepts one of 15 minutes, other services one of 5.
_MIN_SKEW = timedelta(minutes=4)


class Client:
    """A client of one service. Safe to share between threads.

    Args:
        code: returns the code of an error from its answer.
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

    def send(self, call: ApiCall, seconds: float) -> Reply:
        """Return the answer, which may be an error.

        Args:
            seconds: the time for all of it: every try, the pauses between them and the answer.

        Raises:
            ConfigurationError: there are no credentials.
            ProviderError: no complete answer came within the time.
        """
        return self._try(call, seconds, Reply.read)

    def open(self, call: ApiCall, seconds: float) -> Stream:
        """Return the answer as a stream, which the caller must finish or abandon. Otherwise as `send`."""
        return self._try(call, seconds, Stream)

    def _try(self, call: ApiCall, seconds: float, use: Callable[[Exchange], Result]) -> Result:
        started, retry = time.monotonic(), replace(_RETRY, total_seconds=seconds)
        for failures in count(1):
            try:
                answer = self._send_in_time(call, started + seconds, use)
            except ProviderError:
                pause = retry.pause(failures, time.monotonic() - started)
                if pause is None:
                    raise
            else:
                pause = retry.pause(failures, time.monotonic() - started)
                if pause is None or not self._may_pass(answer):
                    return answer
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _may_pass(self, answer: Reply | Stream) -> bool:
        return answer.status in _RETRIED_STATUSES or (answer.status >= 400 and self.code(answer) in _RETRIED_CODES)

    def _send_in_time(self, call: ApiCall, deadline: float, use: Callable[[Exchange], Result]) -> Result:
        """Send a request. If the service rejects its time, send it again with the service's."""
        answer = self._send(call, deadline, use)
        difference = self._clock_difference(answer)
        if abs(difference) < _MIN_SKEW:
            return answer
        self._skew += difference
        return self._send(call, deadline, use)

    def _clock_difference(self, answer: Reply | Stream) -> timedelta:
        """Return how far the service's clock is ahead of ours; 0 if the answer is no error about the time."""
        if answer.status not in (400, 401, 403) or self.code(answer) not in _SKEW_CODES:
            return timedelta()
        try:
            return parsedate_to_datetime(answer.headers["date"]) - self._now()
        # A date without a zone can't be compared with one with a zone.
        except (KeyError, ValueError, TypeError, OverflowError):
            return timedelta()

    def _now(self) -> datetime:
        return self._clock() + self._skew

    def _send(self, call: ApiCall, deadline: float, use: Callable[[Exchange], Result]) -> Result:
        query, prefix = query_string(call.query), self._address.prefix
        unsigned = replace(call, path=f"{prefix}{call.path}")
        headers = sign(unsigned, self._address.authority, self._credentials.keys(), self._scope, self._now())
        path = f"{call.path}?{query}" if query else call.path
        body = call.body if call.body or call.method in ("PUT", "POST") else None
        request = Request(call.method, path, deadline, Abort(), body, headers, self._stall)
        return self._connections.send(request, use)
