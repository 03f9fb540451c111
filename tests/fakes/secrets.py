"""Secrets and parameters in moto's server (see `fakes.s3_server`)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import boto3

from fakes.moto_server import Application, Environ
from fakes.s3_server import S3Server

REGION = "eu-central-1"
_NAMES = itertools.count()


@cache
def client(server: S3Server, service: str, region: str = REGION) -> Any:
    return boto3.session.Session().client(
        service,
        endpoint_url=server.environment["AWS_ENDPOINT_URL"],
        aws_access_key_id="testing",
        aws_secret_access_key="testing-secret",
        region_name=region,
    )


def secret(server: S3Server, value: object, region: str = REGION) -> str:
    """Make a secret of its own and return its ARN."""
    text = value if isinstance(value, str) else json.dumps(value)
    made = client(server, "secretsmanager", region).create_secret(Name=f"docs/keys-{next(_NAMES)}", SecretString=text)
    return str(made["ARN"])


def change(server: S3Server, arn: str, value: object) -> None:
    client(server, "secretsmanager").put_secret_value(SecretId=arn, SecretString=json.dumps(value))


def parameter(server: S3Server, value: object, kind: str = "SecureString") -> str:
    """Make a parameter of its own and return its ARN."""
    name = f"/docs/keys-{next(_NAMES)}"
    client(server, "ssm").put_parameter(Name=name, Value=json.dumps(value), Type=kind)
    return f"arn:aws:ssm:{REGION}:123456789012:parameter{name}"


def refusing(code: str, message: str) -> Callable[[Environ, Any, Application], Iterable[bytes]]:
    """A refusal in AWS's JSON protocol, which may quote what it should not."""

    def answer(environ: Environ, start: Any, _: Application) -> Iterable[bytes]:
        environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        body = json.dumps({"__type": code, "Message": message}).encode()
        start("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1"), ("Content-Length", str(len(body)))])
        return [body]

    return answer
