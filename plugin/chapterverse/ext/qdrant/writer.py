"""Writes to the server by the official client. Retries are spaced and bounded, and each error is one sentence."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, TypeVar

from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexFault
from chapterverse.ext.qdrant.address import QdrantAddress
from chapterverse.ext.qdrant.filters import Where
from chapterverse.ext.qdrant.server import RETRIED_STATUSES, QdrantRetry, qdrant_error
from chapterverse.net.client import CONNECT_SECONDS

if TYPE_CHECKING:
    from qdrant_client import QdrantClient
    from qdrant_client.http.models import CollectionInfo

_T = TypeVar("_T")

#: The first server that weighs words by the points of a filter (`params.idf.corpus`, qdrant/qdrant#9661).
MIN_VERSION = (1, 19)


class QdrantWriter:
    """The calls of the client that a publisher needs. Each may be sent twice.

    Attributes:
        fence: returns the context manager around each try of a write without conditions. It raises if the lease may
            expire before the write arrives.

    Raises (all methods):
        IndexMissing: the collection is not there.
        IndexFault: the server can't be reached, or failed for longer than `retry` lasts.
        ConfigurationError: it refused the key.
    """

    def __init__(self, place: QdrantAddress, retry: QdrantRetry) -> None:
        """Prepare, without connecting. Raises `ConfigurationError` if the client is not installed."""
        self.place = place
        self.fence: Callable[[], AbstractContextManager[None]] = nullcontext
        self._retry = retry
        self._client = _client(place, retry)

    @property
    def max_try_seconds(self) -> float:
        """The most seconds that one try may take."""
        return self._retry.try_seconds + CONNECT_SECONDS

    def stop_retrying(self) -> None:
        """Try each request only once from now on. The next publication does what fails."""
        self._retry = replace(self._retry, tries=1)

    def check_version(self) -> None:
        """Raise `IndexFault` if the server is too old to weigh words by the points of a filter."""
        version = self._try(lambda client: client.info().version)
        number = re.match(r"(\d+)\.(\d+)", version)
        if number and (int(number[1]), int(number[2])) < MIN_VERSION:
            minimum = ".".join(map(str, MIN_VERSION))
            raise IndexFault(
                f"{self.place.host} runs Qdrant {number[0]}, which is too old: upgrade it to {minimum} or later."
            )

    def exists(self, collection: str) -> bool:
        return self._try(lambda client: client.collection_exists(collection))

    def create(self, collection: str, config: Mapping[str, Any]) -> None:
        """Create a collection, unless another publisher has created it meanwhile."""
        from qdrant_client.http import models

        model = models.CreateCollection.model_validate(config)
        try:
            self._try(lambda client: client.http.collections_api.create_collection(collection, create_collection=model))
        except IndexFault:
            if not self.exists(collection):
                raise

    def drop(self, collection: str) -> None:
        self._try(lambda client: client.delete_collection(collection), fenced=True)

    def describe(self, collection: str) -> CollectionInfo:
        return self._try(lambda client: client.get_collection(collection), collection)

    def index(self, collection: str, field: str, schema: Mapping[str, Any]) -> None:
        from qdrant_client.http import models

        model = models.CreateFieldIndex.model_validate({"field_name": field, "field_schema": schema})
        self._try(lambda client: client.create_payload_index(collection, field, model.field_schema), collection)

    def upsert(self, collection: str, points: Sequence[Mapping[str, Any]], *, only_new: bool = False) -> None:
        from qdrant_client.http import models

        structs = [models.PointStruct(**p) for p in points]
        mode = models.UpdateMode.INSERT_ONLY if only_new else None
        self._write(lambda client: client.upsert(collection, structs, ordering=_strong(), update_mode=mode), collection)

    def set_payload(self, collection: str, payload: Mapping[str, Any], where: Where) -> None:
        values, selector = dict(payload), _filter(where)
        self._write(lambda client: client.set_payload(collection, values, selector, ordering=_strong()), collection)

    def delete_payload(self, collection: str, key: str, where: Where) -> None:
        selector = _filter(where)
        self._write(lambda client: client.delete_payload(collection, [key], selector, ordering=_strong()), collection)

    def delete(self, collection: str, where: Where) -> None:
        selector = _filter(where)
        self._write(lambda client: client.delete(collection, selector, ordering=_strong()), collection)

    def delete_points(self, collection: str, ids: Sequence[str]) -> None:
        self._write(lambda client: client.delete(collection, list(ids), ordering=_strong()), collection)

    def payload(self, collection: str, point: str) -> Mapping[str, Any] | None:
        """Return a point as a majority of replicas holds it; None if it is missing."""
        from qdrant_client.http import models

        majority = models.ReadConsistencyType.MAJORITY
        records = self._try(lambda client: client.retrieve(collection, [point], consistency=majority), collection)
        return (records[0].payload or {}) if records else None

    def count(self, collection: str, where: Where) -> int:
        selector = _filter(where)
        return self._try(lambda client: client.count(collection, selector, exact=True), collection).count

    def values(self, collection: str, key: str, where: Where, limit: int) -> set[str]:
        """Return at most `limit` distinct values of an indexed field."""
        selector = _filter(where)
        facets = self._try(lambda client: client.facet(collection, key, selector, limit=limit, exact=True), collection)
        return {str(hit.value) for hit in facets.hits}

    def _write(self, send: Callable[[QdrantClient], object], collection: str) -> None:
        """Try a write. Writes to the collection of heads need no fence, because each has its conditions."""
        self._try(send, collection, fenced=collection != self.place.heads)

    def _try(self, send: Callable[[QdrantClient], _T], collection: str = "", *, fenced: bool = False) -> _T:
        started = time.monotonic()
        for failed in count(1):
            try:
                with self.fence() if fenced else nullcontext():
                    return send(self._client)
            except ChapterVerseError:
                # The fence raises them. The client raises none of ours.
                raise
            except Exception as error:
                failure, may_pass, asked_pause = self._failure(error, collection)
                pause = self._retry.pause(failed, time.monotonic() - started, asked_pause)
                if not may_pass or pause is None:
                    raise failure from error
                self._retry.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def _failure(self, error: Exception, collection: str) -> tuple[Exception, bool, float | None]:
        """Return the error to raise, whether another try may succeed, and the pause that the server asks for."""
        from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
        from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

        host = self.place.host
        if isinstance(error, ResourceExhaustedResponse):
            limit_error = IndexFault(f"{host} allows no more requests for now: try again later.")
            return limit_error, True, float(error.retry_after_s)
        if isinstance(error, UnexpectedResponse):
            status = error.status_code or 0
            return qdrant_error(self.place, status, collection), status in RETRIED_STATUSES, None
        if isinstance(error, ResponseHandlingException | QdrantException):
            return (
                IndexFault(
                    f"{host} could not be reached or broke off: readers see no change, or all of it; run it again."
                ),
                True,
                None,
            )
        # The client parses every reply, and raises these errors for a malformed one.
        if isinstance(error, ValueError | TypeError | AssertionError | AttributeError):
            return qdrant_error(self.place, 200), True, None
        return error, False, None


def _client(place: QdrantAddress, retry: QdrantRetry) -> QdrantClient:
    try:
        from qdrant_client import QdrantClient
    except ImportError as error:
        raise ConfigurationError(
            'Writing to a Qdrant server needs its client: run `pip install "chapterverse[build]"`.'
        ) from error

    def limit_connecting(request: Any) -> None:
        request.extensions["timeout"]["connect"] = CONNECT_SECONDS

    return QdrantClient(
        url=place.url,
        # As a header, because the client would warn of every server on loopback if it were given as `api_key`.
        headers={"api-key": place.key} if place.key else None,
        timeout=retry.try_seconds,
        check_compatibility=False,
        event_hooks={"request": [limit_connecting]},
    )


def _strong() -> Any:
    from qdrant_client.http import models

    return models.WriteOrdering.STRONG


def _filter(where: Where) -> Any:
    from qdrant_client.http import models

    return models.Filter.model_validate(where)
