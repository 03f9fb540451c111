"""The JSON client. It retries requests that are safe to retry, and none that could be billed twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from chapterverse.errors import ConfigurationError, note_retry
from chapterverse.ext.net.address import Address
from chapterverse.ext.net.connections import Abort, Connections, Exchange, Request, translating_errors
from chapterverse.ext.net.messages import asked_pause, encode_body, is_header_safe, lower_headers, parse_reply
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.ext.net.stream import Closing, Stream, read_reply

#: Seconds to reach the server.
CONNECT_SECONDS = 3.0
#: Seconds for one request: every try, the pauses between them and the reply.
_REQUEST_SECONDS = 10.0

#: Pauses of at most a second, because a reader is waiting.
_RETRY = RetryPolicy(total_seconds=1.0, first_pause=0.25, max_pause=0.25, spread=(1.0, 1.0))

_RETRIED_STATUSES = {429, 500, 502, 503, 504}

#: Statuses of requests that a service has not carried out and does not bill. A timeout (408, 499), a failure further in
#: (424) and other statuses from 500 may come after a model has done its work; 503 says that none was begun.
_UNBILLED_STATUSES = (set(range(400, 500)) - {408, 424, 499}) | {503}


def is_unbilled(status: int) -> bool:
    """Return whether the status means that the request was rejected before it cost anything."""
    return status in _UNBILLED_STATUSES


@dataclass(frozen=True, slots=True)
class Reply:
    """A server's whole answer.

    Attributes:
        headers: the headers by their names in lower case.
        raw: the body.
        body: the same, parsed; None if it is no JSON.
    """

    status: int
    headers: Mapping[str, str]
    raw: bytes = field(repr=False)
    body: Any

    @classmethod
    def read(cls, exchange: Exchange) -> Reply:
        """Read a response to its end, and release its connection."""
        raw = read_reply(exchange)
        exchange.release()
        return cls(exchange.response.status, lower_headers(exchange.response), raw, parse_reply(raw))

    @property
    def pause(self) -> float | None:
        """Seconds that the server asks clients to wait; None if it doesn't state any."""
        return asked_pause(self.headers)


#: The result of a request: a whole answer, or a stream.
Result = TypeVar("Result", Reply, Stream)


class JsonClient:
    """Sends JSON to one server. Every request must be one that may be sent twice, unless the client is `billed`."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        connect_seconds: float = CONNECT_SECONDS,
        total_seconds: float = _REQUEST_SECONDS,
        tries: int = 2,
        billed: bool = False,
    ) -> None:
        """Prepare, without connecting.

        Args:
            tries: the most times that a request is sent if it is answered with 429 or 5xx.
            billed: whether each request costs money. Then it is sent again only if the first is known to have cost
                nothing, so that no request can cost more than one price.

        Raises:
            ConfigurationError: `base_url` is no http or https address, or a header holds a forbidden character.
        """
        address = Address.parse(base_url)
        for name, value in headers.items():
            if not is_header_safe(value):
                raise ConfigurationError(f"The header {name} for {address.host} holds characters that no header has.")
        self._host, self._headers = address.host, dict(headers)
        self._total_seconds = total_seconds
        self._retry = replace(_RETRY, tries=tries)
        self._billed = billed
        self._retried_statuses = (
            {status for status in _RETRIED_STATUSES if is_unbilled(status)} if billed else _RETRIED_STATUSES
        )
        self._connections = Connections(address, connect_seconds)

    def post(
        self, path: str, body: Mapping[str, Any], *, seconds: float | None = None, closing: Closing = nullcontext
    ) -> Reply:
        """Return the reply to a POST. Otherwise as `send`."""
        return self.send("POST", path, body, seconds=seconds, closing=closing)

    def send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
        closing: Closing = nullcontext,
    ) -> Reply:
        """Return the reply. 429 and 5xx (of a billed client 503) are tried again after a short pause.

        Args:
            path: the path below the base URL.
            body: the document that is sent as JSON; None for none.
            seconds: the time for all of it; None for the client's own.
            closing: registers a function that ends all waiting at once, from any thread; see `Deadline.closing`.

        Raises:
            ProviderError: no complete reply came within the time (worth another try later), it was too large, or the
                request was ended.
        """
        request = self._request(method, path, body, self._total_seconds if seconds is None else seconds)
        with closing(request.abort.trigger):
            return self._send(request, Reply.read)

    @contextmanager
    def stream(
        self,
        path: str,
        body: Mapping[str, Any],
        *,
        seconds: float,
        closing: Closing,
        accept: str = "text/event-stream",
    ) -> Iterator[Stream]:
        """Send `body` and yield the stream that answers it. Otherwise as `send`, until the stream begins.

        Args:
            seconds: the time for all of it, with every read.
            accept: the type of the reply that is asked for.

        Raises:
            ProviderError: as of `send`; `Stream.events` raises the same.
        """
        request = self._request("POST", path, body, seconds, accept=accept)
        with closing(request.abort.trigger):
            stream = self._send(request, Stream)
            try:
                yield stream
            except BaseException:
                stream.abandon()
                raise
            stream.finish()

    def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None, seconds: float, accept: str = "application/json"
    ) -> Request:
        data = None if body is None else encode_body(body)
        headers = {"Content-Type": "application/json", "Accept": accept, **self._headers}
        return Request(method, path, time.monotonic() + seconds, Abort(), data, headers, once=self._billed)

    def _send(self, request: Request, use: Callable[[Exchange], Result]) -> Result:
        failures = 0
        while True:
            reply = self._connections.send(request, use)
            failures += 1
            pause = self._retry.pause(failures, 0.0, asked_pause(reply.headers))
            if reply.status not in self._retried_statuses or pause is None or pause > request.seconds_left:
                return reply
            # A request that was rejected unbilled counts as never sent.
            request.abort.is_sent = not is_unbilled(reply.status)
            note_retry()
            with translating_errors(self._host, request):
                request.abort.wait(pause)
