"""The head object of a scope: the live generation, the name of its artefact, and older ones that readers may fetch."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta

from chapterverse.errors import IndexCorrupt, IndexMissing
from chapterverse.ext.s3.pack import PackedSize
from chapterverse.model import Head
from chapterverse.store.heads import describe_damage, encode, parse_head_document, translating_errors

_NAME = re.compile(r"\d{6,}-[0-9a-f]{12}\.pack")
#: Replaces a head that is removed, so that a publisher that saw no head is rejected.
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
        retired: the artefacts that were live before, with the time of their replacement by S3's clock.
    """

    head: Head
    artefact: Artefact
    retired: Mapping[str, datetime] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the document. No two are equal, so the write of a publisher that has read another one is rejected."""
        return encode(
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
