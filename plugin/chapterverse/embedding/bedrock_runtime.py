"""Calling a model on Amazon Bedrock: boto3's `bedrock-runtime` client and `InvokeModel`, for whatever we ask there.

Region, credentials and addresses are those of `AWS_*` as boto3 reads them, `AWS_ENDPOINT_URL` included.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from chapterverse.embedding.patience import BusyError, Patience
from chapterverse.embedding.slices import RefusedError
from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.rest import asked_pause

#: How a question is tried: twice, with a short wait between, as a reader is waiting too.
QUESTION = Patience(tries=2, seconds=1.0, longest=0.25)

#: A cross-region inference profile is the model's id behind a geography: "us.cohere.embed-v4:0".
_PROFILE = re.compile(r"(?P<geography>[a-z][a-z-]*\.)?(?P<model>cohere\..*)")

#: What a refusal means for whoever set it up, by the name that the service gives it.
_REASONS = {
    "AccessDeniedException": "gave no access: allow bedrock:InvokeModel and the model for these credentials",
    "ResourceNotFoundException": "has no such model in this region, or no longer: check its name and the region",
    "ValidationException": "refused the request as malformed",
    "ServiceQuotaExceededException": "has a quota that is used up: ask AWS for more, or try again later",
    "ThrottlingException": "has a rate limit that was reached: try again later",
    "ModelNotReadyException": "is still loading the model: try again later",
    "ModelTimeoutException": "took too long: try again later",
    "ExpiredTokenException": "refused the credentials as expired: renew them",
    "UnrecognizedClientException": "refused the credentials: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "InvalidSignatureException": "refused the credentials: check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
}

_PASSING = {"ThrottlingException", "ModelNotReadyException", "ModelTimeoutException"}

_UNUSABLE = "The AWS settings can't be used: check AWS_PROFILE, AWS_ENDPOINT_URL and the files of ~/.aws."


def profile(name: str) -> tuple[str, str]:
    """Return the geography of an inference profile, "us." or the like, and its model; for a bare model "" and it."""
    named = _PROFILE.fullmatch(name)
    return (named["geography"] or "", named["model"]) if named else ("", name)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Clients of one AWS configuration, and what their failures mean.

    Attributes:
        part: who asks, for the messages: "embedder" or "reranker".
    """

    part: str
    session: Any = field(repr=False)

    @classmethod
    def open(cls, part: str) -> Runtime:
        """Return the runtime that the environment describes; nothing is sent yet.

        Raises:
            ConfigurationError: boto3 is not installed, or there is no usable AWS configuration.
        """
        try:
            import boto3
            from botocore.exceptions import BotoCoreError
        except ImportError as error:
            raise ConfigurationError(f'The {part} bedrock needs a package: pip install "chapterverse[aws]".') from error
        try:
            session = boto3.session.Session()
            region = session.region_name
        except BotoCoreError:
            raise ConfigurationError(_UNUSABLE) from None
        if not region:
            raise ConfigurationError(f"The {part} bedrock needs a region: set AWS_DEFAULT_REGION in the environment.")
        return cls(part, session)

    def client(self, connect_seconds: float, read_seconds: float) -> Any:
        """Return a client that waits so long to reach the service, and for one reply. Threads may share it.

        Raises:
            ConfigurationError: the credentials or the address can't be used.
        """
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, CredentialRetrievalError, PartialCredentialsError

        # boto3's own retries would multiply with ours.
        config = Config(connect_timeout=connect_seconds, read_timeout=read_seconds, retries={"total_max_attempts": 1})
        try:
            return self.session.client("bedrock-runtime", config=config)
        except (CredentialRetrievalError, PartialCredentialsError):
            raise ConfigurationError(self._no_credentials) from None
        except (BotoCoreError, ValueError):
            raise ConfigurationError(_UNUSABLE) from None

    def invoke(self, client: Any, model: str, body: Mapping[str, Any]) -> Any:
        """Send `body` to a model once and return its reply, parsed.

        Raises:
            ProviderError: there are no credentials; Bedrock could not be reached, refused, or sent no JSON.
        """
        from botocore import exceptions as aws
        from botocore.parsers import ResponseParserError

        try:
            reply = client.invoke_model(
                modelId=model, body=json.dumps(body), contentType="application/json", accept="application/json"
            )
            return json.loads(reply["body"].read())
        # boto3's own errors may quote what was sent or an account's id, so none is left as a cause.
        except aws.ClientError as error:
            raise _failure(error.response) from None
        except (aws.HTTPClientError, aws.ConnectionError, aws.IncompleteReadError, OSError):
            raise ProviderError("Bedrock could not be reached or broke off.", retryable=True) from None
        except aws.BotoCoreError:
            raise ProviderError(self._no_credentials) from None
        except (ResponseParserError, ValueError, RecursionError):
            raise ProviderError("Bedrock answered with something that is no reply.", retryable=True) from None

    @property
    def _no_credentials(self) -> str:
        return (
            f"The {self.part} bedrock finds no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, or give the machine a role."
        )


def _failure(response: Any) -> ProviderError:
    # The service's own message is left out: it may quote what was sent, and ours are printed and logged.
    code = str(response.get("Error", {}).get("Code", ""))
    meta = response.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    message = f"Bedrock {_REASONS.get(code, f'failed with status {status}')}."
    if code in _PASSING or status == 429 or status >= 500:
        return BusyError(message, pause=asked_pause(meta.get("HTTPHeaders", {})))
    return RefusedError(message) if code == "ValidationException" else ProviderError(message)
