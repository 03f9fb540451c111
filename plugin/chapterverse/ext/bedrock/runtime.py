"""Calls Amazon Bedrock by boto3's `bedrock-runtime` client: `InvokeModel` and `Converse`.

boto3 reads the region, credentials and addresses from `AWS_*`, including `AWS_ENDPOINT_URL`.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any

from chapterverse.errors import ConfigurationError, ProviderError, TextRejected
from chapterverse.ext.net import Closing, asked_pause, is_unbilled
from chapterverse.ext.net.connections import IDLE_SECONDS
from chapterverse.ext.net.model_errors import ServiceErrors, no_reply_error
from chapterverse.ext.net.retry import BusyError, RetryPolicy
from chapterverse.text.json_text import parse_json

#: Retries for a question: one, after a short pause, because a reader is waiting, and only if the first was not billed.
QUESTION_RETRY = RetryPolicy(tries=2, total_seconds=1.0, max_pause=0.25, once=True)

#: Seconds to wait after the end of an answer for the event with its billed tokens.
_USAGE_SECONDS = 1.0

#: A cross-region inference profile is the model's id behind a geography: "us.cohere.embed-v4:0".
_PROFILE = re.compile(r"(?P<geography>[a-z][a-z-]*\.)?(?P<model>cohere\..*)")

#: How replies of its models end, and errors that name no code. The key is that of boto3's configuration.
BEDROCK_ERRORS = ServiceErrors("Bedrock", "AWS_PROFILE", "the region")

#: Messages with what the operator can do, by the service's code of the error.
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

#: The same for `ApplyGuardrail`.
_GUARDRAIL_REASONS = {
    **_REASONS,
    "AccessDeniedException": "gave no access: allow bedrock:ApplyGuardrail on the guardrail for these credentials",
    "ResourceNotFoundException": "has no such guardrail in this region: check its id, its version and the region",
    "InternalServerException": "failed: try again later",
    "ServiceUnavailableException": "is not available now: try again later",
}

#: The same for `Converse` and inside its streams, where failures have no status of their own.
_CONVERSE_REASONS = {
    **_REASONS,
    "AccessDeniedException": (
        "gave no access: allow bedrock:InvokeModel, bedrock:InvokeModelWithResponseStream and the model for these "
        "credentials"
    ),
    "ModelErrorException": "broke off in the middle of its answer: try again later",
    "ModelStreamErrorException": "broke off in the middle of its answer: try again later",
    "InternalServerException": "failed: try again later",
    "ServiceUnavailableException": "is not available now: try again later",
}

_RETRIED_CODES = {
    "ThrottlingException", "ModelNotReadyException", "ModelTimeoutException", "ModelStreamErrorException",
    "InternalServerException", "ServiceUnavailableException",
}  # fmt: skip

_UNUSABLE = "The AWS settings can't be used: check AWS_PROFILE, AWS_ENDPOINT_URL and the files of ~/.aws."


def profile(name: str) -> tuple[str, str]:
    """Return the geography of an inference profile, "us." or the like, and its model; for a bare model "" and it."""
    match = _PROFILE.fullmatch(name)
    return (match["geography"] or "", match["model"]) if match else ("", name)


@dataclass(slots=True, eq=False)
class Runtime:
    """A client of one AWS configuration, and its errors as ours. Threads may share it.

    Attributes:
        part: the part that uses it, for messages: "embedder", "reranker", "generator" or "checker".
    """

    part: str
    _client: Any = field(repr=False)
    _last_use: float = field(default_factory=time.time, repr=False)

    @classmethod
    def open(cls, part: str, connect_seconds: float, read_seconds: float) -> Runtime:
        """Return the runtime that the environment describes. Nothing is sent yet.

        Args:
            connect_seconds: the time to reach the service.
            read_seconds: the time for one reply.

        Raises:
            ConfigurationError: boto3 is not installed, or there is no usable AWS configuration.
        """
        try:
            import boto3
            from botocore import exceptions as aws
            from botocore.config import Config
        except ImportError as error:
            raise ConfigurationError(f'The {part} bedrock needs a package: pip install "chapterverse[aws]".') from error
        # boto3's own retries would multiply with ours.
        config = Config(connect_timeout=connect_seconds, read_timeout=read_seconds, retries={"total_max_attempts": 1})
        try:
            session = boto3.session.Session()
            if session.region_name:
                return cls(part, session.client("bedrock-runtime", config=config))
        except (aws.CredentialRetrievalError, aws.PartialCredentialsError):
            raise ConfigurationError(_no_credentials(part)) from None
        except (aws.BotoCoreError, ValueError):
            raise ConfigurationError(_UNUSABLE) from None
        raise ConfigurationError(f"The {part} bedrock needs a region: set AWS_DEFAULT_REGION in the environment.")

    def invoke(self, model: str, body: Mapping[str, Any]) -> Any:
        """Send `body` to a model once and return its reply, parsed.

        Raises:
            ProviderError: there are no credentials; Bedrock could not be reached, refused, or sent no JSON.
        """
        self._wake()
        with self._translating_errors(_REASONS):
            reply = self._client.invoke_model(
                modelId=model, body=json.dumps(body), contentType="application/json", accept="application/json"
            )
            return parse_json(reply["body"].read())

    def ask(self, operation: str, request: Mapping[str, Any], seconds: float, closing: Closing) -> Any:
        """Return the reply to an operation, "converse" or "apply_guardrail". Otherwise as `events`.

        Args:
            request: parameters of boto3's method of this name.
        """

        def make(_: _Wait) -> Iterator[Any]:
            yield QUESTION_RETRY.run(lambda: self._call(operation, request))

        return next(_Wait(seconds).results(make, closing))

    def events(self, request: Mapping[str, Any], seconds: float, closing: Closing) -> Generator[Any]:
        """Send a conversation and yield the events of its stream as they come.

        The last event of the answer is `messageStop`. The event `metadata` with the billed tokens follows it, and is
        yielded if it comes within a second.

        boto3 can't be interrupted, so it waits in a thread of its own, and the caller can leave at any time. Then that
        thread's connection is shut down, which tells the service that its client has left. Before the stream has begun,
        or with a urllib3 before 2.3, that happens when the next bytes come, or after the client's time for a read.

        Args:
            request: parameters of boto3's `converse_stream`.
            seconds: the time for all of it.
            closing: registers a function that ends all waiting at once, from any thread; see `Deadline.closing`.

        Raises:
            ProviderError: as `invoke`; also if the stream broke off, took too long, or was ended.
        """

        def ask(wait: _Wait) -> Iterator[Any]:
            stream = QUESTION_RETRY.run(lambda: self._call("converse_stream", request))["stream"]
            # To close it from another thread would wait for the read that must be ended.
            wait.shut = getattr(getattr(stream, "_raw_stream", None), "shutdown", None)
            try:
                with self._translating_errors(_CONVERSE_REASONS):
                    yield from () if wait.is_over else stream
            finally:
                stream.close()

        wait = _Wait(seconds)
        try:
            for event in wait.results(ask, closing):
                yield event
                fields = event if isinstance(event, dict) else {}
                if "messageStop" in fields:
                    wait.is_complete = True
                    wait.limit_remaining_time(_USAGE_SECONDS)
                elif wait.is_complete and "metadata" in fields:
                    return
        except ProviderError:
            if not wait.is_complete:
                raise
        if not wait.is_complete:
            raise _connection_error()

    def _call(self, operation: str, request: Mapping[str, Any]) -> Any:
        self._wake()
        with self._translating_errors(_GUARDRAIL_REASONS if operation == "apply_guardrail" else _CONVERSE_REASONS):
            return getattr(self._client, operation)(**request)

    def _wake(self) -> None:
        """Close connections that were idle for long, as `net.connections` does. New ones are opened as needed."""
        now = time.time()
        if not 0 <= now - self._last_use < IDLE_SECONDS:
            self._client.close()
        self._last_use = now

    @contextmanager
    def _translating_errors(self, reasons: Mapping[str, str]) -> Iterator[None]:
        """Turn boto3's errors into ours."""
        from botocore import exceptions as aws
        from botocore.eventstream import ParserError
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError

        try:
            yield
        # boto3's errors may quote the request or an account's id, so none is kept as a cause.
        except aws.ClientError as error:
            raise _failure(error.response, reasons) from None
        except (aws.EndpointConnectionError, aws.ConnectTimeoutError, aws.ProxyConnectionError):
            failure = _connection_error()
            failure.unbilled = True
            raise failure from None
        except (aws.HTTPClientError, aws.ConnectionError, aws.IncompleteReadError, HTTPError, OSError):
            raise _connection_error() from None
        except aws.ParamValidationError:
            raise TextRejected("Bedrock refused the request as malformed.") from None
        except aws.BotoCoreError:
            raise ProviderError(_no_credentials(self.part)) from None
        except (ResponseParserError, ParserError, ValueError, RecursionError):
            raise no_reply_error("Bedrock") from None


