"""The few requests that the store makes of S3. Every age is told by the server's own clock, never by ours."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from chapterverse.errors import ConfigurationError, IndexCorrupt, IndexFault
from chapterverse.store.pack import Packed
from chapterverse.store.s3.refusals import Conflict, Missing, Refused, explained, unconditional

#: https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html; the older rules allowed more.
_BUCKET_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]")
#: What a key of 1024 bytes leaves to the prefix when a site and a version have the longest names.
_LONGEST_PREFIX = 700
#: The most that one request may write: https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html
_LARGEST_OBJECT = 5 << 30
_LARGEST_DOCUMENT = 4 << 20
_CHUNK = 1 << 20
_CONNECT_SECONDS, _READ_SECONDS = 10, 60
#: Seconds before a write is tried again that came upon another one, and times a broken download is resumed.
_CONFLICT_PAUSES = (0.1, 0.3, 1.0)
_RESUMED = 3


@dataclass(frozen=True, slots=True)
class Document:
    """A small object; `etag` is for writing in its place, `age` in seconds since it was written."""

    body: bytes
    etag: str
    age: float


@dataclass(frozen=True, slots=True)
class Listed:
    key: str
    etag: str
    age: float


class Bucket:
    """A bucket and a prefix in it; keys are relative to the prefix."""

    def __init__(self, name: str, prefix: str = "") -> None:
        self.name = name
        self.prefix = f"{prefix}/" if prefix else ""

    @classmethod
    def open(cls, uri: str) -> Bucket:
        """Return the place that `s3://BUCKET/PREFIX` names; nothing is sent.

        Raises:
            ConfigurationError: it names none, or boto3 is not installed.
        """
        name, _, prefix = uri.removeprefix("s3://").partition("/")
        parts = prefix.strip("/").split("/") if prefix.strip("/") else []
        sound = _BUCKET_NAME.fullmatch(name) and not {"", ".", ".."} & set(parts) and prefix.isprintable()
        if not uri.startswith("s3://") or not sound or len(prefix.encode()) > _LONGEST_PREFIX:
            raise ConfigurationError(f"There is no store {uri!r}: use s3://BUCKET or s3://BUCKET/PREFIX.")
        if find_spec("boto3") is None:
            raise ConfigurationError('The store s3:// needs boto3: pip install "chapterverse[aws]".')
        return cls(name, "/".join(parts))

    def __str__(self) -> str:
        return f"s3://{self.name}/{self.prefix}".rstrip("/")

    def read(self, key: str, known: str = "") -> Document | None:
        """Return a document, None if there is none.

        Raises:
            Unchanged: its etag is still `known`.
        """
        condition = {"IfNoneMatch": known} if known else {}
        with contextlib.suppress(Missing):
            with self._telling():
                answer = self._client.get_object(Bucket=self.name, Key=self.prefix + key, **condition)
                body = answer["Body"].read(_LARGEST_DOCUMENT)
            return Document(body, answer["ETag"], _age(answer["LastModified"], _date(answer)))
        return None

    def write(self, key: str, body: bytes, replacing: str | None) -> str:
        """Write a document where the etag is still `replacing`, or None where nothing is yet; return the new etag.

        Raises:
            Refused: something else is there. As requests are repeated when an answer is lost, it may be this very body.
        """
        condition = {"IfMatch": replacing} if replacing else {"IfNoneMatch": "*"}
        for pause in _CONFLICT_PAUSES:
            with contextlib.suppress(Conflict):
                return str(self._put(key, body, **condition)["ETag"])
            time.sleep(pause)
        return str(self._put(key, body, **condition)["ETag"])

    def check_conditions(self, key: str) -> None:
        """Raise `ConfigurationError` if the service writes over the object that `key` names, whatever the condition."""
        for condition in ({"IfNoneMatch": "*"}, {"IfMatch": f'"{"0" * 32}"'}):
            with contextlib.suppress(Refused):
                self._put(key, b"{}", **condition)
                raise unconditional(self.name)

    def upload(self, key: str, path: Path, packed: Packed) -> datetime:
        """Write a file under a name that nothing has yet; return the server's time.

        In one request, so that a killed upload leaves nothing: the parts of a multipart one would stay, unseen.
        """
        if packed.size > _LARGEST_OBJECT:
            raise IndexFault(
                f"The index packs to {packed.size >> 30} GB, of which one object of S3 holds 5: use a Qdrant server."
            )
        with path.open("rb") as file:
            try:
                answer = self._put(key, file, IfNoneMatch="*", Metadata={"sha256": packed.sha256})
            except Refused:
                # The answer to a first try was lost and the request repeated.
                if self.stat(key) != packed:
                    raise
                return datetime.now(UTC)
        return _date(answer)

    def stat(self, key: str) -> Packed | None:
        """Return what an uploaded file says it is, None if there is none."""
        with contextlib.suppress(Missing), self._telling():
            answer = self._client.head_object(Bucket=self.name, Key=self.prefix + key)
            return Packed(answer["ContentLength"], answer["Metadata"].get("sha256", ""))
        return None

    def stream(self, key: str, size: int) -> Iterator[bytes]:
        """Yield the bytes of an uploaded file; where a connection breaks, it goes on from there.

        Raises:
            IndexCorrupt: it is not there.
        """
        at, resumed = 0, 0
        while at < size:
            try:
                with self._telling():
                    got = self._client.get_object(Bucket=self.name, Key=self.prefix + key, Range=f"bytes={at}-")
                for chunk in self._chunks(got["Body"]):
                    at += len(chunk)
                    yield chunk
                return
            except Missing:
                raise IndexCorrupt(f"{self}/{key} is missing or cut short: build the index again.") from None
            except _Broken as error:
                resumed += 1
                if resumed > _RESUMED:
                    raise error.meaning from error

    def list(self, below: str = "") -> Iterator[Listed]:
        """Yield every object whose key begins with `below`."""
        more: dict[str, str] = {}
        while True:
            with self._telling():
                answer = self._client.list_objects_v2(Bucket=self.name, Prefix=self.prefix + below, **more)
            for found in answer.get("Contents", ()):
                age = _age(found["LastModified"], _date(answer))
                yield Listed(found["Key"].removeprefix(self.prefix), found["ETag"], age)
            if not answer.get("IsTruncated"):
                return
            more = {"ContinuationToken": answer["NextContinuationToken"]}

    def remove(self, key: str) -> None:
        with self._telling():
            self._client.delete_object(Bucket=self.name, Key=self.prefix + key)

    def _put(self, key: str, body: Any, **fields: Any) -> dict[str, Any]:
        with self._telling():
            answer: dict[str, Any] = self._client.put_object(
                Bucket=self.name, Key=self.prefix + key, Body=body, **fields
            )
            return answer

    def _chunks(self, body: Any) -> Iterator[bytes]:
        try:
            yield from body.iter_chunks(_CHUNK)
        except GeneratorExit:
            raise
        except Exception as error:
            meaning = explained(error, self.name)
            if meaning is None:
                raise
            raise _Broken(meaning) from error
        finally:
            body.close()

    @cached_property
    def _client(self) -> Any:
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        config = Config(connect_timeout=_CONNECT_SECONDS, read_timeout=_READ_SECONDS)
        try:
            return boto3.session.Session().client("s3", config=config)
        except BotoCoreError:
            raise
        except ValueError:
            raise ConfigurationError("AWS_ENDPOINT_URL is no address: write it as https://HOST.") from None

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Turn whatever boto3 raises into one sentence."""
        try:
            yield
        except Exception as error:
            meaning = explained(error, self.name)
            if meaning is None:
                raise
            raise meaning from error


class _Broken(Exception):
    """A download broke off; `meaning` is what to say when it does so again and again."""

    def __init__(self, meaning: Exception) -> None:
        super().__init__(str(meaning))
        self.meaning = meaning


def _date(answer: dict[str, Any]) -> datetime:
    """Return when the server answered."""
    try:
        return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, ValueError):
        return datetime.now(UTC)


def _age(written: datetime, now: datetime) -> float:
    return max(0.0, (now - written).total_seconds())
