"""AWS Signature Version 4.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class AccessKeys:
    """The keys of a caller; `token` is empty if they don't expire."""

    access: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class CredentialScope:
    """The region and the service for which a signature is valid, such as "us-east-1" and "s3"."""

    region: str
    service: str


@dataclass(frozen=True, slots=True)
class ApiCall:
    """A request to a service, before it is signed.

    Attributes:
        path: the percent-encoded path.
        body: bytes, or the path of a file.
        sha256: the hash of the body in hex; "" if it must be computed.
    """

    method: str
    path: str = "/"
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | Path = field(default=b"", repr=False)
    sha256: str = ""

    @property
    def digest(self) -> str:
        return (
            self.sha256
            or hashlib.sha256(self.body if isinstance(self.body, bytes) else self.body.read_bytes()).hexdigest()
        )


def query_string(query: Mapping[str, str]) -> str:
    """Return a query in the form that is sent and signed."""
    # Names and values are sorted as pairs. As joined texts, "a-b=" would come before "a=".
    pairs = sorted((percent_encode(name), percent_encode(value)) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def percent_encode(text: str, safe: str = "") -> str:
    """Return a text in AWS's percent-encoding, which keeps only letters, digits and "-._~"."""
    return quote(text, safe=f"{safe}-._~")


def sign(call: ApiCall, host: str, keys: AccessKeys, scope: CredentialScope, at: datetime) -> dict[str, str]:
    """Return all headers of a request, including the signature.

    Args:
        host: the value of the header `Host`.
        at: the time of the request, with its zone.
    """
    digest, time = call.digest, at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {**call.headers, "Host": host, "X-Amz-Date": time}
    if keys.token:
        headers["X-Amz-Security-Token"] = keys.token
    if scope.service == "s3":
        headers["X-Amz-Content-SHA256"] = digest
    canonical = {name.lower(): " ".join(value.split()) for name, value in sorted(headers.items(), key=_lower)}
    names = ";".join(canonical)
    lines = [call.method, _canonical_path(call.path, scope), query_string(call.query)]
    lines += [*(f"{name}:{value}" for name, value in canonical.items()), "", names, digest]
    place = f"{time[:8]}/{scope.region}/{scope.service}/aws4_request"
    statement = "\n".join([_ALGORITHM, time, place, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    signature = hmac.new(_key(keys, place), statement.encode(), hashlib.sha256).hexdigest()
    headers["Authorization"] = (
        f"{_ALGORITHM} Credential={keys.access}/{place}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


def _lower(header: tuple[str, str]) -> str:
    return header[0].lower()


def _canonical_path(path: str, scope: CredentialScope) -> str:
    # Every service but S3 expects the path encoded once more in the signature.
    return path if scope.service == "s3" else percent_encode(path, safe="/")


def _key(keys: AccessKeys, place: str) -> bytes:
    key = f"AWS4{keys.secret}".encode()
    for part in place.split("/"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
