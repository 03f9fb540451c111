"""AWS services over plain HTTPS, signed with the standard library. No SDK is loaded on the query path.

To make a boto3 client costs 150 ms and 30 MB, and the query path needs only a few requests of S3, DynamoDB, Secrets
Manager and Parameter Store. Credentials and regions come from `AWS_*`. Only a profile or a role is resolved by
botocore. This module calls the services with a JSON protocol: all but S3.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from chapterverse.errors import ChapterVerseError, ConfigurationError, ProviderError
from chapterverse.ext.aws.client import Client
from chapterverse.ext.aws.environment import endpoint, region_for, title
from chapterverse.ext.aws.signing import ApiCall
from chapterverse.ext.net.client import Reply
from chapterverse.ext.net.messages import encode_body
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
    """A client of one service in one region. It connects at the first call. Safe to share between threads."""

    def __init__(self, service: str, client: Client, seconds: float) -> None:
        self._service = service
        self._client = client
        self._seconds = seconds

    @classmethod
    def open(cls, service: str, *, region: str = "", seconds: float = 5.0) -> AwsService:
        """Return the client that the environment describes. Nothing is sent yet.

        Args:
            service: "dynamodb", "secretsmanager" or "ssm".
            region: the region; empty for that of AWS_REGION or AWS_DEFAULT_REGION.
            seconds: the time for one call with its tries.

        Raises:
            ConfigurationError: no region is named, or the address of the service is malformed.
        """
        place = region_for(service, region)
        # A connection that was closed while the process was frozen must leave time for another one.
        client = Client(service, place, endpoint(service, place), _code, stall=seconds / 2)
        return cls(service, client, seconds)

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
