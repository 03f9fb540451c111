"""The head object of a scope: the live generation, the key of its artefact, and older ones that readers may fetch."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

from chapterverse.errors import IndexCorrupt, IndexMissing
from chapterverse.model import Head
from chapterverse.store.heads import decode_head, describe_damage, encode, translating_errors
from chapterverse.store.pack import PackedSize

_NAME = re.compile(r"\d{6,}-[0-9a-f]{12}\.pack")
#: Takes the place of a head that never existed, so that a publisher that saw no head is refused.
_VOID = b'{"void": "'
_SHA256 = re.compile(r"[0-9a-f]{64}")


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
        retired: artefacts that were live, with the time since when they are not, by S3's clock.
    """

    head: Head
    artefact: Artefact
    retired: Mapping[str, datetime] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the document. No two are equal, so that a rewritten head rejects publishers that have read the old."""
        return encode(
            self.head,
            artefact={"name": self.artefact.name, **asdict(self.artefact.packed)},
            retired={name: since.isoformat() for name, since in self.retired.items()},
            nonce=secrets.token_hex(8),
        )

    @classmethod
    def decode(cls, raw: bytes, place: str) -> S3Head:
        """Read a document.

        Raises:
            IndexMissing: it says that nothing is published.
            IndexMismatch: it is in a newer format.
            IndexCorrupt: it is damaged.
        """
        if raw.startswith(_VOID):
            raise IndexMissing("Nothing was published there yet.")
        head, document = decode_head(raw, place)
        with translating_errors(describe_damage(place)):
            fields = document["artefact"]
            artefact = Artefact(fields["name"], PackedSize(fields["size"], fields["sha256"]))
            retired = {name: datetime.fromisoformat(since) for name, since in document["retired"].items()}
            aware = all(since.tzinfo for since in retired.values())
        if not (aware and _is_valid(artefact)):
            raise IndexCorrupt(f"{place} names no artefact: build it again.")
        return cls(head, artefact, retired)

    def retire(self, now: datetime, grace: float) -> dict[str, datetime]:
        """Return what readers may still fetch after a next record was written: this one's artefact for one.

        Args:
            grace: seconds for which readers of an older record may still fetch its artefact.
        """
        young = {n: since for n, since in self.retired.items() if now - since < timedelta(seconds=grace)}
        return {**young, self.artefact.name: now}


def void() -> bytes:
    """Return a document that says that nothing is published; no two are equal."""
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
