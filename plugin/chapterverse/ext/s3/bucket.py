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
from chapterverse.ext.aws import Client
from chapterverse.ext.aws.environment import custom_endpoint, region_for, suffix
from chapterverse.ext.aws.signing import ApiCall, percent_encode
from chapterverse.ext.net.address import Address
from chapterverse.ext.net.client import Reply
from chapterverse.ext.s3.pack import PackedSize
from chapterverse.ext.s3.responses import (
    Conflict,
    Missing,
    S3Rejection,
    error_code,
    malformed_error,
    parse_listing,
    s3_error,
    unconditional_error,
    unreachable_error,
)
from chapterverse.store import RequestGuard

#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; the older rules allowed more.
_BUCKET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
_HOST_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
#: A key has at most 1024 bytes, of which the longest names of a site and a version leave these.
_MAX_PREFIX_BYTES = 700
#: The limit of one request: https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html
_MAX_OBJECT_BYTES = 5 << 30
#: Seconds for a whole artefact.
_TRANSFER_SECONDS = 3600.0
#: Seconds without a byte after which a try has failed.
_STALL_SECONDS = 15.0
#: Seconds before each further try of a write that met another one.
_CONFLICT_PAUSES = (0.1, 0.3, 1.0)
#: How often a broken download is resumed.
_MAX_RESUMES = 3
_IF_ABSENT = {"If-None-Match": "*"}
#: Without `s3:ListBucket` S3 denies access to a missing object, too.
_READ = "s3:GetObject on its objects and s3:ListBucket on the bucket"
_PERMISSIONS = {"GET": _READ, "HEAD": _READ, "PUT": "s3:PutObject", "DELETE": "s3:DeleteObject"}


@dataclass(frozen=True, slots=True)
class S3Object:
    """An object.

    Attributes:
        etag: identifies this content, so that a write can replace it and no other.
        age: seconds since it was written.
        body: its content; empty in a listing.
    """

    key: str
    etag: str
    age: float
    body: bytes = b""


