"""The requests that the store makes to S3. Every age is measured by the server's clock, never by ours."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from chapterverse.errors import ConfigurationError, IndexCorrupt, IndexFault, IndexUnavailable, ProviderError
from chapterverse.net.address import Address
from chapterverse.net.aws.client import ApiCall, Client
from chapterverse.net.aws.endpoints import custom_endpoint, region_for, suffix
from chapterverse.net.aws.signing import percent_encode
from chapterverse.net.client import Reply
from chapterverse.store.pack import PackedSize
from chapterverse.store.protocols import Asking
from chapterverse.store.s3.responses import (
    Conflict,
    Missing,
    S3Rejection,
    error_code,
    odd,
    parse_listing,
    s3_error,
    unconditional,
    unreachable,
)

#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; the older rules allowed more.
_BUCKET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_HOST_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
#: Bytes of a prefix: the rest of a key of 1024 bytes when a site and a version have the longest names.
_MAX_PREFIX_BYTES = 700
#: The most that one request may write: https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html
_MAX_OBJECT_BYTES = 5 << 30
#: Seconds for a small request with its retries, for a whole artefact, and without a byte before a try is given up.
_SECONDS, _TRANSFER_SECONDS, _STALL = 10.0, 3600.0, 15.0
#: Seconds before a write is tried again that came upon another one, and times a broken download is resumed.
_CONFLICT_PAUSES = (0.1, 0.3, 1.0)
_RESUMED = 3
_NOTHING_YET = {"If-None-Match": "*"}
#: Without `s3:ListBucket` S3 denies an object that is missing too.
_READ = "s3:GetObject on its objects and s3:ListBucket on the bucket"
_PERMISSIONS = {"GET": _READ, "HEAD": _READ, "PUT": "s3:PutObject", "DELETE": "s3:DeleteObject"}


@dataclass(frozen=True, slots=True)
class S3Object:
    """A small object; `etag` is for writing in its place, `age` in seconds since it was written."""

    body: bytes
    etag: str
    age: float


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    key: str
    etag: str
    age: float


class Bucket:
    """A bucket and a prefix in it; keys are relative to the prefix.

    Attributes:
        asking: in which each request runs.
    """

    def __init__(self, name: str, prefix: str = "") -> None:
        self.name = name
        self.prefix = f"{prefix}/" if prefix else ""
        self.asking: Asking = contextlib.nullcontext

    @classmethod
    def open(cls, uri: str) -> Bucket:
        """Return the place that `s3://BUCKET/PREFIX` names; nothing is sent.

        Raises:
            ConfigurationError: it names none.
        """
        name, _, prefix = uri.removeprefix("s3://").partition("/")
        parts = prefix.strip("/").split("/") if prefix.strip("/") else []
        sound = _BUCKET_NAME.fullmatch(name) and not {"", ".", ".."} & set(parts) and prefix.isprintable()
        if not uri.startswith("s3://") or not sound or len(prefix.encode()) > _MAX_PREFIX_BYTES:
            raise ConfigurationError(f"There is no store {uri!r}: use s3://BUCKET or s3://BUCKET/PREFIX.")
        return cls(name, "/".join(parts))

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")

    def read(self, key: str, etag: str = "") -> S3Object | None:
        """Return a document, None if it is missing.

        Raises:
            NotModified: its etag is still `known`.
        """
        with contextlib.suppress(Missing):
            answer = self._ask("GET", key, headers={"If-None-Match": etag} if etag else {})
            with self._translating_errors():
                return S3Object(answer.raw, answer.headers["etag"], _age(answer.headers))
        return None

    def write(self, key: str, body: bytes, replacing: str | None) -> str:
        """Write a document where the etag is still `replacing`, or None where nothing is yet; return the new etag.

        Raises:
            S3Rejection: something else is there; it may be this very body, as requests are repeated when an answer is
                lost.
        """
        condition = {"If-Match": replacing} if replacing else _NOTHING_YET
        for pause in _CONFLICT_PAUSES:
            with contextlib.suppress(Conflict):
                return self._put(key, body, condition)
            time.sleep(pause)
        return self._put(key, body, condition)

    def check_conditions(self, key: str) -> None:
        """Raise `ConfigurationError` if the service overwrites the object that `key` names against the condition."""
        for condition in (_NOTHING_YET, {"If-Match": f'"{"0" * 32}"'}):
            with contextlib.suppress(S3Rejection):
                self._put(key, b"{}", condition)
                raise unconditional(self.name)

    def upload(self, key: str, path: Path, pack: PackedSize) -> datetime:
        """Write a file under a name that nothing has yet; return the server's time.

        In one request, so that a killed upload leaves nothing: the parts of a multipart one would stay, unseen.
        """
        if pack.size > _MAX_OBJECT_BYTES:
            raise IndexFault(
                f"The index packs to {pack.size >> 30} GB, of which one object of S3 holds 5: use a Qdrant server."
            )
        headers = {**_NOTHING_YET, "X-Amz-Meta-SHA256": pack.sha256}
        try:
            answer = self._ask("PUT", key, headers=headers, body=path, sha256=pack.sha256)
        except S3Rejection:
            # The answer to a first try was lost and the request repeated.
            if self.stat(key) != pack:
                raise
            return datetime.now(UTC)
        return _date(answer.headers)

    def stat(self, key: str) -> PackedSize | None:
        """Return the metadata of an uploaded file, None if it is missing."""
        with contextlib.suppress(Missing):
            answer = self._ask("HEAD", key)
            with self._translating_errors():
                return PackedSize(int(answer.headers["content-length"]), answer.headers.get("x-amz-meta-sha256", ""))
        return None

    def stream(self, key: str, size: int) -> Iterator[bytes]:
        """Yield the bytes of an uploaded file; where a connection breaks, it goes on from there.

        Raises:
            IndexCorrupt: it is not there.
        """
        at, resumed = 0, 0
        while at < size:
            try:
                with self.asking():
                    for piece in self._from(key, at):
                        at += len(piece)
                        yield piece
                return
            except Missing:
                raise IndexCorrupt(f"{self}/{key} is missing or cut short: build the index again.") from None
            except ProviderError:
                resumed += 1
                if resumed > _RESUMED:
                    raise unreachable(self.name) from None

    def list(self, below: str = "") -> Iterator[ObjectInfo]:
        """Yield every object whose key begins with `below`."""
        query = {"list-type": "2", "encoding-type": "url", "prefix": self.prefix + below}
        more = ""
        while True:
            answer = self._ask("GET", None, query={**query, "continuation-token": more} if more else query)
            with self._translating_errors():
                entries, after = parse_listing(answer.raw)
                objects = [self._entry(entry, answer.headers) for entry in entries]
            yield from objects
            # A service that never comes to an end is not followed.
            if not after or after == more:
                return
            more = after

    def remove(self, key: str) -> None:
        self._ask("DELETE", key)

    def _from(self, key: str, at: int) -> Iterator[bytes]:
        """Yield a file's bytes from an offset on; raises `ProviderError` where they break off."""
        headers = {"Range": f"bytes={at}-"} if at else {}
        stream = self._client.open(ApiCall("GET", self._path(key), headers=headers), _TRANSFER_SECONDS)
        try:
            if stream.status != (206 if at else 200):
                raise s3_error(stream, self.name, _READ)
            yield from stream.pieces()
        except BaseException:
            stream.abandon()
            raise
        stream.finish()

    def _put(self, key: str, body: bytes, condition: Mapping[str, str]) -> str:
        """Write a document; return its etag."""
        answer = self._ask("PUT", key, headers=condition, body=body)
        with self._translating_errors():
            return answer.headers["etag"]

    def _ask(self, method: str, key: str | None, **parts: Any) -> Reply:
        """Return the answer to a request for an object, None for the bucket itself; raises the error of a rejection."""
        call = ApiCall(method, self._path(key), **parts)
        try:
            with self.asking():
                answer = self._client.ask(call, _TRANSFER_SECONDS if isinstance(call.body, Path) else _SECONDS)
                permission = "s3:ListBucket" if key is None else _PERMISSIONS[method]
                failure = s3_error(answer, self.name, permission) if answer.status >= 300 else None
                if isinstance(failure, IndexUnavailable):
                    raise failure
        except ProviderError as error:
            raise (unreachable if error.retryable else odd)(self.name) from None
        if failure:
            raise failure
        return answer

    def _path(self, key: str | None) -> str:
        return "/" if key is None else f"/{percent_encode(self.prefix + key, safe='/')}"

    def _entry(self, entry: Mapping[str, str], headers: Mapping[str, str]) -> ObjectInfo:
        written = datetime.fromisoformat(entry["LastModified"])
        return ObjectInfo(entry["Key"].removeprefix(self.prefix), entry["ETag"], _seconds(written, _date(headers)))

    @cached_property
    def _client(self) -> Client:
        region = region_for("s3")
        return Client(
            "s3", region, bucket_address(self.name, region), lambda answer: error_code(answer.raw), stall=_STALL
        )

    @contextlib.contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Turn a missing or malformed part of an answer into one sentence."""
        try:
            yield
        except (KeyError, ValueError, TypeError, OverflowError):
            raise odd(self.name) from None


def bucket_address(bucket: str, region: str) -> Address:
    """Return where a bucket is: at a host of its own, or below the one of a custom endpoint.

    Raises:
        ConfigurationError: AWS_ENDPOINT_URL is no address.
    """
    custom = custom_endpoint("s3")
    # The certificate of Amazon's hosts holds for one name before ".s3".
    if custom is None and _HOST_NAME.fullmatch(bucket):
        return Address.parse(f"https://{bucket}.s3.{region}.{suffix(region)}")
    place = custom or Address.parse(f"https://s3.{region}.{suffix(region)}")
    return replace(place, prefix=f"{place.prefix}/{bucket}")


def _date(headers: Mapping[str, str]) -> datetime:
    """Return when the server answered."""
    try:
        return parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return datetime.now(UTC)


def _age(headers: Mapping[str, str]) -> float:
    return _seconds(parsedate_to_datetime(headers["last-modified"]), _date(headers))


def _seconds(modified_at: datetime, now: datetime) -> float:
    return max(0.0, (now - modified_at).total_seconds())
