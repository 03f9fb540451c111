"""Publishes to S3. The draft is packed and uploaded under a new name, then one conditional write replaces the head.

The head object of a scope names the live generation, its artefact, and older ones that readers may fetch. If anything
fails before its write, readers see the old generation. No head names the uploaded objects then, and a later publication
removes them.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexMissing
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.lease import S3Lease
from chapterverse.ext.s3.pack import PackedSize, pack_folder
from chapterverse.ext.s3.responses import Conflict, S3Rejection
from chapterverse.model import EmbedderCard, Head
from chapterverse.store import (
    check_next,
    describe_damage,
    encode_head,
    files,
    overtaken_error,
    parse_head_document,
    translating_errors,
)
from chapterverse.store.shard_publication import ShardPublication, translating_write_errors

if TYPE_CHECKING:
    from chapterverse.store.shard import Shard

_NAME = re.compile(r"\d{6,}-[0-9a-f]{12}\.pack")
#: Replaces a head that is removed, so that a publisher that saw no head is rejected.
_VOID = b'{"void": "'
_SHA256 = re.compile(r"[0-9a-f]{64}")
HEAD = "head.json"


@dataclass(frozen=True, slots=True)
class Artefact:
    """One generation as an object that is never written again."""

    name: str
    packed: PackedSize

    @staticmethod
    def new_name(generation: int) -> str:
        return f"{generation:06d}-{secrets.token_hex(6)}.pack"

    @staticmethod
    def is_name(name: str) -> bool:
        return _NAME.fullmatch(name) is not None


@dataclass(frozen=True, slots=True)
class S3Head:
    """The content of a head object.

    Attributes:
        retired: the artefacts that were live before, with the time of their replacement by S3's clock.
    """

    head: Head
    artefact: Artefact
    retired: Mapping[str, datetime] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the document. No two are equal, so the write of a publisher that has read another one is rejected."""
        return encode_head(
            self.head,
            artefact={"name": self.artefact.name, **asdict(self.artefact.packed)},
            retired={name: since.isoformat() for name, since in self.retired.items()},
            nonce=secrets.token_hex(8),
        )

    @classmethod
    def parse(cls, raw: bytes, place: str) -> S3Head:
        """Read a document.

        Raises:
            IndexMissing: it states that nothing is published.
            IndexMismatch: it is in a newer format.
            IndexCorrupt: it is damaged.
        """
        if raw.startswith(_VOID):
            raise IndexMissing("Nothing was published there yet.")
        head, document = parse_head_document(raw, place)
        with translating_errors(describe_damage(place)):
            fields = document["artefact"]
            artefact = Artefact(fields["name"], PackedSize(fields["size"], fields["sha256"]))
            retired = {name: datetime.fromisoformat(since) for name, since in document["retired"].items()}
            have_zones = all(since.tzinfo for since in retired.values())
        if not (have_zones and _is_valid(artefact)):
            raise IndexCorrupt(f"{place} names no artefact: build it again.")
        return cls(head, artefact, retired)

    def retire(self, now: datetime, grace: float) -> dict[str, datetime]:
        """Return the retired artefacts of the next record: this one's, and those that readers may still fetch.

        Args:
            grace: seconds for which readers may fetch a retired artefact.
        """
        fetchable = {n: since for n, since in self.retired.items() if now - since < timedelta(seconds=grace)}
        return {**fetchable, self.artefact.name: now}


def void_head() -> bytes:
    """Return a document that states that nothing is published. No two are equal."""
    return _VOID + secrets.token_hex(8).encode() + b'"}'


def _is_valid(artefact: Artefact) -> bool:
    name, size, sha256 = artefact.name, artefact.packed.size, artefact.packed.sha256
    return (
        isinstance(name, str)
        and Artefact.is_name(name)
        and isinstance(size, int)
        and size > 0
        and isinstance(sha256, str)
        and _SHA256.fullmatch(sha256) is not None
    )


@dataclass(frozen=True, slots=True)
class ScopePrefix:
    """The objects of one scope.

    Attributes:
        place: the prefix of their keys.
        grace: seconds for which replaced objects stay, for readers who are fetching them.
    """

    bucket: Bucket
    place: str
    grace: float

    @property
    def head(self) -> str:
        return self.key(HEAD)

    def key(self, name: str) -> str:
        return f"{self.place}/{name}"

    def artefacts(self, min_age: float) -> list[str]:
        """Return the names of the artefacts that were uploaded at least `min_age` seconds ago."""
        objects = [(o.key.removeprefix(f"{self.place}/"), o.age) for o in self.bucket.list(f"{self.place}/")]
        return [name for name, age in objects if Artefact.is_name(name) and age >= min_age]

    def delete_garbage(self, reachable: Collection[str]) -> None:
        """Delete the artefacts that are older than the grace and not `reachable` from the head.

        Call it only after a write of the head, because that rejects every publisher who could still name one of them.
        """
        for name in self.artefacts(self.grace):
            if name not in reachable:
                self.bucket.remove(self.key(name))


@dataclass(frozen=True, slots=True)
class CurrentHead:
    """The state of the head when a publisher began.

    Attributes:
        etag: the etag of the object; None if there was none.
        record: its content; None if it is damaged, or states that nothing is published.
    """

    etag: str | None
    record: S3Head | None


class S3Publication(ShardPublication):
    """A private copy of the live shard in a scratch folder. Implements `chapterverse.store.Publication`."""

    def __init__(
        self,
        prefix: ScopePrefix,
        lease: S3Lease,
        current: CurrentHead,
        scratch_dir: Path,
        previous: Shard | None,
        embedder: EmbedderCard,
    ) -> None:
        super().__init__(scratch_dir / "draft", scratch_dir / "live", previous, embedder)
        self.committed: S3Head | None = None
        self._prefix = prefix
        self._lease = lease
        self._current = current
        self._scratch_dir = scratch_dir

    @property
    def draft(self) -> Path:
        return self._place

    def renew(self) -> None:
        self._lease.renew()

    def commit(self, head: Head) -> None:
        check_next(head, self.previous.head if self.previous else None)
        self._lease.renew()
        with translating_write_errors(self._scratch_dir):
            self._seal()
            pack_file = self._scratch_dir / "pack"
            files.require_space(self._scratch_dir, files.allocated_bytes(self._place))
            with pack_file.open("wb") as file:
                packed = pack_folder(self._place, file)
        artefact = Artefact(Artefact.new_name(head.generation), packed)
        now = self._prefix.bucket.upload(self._prefix.key(artefact.name), pack_file, packed)
        old = self._current.record
        record = S3Head(head, artefact, old.retire(now, self._prefix.grace) if old else {})
        self._replace_head(record)
        self.committed = record
        # The generation is published; the next publication removes the rest.
        with contextlib.suppress(ChapterVerseError):
            self._prefix.delete_garbage({artefact.name, *record.retired})

    def close(self) -> None:
        self._close()

    def _replace_head(self, record: S3Head) -> None:
        prefix, name = self._prefix, record.artefact.name
        try:
            prefix.bucket.write(prefix.head, record.encode(), self._current.etag)
        except S3Rejection as rejection:
            document = prefix.bucket.read(prefix.head)
            # A request whose answer was lost is repeated, and then rejected because of itself.
            if document is not None and name.encode() in document.body:
                return
            # After a conflict the write may still succeed, and name the artefact.
            if not isinstance(rejection, Conflict):
                with contextlib.suppress(ChapterVerseError):
                    prefix.bucket.remove(prefix.key(name))
            raise overtaken_error(record.head) from None