class Bucket:
    """A bucket and a prefix in it. Keys are relative to the prefix.

    Args:
        request_seconds: for a small request with its retries.

    Attributes:
        request_guard: returns the context manager around each request.
    """

    def __init__(self, name: str, prefix: str = "", request_seconds: float = 10.0) -> None:
        self.name = name
        self.prefix = f"{prefix}/" if prefix else ""
        self.request_guard: RequestGuard = contextlib.nullcontext
        self._request_seconds = request_seconds

    @classmethod
    def open(cls, uri: str) -> Bucket:
        """Return the bucket and prefix of `s3://BUCKET/PREFIX`. Nothing is sent.

        Raises:
            ConfigurationError: the address names no bucket.
        """
        name, _, prefix = uri.removeprefix("s3://").partition("/")
        parts = prefix.strip("/").split("/") if prefix.strip("/") else []
        is_valid = _BUCKET_NAME.fullmatch(name) and not {"", ".", ".."} & set(parts) and prefix.isprintable()
        if not uri.startswith("s3://") or not is_valid or len(prefix.encode()) > _MAX_PREFIX_BYTES:
            raise ConfigurationError(f"There is no store {uri!r}: use s3://BUCKET or s3://BUCKET/PREFIX.")
        return cls(name, "/".join(parts))

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")

    def read(self, key: str, etag: str = "") -> S3Object | None:
        """Return a document; None if it is missing.

        Raises:
            NotModified: it still has this etag.
        """
        with contextlib.suppress(Missing):
            answer = self._send("GET", key, headers={"If-None-Match": etag} if etag else {})
            with self._translating_errors():
                return S3Object(key, answer.headers["etag"], _age(answer.headers), answer.raw)
        return None

    def write(self, key: str, body: bytes, old_etag: str | None) -> str:
        """Write a document if the object has the old etag, or, if that is None, does not exist; return the new etag.

        Raises:
            S3Rejection: the object is another one. It may be this very body, because a request whose answer is lost is
                repeated.
        """
        condition = {"If-Match": old_etag} if old_etag else _IF_ABSENT
        for pause in _CONFLICT_PAUSES:
            with contextlib.suppress(Conflict):
                return self._put(key, body, condition)
            time.sleep(pause)
        return self._put(key, body, condition)

    def check_conditions(self, key: str) -> None:
        """Raise `ConfigurationError` if the service ignores conditions. The object at `key` must exist."""
        for condition in (_IF_ABSENT, {"If-Match": f'"{"0" * 32}"'}):
            with contextlib.suppress(S3Rejection):
                self._put(key, b"{}", condition)
                raise unconditional_error(self.name)

    def upload(self, key: str, path: Path, pack: PackedSize) -> datetime:
        """Write a file under a new name; return the server's time.

        It is one request, so a killed upload leaves nothing. The parts of a multipart upload would stay, unseen.
        """
        if pack.size > _MAX_OBJECT_BYTES:
            raise IndexFault(
                f"The index packs to {pack.size >> 30} GB, of which one object of S3 holds 5: use a Qdrant server."
            )
        headers = {**_IF_ABSENT, "X-Amz-Meta-SHA256": pack.sha256}
        try:
            answer = self._send("PUT", key, headers=headers, body=path, sha256=pack.sha256)
        except S3Rejection:
            # The answer to a first try was lost and the request repeated.
            if self.stat(key) != pack:
                raise
            return datetime.now(UTC)
        return _date(answer.headers)

    def stat(self, key: str) -> PackedSize | None:
        """Return the metadata of an uploaded file; None if it is missing."""
        with contextlib.suppress(Missing):
            answer = self._send("HEAD", key)
            with self._translating_errors():
                return PackedSize(int(answer.headers["content-length"]), answer.headers.get("x-amz-meta-sha256", ""))
        return None

    def stream(self, key: str, size: int) -> Iterator[bytes]:
        """Yield the bytes of an uploaded file. If a connection breaks, the download is resumed.

        Raises:
            IndexCorrupt: the file is missing.
        """
        at, resumed = 0, 0
        while at < size:
            try:
                with self.request_guard():
                    for piece in self._pieces_from(key, at):
                        at += len(piece)
                        yield piece
                return
            except Missing:
                raise IndexCorrupt(f"{self}/{key} is missing or cut short: build the index again.") from None
            except ProviderError:
                resumed += 1
                if resumed > _MAX_RESUMES:
                    raise unreachable_error(self.name) from None

    def list(self, below: str = "") -> Iterator[S3Object]:
        """Yield every object whose key begins with `below`."""
        query = {"list-type": "2", "encoding-type": "url", "prefix": self.prefix + below}
        more = ""
        while True:
            answer = self._send("GET", None, query={**query, "continuation-token": more} if more else query)
            with self._translating_errors():
                entries, after = parse_listing(answer.raw)
                objects = [self._entry(entry, answer.headers) for entry in entries]
            yield from objects
            # A service that repeats its token would never come to an end.
            if not after or after == more:
                return
            more = after

    def remove(self, key: str) -> None:
        self._send("DELETE", key)

    def _pieces_from(self, key: str, at: int) -> Iterator[bytes]:
        """Yield a file's bytes from an offset on. Raise `ProviderError` if they break off."""
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
        answer = self._send("PUT", key, headers=condition, body=body)
        with self._translating_errors():
            return answer.headers["etag"]

    def _send(self, method: str, key: str | None, **parts: Any) -> Reply:
        """Return the answer to a request. Raise its error if it is one.

        Args:
            key: the object; None for the bucket itself.
        """
        call = ApiCall(method, self._path(key), **parts)
        try:
            with self.request_guard():
                seconds = _TRANSFER_SECONDS if isinstance(call.body, Path) else self._request_seconds
                answer = self._client.send(call, seconds)
                permission = "s3:ListBucket" if key is None else _PERMISSIONS[method]
                failure = s3_error(answer, self.name, permission) if answer.status >= 300 else None
                if isinstance(failure, IndexUnavailable):
                    raise failure
        except ProviderError as error:
            raise (unreachable_error if error.retryable else malformed_error)(self.name) from None
        if failure:
            raise failure
        return answer

    def _path(self, key: str | None) -> str:
        return "/" if key is None else f"/{percent_encode(self.prefix + key, safe='/')}"

    def _entry(self, entry: Mapping[str, str], headers: Mapping[str, str]) -> S3Object:
        modified_at = datetime.fromisoformat(entry["LastModified"])
        return S3Object(entry["Key"].removeprefix(self.prefix), entry["ETag"], _seconds(modified_at, _date(headers)))

    @cached_property
    def _client(self) -> Client:
        region = region_for("s3")
        return Client(
            "s3", region, bucket_address(self.name, region), lambda answer: error_code(answer.raw), stall=_STALL_SECONDS
        )

    @contextlib.contextmanager
    def _translating_errors(self) -> Iterator[None]:
        """Turn a missing or malformed part of an answer into an `IndexFault`."""
        try:
            yield
        except (KeyError, ValueError, TypeError, OverflowError):
            raise malformed_error(self.name) from None


def bucket_address(bucket: str, region: str) -> Address:
    """Return the address of a bucket: a host of its own, or a path of a custom endpoint.

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
    """Return the server's time of the answer."""
    try:
        return parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError):
        return datetime.now(UTC)


def _age(headers: Mapping[str, str]) -> float:
    return _seconds(parsedate_to_datetime(headers["last-modified"]), _date(headers))


def _seconds(modified_at: datetime, now: datetime) -> float:
    return max(0.0, (now - modified_at).total_seconds())