def _no_credentials(part: str) -> str:
    return (
        f"The {part} bedrock finds no AWS credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
        "AWS_SECRET_ACCESS_KEY, or give the machine a role."
    )


class _Wait:
    """Yields the results of another thread, until the caller leaves or the time is up.

    Attributes:
        shut: ends the wait of that thread; None before there is one.
        is_complete: whether the answer is complete. That thread may read the rest then, and keep its connection.
    """

    def __init__(self, seconds: float) -> None:
        self.shut: Callable[[], object] | None = None
        self.is_complete = False
        self._end = time.monotonic() + seconds
        self._over = Event()
        # Items each in a tuple, then None or an error.
        self._results: SimpleQueue[tuple[Any] | ProviderError | None] = SimpleQueue()

    @property
    def is_over(self) -> bool:
        """Whether the caller has left an incomplete answer, so no more events are needed."""
        return self._over.is_set() and not self.is_complete

    def limit_remaining_time(self, seconds: float) -> None:
        """Limit the time for the rest to so many seconds."""
        self._end = min(self._end, time.monotonic() + seconds)

    def results(self, make: Callable[[_Wait], Iterator[Any]], closing: Closing) -> Iterator[Any]:
        """Yield the results of `make`, which runs in another thread.

        Raises:
            ProviderError: `make` raised it, the time is up, or the caller's turn ended.
        """
        if self._end <= time.monotonic():
            raise _timeout_error()
        Thread(target=self._run, args=(make,), name="bedrock", daemon=True).start()
        left = ProviderError("Nobody waits for Bedrock any more: ask again.", retryable=True)
        with closing(lambda: self._results.put(left)):
            try:
                while result := self._next():
                    yield from result
            finally:
                self._over.set()
                if self.shut and not self.is_complete:
                    with suppress(Exception):
                        self.shut()

    def _next(self) -> tuple[Any] | None:
        try:
            result = self._results.get(timeout=max(0.0, self._end - time.monotonic()))
        except Empty:
            raise _timeout_error() from None
        if isinstance(result, ProviderError):
            raise result
        return result

    def _run(self, make: Callable[[_Wait], Iterator[Any]]) -> None:
        try:
            for item in make(self):
                self._results.put((item,))
                if self.is_over:
                    break
            self._results.put(None)
        # The queue is the only way by which an error of this thread reaches the caller.
        except ProviderError as error:
            self._results.put(error)
        except Exception:
            self._results.put(_connection_error())


