"""Signatures against botocore's own signer."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from urllib.parse import quote

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.ext.aws.signing import (
    AccessKeys,
    ApiCall,
    CredentialScope,
    percent_encode,
    query_string,
    sign,
)

KEYS = AccessKeys("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
AT = datetime(2026, 11, 21, 16, 5, 9, tzinfo=UTC)
EMPTY = hashlib.sha256().hexdigest()


def ours(
    scope: CredentialScope, path: str = "/", query: Mapping[str, str] | None = None, body: bytes = b"",
    keys: AccessKeys = KEYS,
    method: str = "POST", headers: Mapping[str, str] | None = None, host: str = "service.example.org",
) -> str:  # fmt: skip
    digest = hashlib.sha256(body).hexdigest()
    call = ApiCall(method, path, query or {}, headers or {}, sha256=digest)
    return sign(call, host, keys, scope, AT)["Authorization"]


def theirs(
    scope: CredentialScope, path: str = "/", query: Mapping[str, str] | None = None, body: bytes = b"",
    keys: AccessKeys = KEYS,
    method: str = "POST", headers: Mapping[str, str] | None = None, host: str = "service.example.org",
) -> str:  # fmt: skip
    text = query_string(query or {})
    request = AWSRequest(method, f"https://{host}{path}{'?' if text else ''}{text}", dict(headers or {}), body)
    request.context["timestamp"] = AT.strftime("%Y%m%dT%H%M%SZ")
    request.context["payload_signing_enabled"] = True
    kind = auth.S3SigV4Auth if scope.service == "s3" else auth.SigV4Auth
    signer = kind(Credentials(keys.access, keys.secret, keys.token or None), scope.service, scope.region)
    # What `add_auth` does but for asking what time it is.
    signer._modify_request_before_signing(request)
    statement = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(statement, request))
    return str(request.headers["Authorization"])


SERVICES = ["s3", "dynamodb", "secretsmanager", "ssm", "bedrock"]


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("token", ["", "FwoGZXIvYXdzE+/=="])
def test_every_service_is_signed_for_as_botocore_does(service: str, token: str) -> None:
    scope, keys = CredentialScope("eu-central-1", service), AccessKeys(KEYS.access, KEYS.secret, token)
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB_20120810.UpdateItem"}
    body = b'{"TableName":"t"}'
    assert ours(scope, body=body, keys=keys, headers=headers) == theirs(scope, body=body, keys=keys, headers=headers)


QUERIES = [
    {"list-type": "2", "prefix": "a/b c+d", "encoding-type": "url"},
    {"b": "1", "a": "2", "A": "3", "a-b": "", "a.b": "x=y&z"},
    {"continuation-token": "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="},
    {"grüße": "…", "~": "-._~", "%": "%25"},
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("service", ["s3", "ssm"])
def test_a_query_is_signed_as_it_is_sent(service: str, query: dict[str, str]) -> None:
    scope = CredentialScope("us-east-1", service)
    assert ours(scope, query=query, method="GET") == theirs(scope, query=query, method="GET")


KEYS_OF_OBJECTS = ["docs/@/head.json", "a b/c+d", "grüße/…", "%2E%2E/@", "x=y&z;q", "~tilde(*)'!", 'quo"te', "a\tb"]


@pytest.mark.parametrize("key", KEYS_OF_OBJECTS)
def test_an_odd_key_is_signed_as_it_is_sent(key: str) -> None:
    path = f"/{percent_encode(key, safe='/')}"
    assert ours(CredentialScope("us-east-1", "s3"), path, method="PUT") == theirs(
        CredentialScope("us-east-1", "s3"), path, method="PUT"
    )


def test_other_services_sign_the_path_encoded_once_more() -> None:
    path = f"/model/{quote('cohere.embed-v4:0', safe='')}/invoke"
    assert ours(CredentialScope("us-east-1", "bedrock"), path) == theirs(CredentialScope("us-east-1", "bedrock"), path)


@given(
    key=st.text(st.characters(codec="utf-8", exclude_characters="/"), min_size=1, max_size=30),
    value=st.text(st.characters(codec="utf-8"), max_size=30),
    condition=st.text(st.sampled_from('"abc \t*-'), max_size=12),
)
def test_whatever_is_asked_for_is_signed_as_botocore_does(key: str, value: str, condition: str) -> None:
    scope, path, query = CredentialScope("eu-west-3", "s3"), f"/b/{percent_encode(key)}", {"prefix": value}
    headers = {"If-Match": condition}
    mine = ours(scope, path, query, method="GET", headers=headers)
    assert mine == theirs(scope, path, query, method="GET", headers=headers)


def test_a_port_belongs_to_the_host() -> None:
    scope = CredentialScope("us-east-1", "dynamodb")
    assert ours(scope, host="127.0.0.1:8000") == theirs(scope, host="127.0.0.1:8000")
    assert ours(scope, host="127.0.0.1:8000") != ours(scope, host="127.0.0.1")


def test_the_time_is_that_of_greenwich() -> None:
    call, scope = ApiCall("GET"), CredentialScope("r", "s3")
    there = AT.astimezone(timezone(timedelta(hours=-7)))
    assert sign(call, "host", KEYS, scope, there) == sign(call, "host", KEYS, scope, AT)


def test_nothing_that_is_printed_holds_a_secret() -> None:
    assert "wJalr" not in repr(KEYS)
    assert "token" not in repr(AccessKeys("a", "b", "token"))
