"""One AWS service that speaks JSON: DynamoDB, Secrets Manager, Parameter Store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chapterverse.errors import ChapterVerseError


class AwsFault(ChapterVerseError):
    """The service refused, failed or could not be reached.

    Attributes:
        code: the service's own name of the fault, such as "ConditionalCheckFailedException"; empty where none came.
        body: what the service said besides, parsed.
    """

    def __init__(self, message: str, *, code: str = "", body: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.body = body or {}


class AwsService:
    """A client of one service in one region. Safe to share between threads; connects at the first call."""

    @classmethod
    def open(cls, service: str, *, region: str = "", seconds: float = 5.0) -> AwsService:
        """Return the client that the environment describes; nothing is sent yet.

        Args:
            service: "dynamodb", "secretsmanager" or "ssm".
            region: in place of AWS_REGION and AWS_DEFAULT_REGION.
            seconds: for one call, its tries included.

        Raises:
            ConfigurationError: no region is named.
        """
        raise NotImplementedError

    def call(self, target: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Send one operation, such as "DynamoDB_20120810.UpdateItem", and return its reply.

        Raises:
            AwsFault: as above.
        """
        raise NotImplementedError