def _timeout_error() -> ProviderError:
    return ProviderError("Bedrock did not answer in time.", retryable=True)


def _connection_error() -> ProviderError:
    return ProviderError("Bedrock could not be reached or broke off.", retryable=True)


def _failure(response: Any, reasons: Mapping[str, str]) -> ProviderError:
    code = str(response.get("Error", {}).get("Code", ""))
    # Inside a stream, codes begin with a small letter.
    code = code[:1].upper() + code[1:]
    meta = response.get("ResponseMetadata", {})
    status = int(meta.get("HTTPStatusCode", 0))
    if code == "ValidationException" and BEDROCK_ERRORS.cause(400, response) == "too_long":
        failure = BEDROCK_ERRORS.error(400, response)
    else:
        failure = _error_of_code(code, status, reasons, meta)
    # Inside a stream there is no status, and the events before the error are billed.
    failure.unbilled = is_unbilled(status)
    return failure


def _error_of_code(code: str, status: int, reasons: Mapping[str, str], meta: Any) -> ProviderError:
    # The service's own message is not shown, because it may quote the request, and ours are printed and logged.
    message = f"Bedrock {reasons.get(code, f'failed with status {status}')}."
    if code in _RETRIED_CODES or status == 429 or status >= 500:
        return BusyError(message, pause=asked_pause(meta.get("HTTPHeaders", {})))
    return TextRejected(message) if code == "ValidationException" else ProviderError(message)
