"""AWS services over plain HTTPS, signed with the standard library. No SDK is loaded on the query path.

To make a boto3 client costs 150 ms and 30 MB, and the query path needs only a few requests of S3, DynamoDB, Secrets
Manager and Parameter Store. Credentials and regions come from `AWS_*`. Only a profile or a role is resolved by
botocore. This module calls the services with a JSON protocol: all but S3.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from itertools import count
from typing import Any

from chapterverse.errors import ChapterVerseError, ConfigurationError, ProviderError
from chapterverse.ext.aws.environment import Credentials, endpoint, region_for, title
from chapterverse.ext.aws.signing import ApiCall, CredentialScope, query_string, sign
from chapterverse.ext.net.address import Address
from chapterverse.ext.net.client import CONNECT_SECONDS, Reply, Result
from chapterverse.ext.net.connections import Abort, Connections, Exchange, Request
from chapterverse.ext.net.messages import encode_body
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.ext.net.stream import Stream

#: Versions of the JSON protocol.
_VERSIONS = {"dynamodb": "1.0", "secretsmanager": "1.1", "ssm": "1.1"}

_CODE = re.compile(r"[A-Za-z0-9_.]{1,80}")

_BUSY = frozenset(
    "ProvisionedThroughputExceededException RequestLimitExceeded ThrottledException Throttling ThrottlingException "
    "TooManyRequestsException".split()
)
_EXPIRED = {"ExpiredToken", "ExpiredTokenException"}
_BAD_KEYS = {"InvalidClientTokenId", "UnrecognizedClientException", "MissingAuthenticationTokenException"}
_DENIED = {"AccessDeniedException", "AccessDenied"}
_MISSING = {"ResourceNotFoundException", "ParameterNotFound"}
_CLOCK = {"RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"}
#: Codes of a signature that is right except for its time, and not made by a wrong key.
_BY_CLOCK = re.compile(r"Signature (expired|not yet current)")
_SIGNATURES = {"InvalidSignatureException", "SignatureDoesNotMatch", "IncompleteSignatureException"}
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


class AwsFault(ChapterVerseError):
    """The service rejected the request, failed or could not be reached.

    Attributes:
        code: the service's name of the error, such as "ConditionalCheckFailedException"; empty without one.
        body: the parsed answer.
    """

    def __init__(self, message: str, *, code: str = "", body: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.body = body or {}


class AwsService:
    """A client of one service in one region. It connects at the first call. Safe to share between threads.

    Args:
        service: "dynamodb", "secretsmanager" or "ssm".
        region: the region; empty for that of AWS_REGION or AWS_DEFAULT_REGION.
        seconds: the time for one call with its tries.

    Raises:
        ConfigurationError: no region is named, or the address of the service is malformed.
    """

    def __init__(self, service: str, *, region: str = "", seconds: float = 5.0) -> None:
        self._service = service
        self._seconds = seconds
        place = region_for(service, region)
        # A connection that was closed while the process was frozen must leave time for another one.
        self._client = Client(service, place, endpoint(service, place), _code, stall=seconds / 2)

    def call(self, target: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send one operation, such as "DynamoDB_20120810.UpdateItem", and return its reply.

        If no answer comes it is sent again, so it may be carried out twice.

        Raises:
            AwsFault: the service rejected it, failed or could not be reached.
        """
        headers = {"Content-Type": f"application/x-amz-json-{_VERSIONS[self._service]}", "X-Amz-Target": target}
        try:
            answer = self._client.send(ApiCall("POST", headers=headers, body=encode_body(body)), self._seconds)
        except ConfigurationError as error:
            raise AwsFault(str(error)) from None
        except ProviderError:
            raise AwsFault(
                f"{title(self._service)} can't be reached, or did not answer in time: check the network, AWS_REGION "
                "and AWS_ENDPOINT_URL."
            ) from None
        fields = _fields(answer)
        if answer.status == 200 and isinstance(answer.body, dict):
            return fields
        code = _code(answer)
        operation = target.rpartition(".")[2]
        meaning = _meaning(code, answer.status, str(fields.get("message") or fields.get("Message")), operation)
        raise AwsFault(f"{title(self._service)} {meaning}.", code=code, body=fields)


def _fields(answer: Reply | Stream) -> dict[str, Any]:
    return answer.body if isinstance(answer.body, dict) else {}


def _code(answer: Reply | Stream) -> str:
    """Return the service's code of an error, without its namespace."""
    fields = _fields(answer)
    name = fields.get("__type") or fields.get("code") or answer.headers.get("x-amzn-errortype", "")
    code = str(name).partition(":")[0].rpartition("#")[2]
    return code if _CODE.fullmatch(code) else ""


def _meaning(code: str, status: int, message: str, operation: str) -> str:
    # The service's own message is not shown, because it may quote the request, and our messages are logged.
    if code in _CLOCK or (code in _SIGNATURES and _BY_CLOCK.search(message)):
        return "refuses requests by a clock that is wrong by minutes: set the clock of this machine"
    if code in _EXPIRED:
        return "refused the AWS credentials as expired: renew them"
    if code in _BAD_KEYS or code in _SIGNATURES:
        return "refused the AWS credentials: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if code in _DENIED:
        return f"denies access: allow these credentials the action {operation}"
    if code in _MISSING:
        return "has nothing by the name that was asked for: check that name, and the region"
    if code in _BUSY or status == 429:
        return "is too busy to answer, also after retries: try again later"
    if status >= 500:
        return f"failed with status {status}, also after retries: try again later"
    if status == 200:
        return "answered with something that is no reply: check AWS_ENDPOINT_URL"
    return f"refused the action {operation} ({code or f'status {status}'})"


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
