"""AWS Signature Version 4.

Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
class UnsignedRequest:
    """A request as it will be sent, without its signature.

    Attributes:
        host: the value of the header `Host`.
        path: the percent-encoded path.
        query: the names and values in plain text.
        sha256: the hash of the body in hex.
    """

    method: str
    host: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    sha256: str


def query_string(query: Mapping[str, str]) -> str:
    """Return a query in the form that is sent and signed."""
    # Names and values are sorted as pairs. As joined texts, "a-b=" would come before "a=".
    pairs = sorted((percent_encode(name), percent_encode(value)) for name, value in query.items())
    return "&".join(f"{name}={value}" for name, value in pairs)


def percent_encode(text: str, safe: str = "") -> str:
    """Return a text in AWS's percent-encoding, which keeps only letters, digits and "-._~"."""
    return quote(text, safe=f"{safe}-._~")


def sign(request: UnsignedRequest, keys: AccessKeys, scope: CredentialScope, at: datetime) -> dict[str, str]:
    """Return all headers of a request, including the signature.

    Args:
        at: the time of the request, with its zone.
    """
    time = at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
    headers = {**request.headers, "Host": request.host, "X-Amz-Date": time}
    if keys.token:
        headers["X-Amz-Security-Token"] = keys.token
    if scope.service == "s3":
        headers["X-Amz-Content-SHA256"] = request.sha256
    canonical = {name.lower(): " ".join(value.split()) for name, value in sorted(headers.items(), key=_lower)}
    names = ";".join(canonical)
    lines = [request.method, _canonical_path(request.path, scope), query_string(request.query)]
    lines += [*(f"{name}:{value}" for name, value in canonical.items()), "", names, request.sha256]
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
