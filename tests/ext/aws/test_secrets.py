"""Secrets in moto's Secrets Manager and Parameter Store, over real HTTP."""

from __future__ import annotations

import secrets
import socket
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws.secrets import resolve_secrets
from chapterverse.settings import Settings
from fakes.s3_server import S3Server, shared
from fakes.secrets import client, parameter, refusing, secret

CANARY = "canary-Zx9Qw8Er7Ty6"


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[S3Server]:
    with shared().entered(tmp_path) as server:
        yield server


def fetch(named: str) -> tuple[Settings, list[str]]:
    """Return the settings with these secrets and without their name, and the warnings."""
    warnings: list[str] = []
    return resolve_secrets(Settings(secrets_arn=named), warnings.append).override(secrets_arn=""), warnings


def refused(named: str) -> str:
    """Return the error message; a secret's content is neither in it, nor in a traceback or a debugger's view."""
    with pytest.raises(ConfigurationError) as caught:
        resolve_secrets(Settings(secrets_arn=named), str)
    error: BaseException | None = caught.value
    shown = "".join(traceback.format_exception(caught.value))
    while error:
        shown += repr(vars(error))
        error = error.__context__
    assert CANARY not in shown
    assert str(caught.value).endswith(".")
    return str(caught.value)


def test_a_secret_and_a_parameter_hold_values_by_the_names_of_variables(aws: S3Server) -> None:
    keys = {"COHERE_API_KEY": "c", "CHAPTERVERSE_RECORDS": "postgresql://u:p@h/n"}
    for arn in (secret(aws, keys), parameter(aws, keys), parameter(aws, keys, "String")):
        assert fetch(arn) == (Settings().with_secrets(keys), [])


def test_a_secret_may_hold_those_of_tools(aws: S3Server) -> None:
    settings, warnings = fetch(secret(aws, {"CHAPTERVERSE_TOOL_SHOP": "s", "CHAPTERVERSE_OTHER": "o"}))
    assert (settings, len(warnings)) == (Settings().with_secrets({"CHAPTERVERSE_TOOL_SHOP": "s"}), 1)


def test_the_region_is_the_arns_own_whatever_the_environment_says(
    aws: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    arn = secret(aws, {"COHERE_API_KEY": "c"}, "ap-south-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert fetch(arn)[0] == Settings().with_secrets({"COHERE_API_KEY": "c"})
    elsewhere = refused(arn.replace("ap-south-1", "us-east-1"))
    name = arn.rpartition(":secret:")[2]
    assert elsewhere == (f"The secret {name} of CHAPTERVERSE_SECRETS_ARN does not exist in its region: check the ARN.")


def test_a_plain_name_is_a_secret_of_the_environments_region(aws: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    arn = secret(aws, {"COHERE_API_KEY": "c"})
    name = client(aws, "secretsmanager").describe_secret(SecretId=arn)["Name"]
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    assert fetch(name)[0] == Settings().with_secrets({"COHERE_API_KEY": "c"})
    # It may be a key that was put into the wrong variable.
    assert refused(CANARY) == "Secret number 1 of CHAPTERVERSE_SECRETS_ARN does not exist in its region: check the ARN."
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert "AWS_REGION" in refused(name)


def test_of_several_the_first_goes_before_and_the_environment_before_all(aws: S3Server) -> None:
    one = secret(aws, {"COHERE_API_KEY": "one", "QDRANT_API_KEY": "one"})
    other = parameter(aws, {"QDRANT_API_KEY": "other", "OPENAI_API_KEY": "other", "CHAPTERVERSE_SIGNING_KEY": ""})
    settings = Settings(secrets_arn=f" {one} ,{other},", openai_api_key="own")
    found = resolve_secrets(settings, pytest.fail)
    assert (found.cohere_api_key, found.qdrant_api_key, found.openai_api_key) == ("one", "one", "own")
    assert found.signing_key == ""
    assert found.override(cohere_api_key="", qdrant_api_key="") == settings


def test_only_secrets_are_taken_and_what_else_there_is_is_told_without_its_name(aws: S3Server) -> None:
    arn = secret(aws, {"CHAPTERVERSE_STORE": "s3://x/y", CANARY: "COHERE_API_KEY", "QDRANT_API_KEY": "q"})
    said: list[str] = []
    found = resolve_secrets(Settings(secrets_arn=arn), said.append)
    assert found == Settings(secrets_arn=arn, qdrant_api_key="q")
    name = arn.rpartition(":secret:")[2]
    (sentence,) = said
    assert sentence == (
        f"The secret {name} of CHAPTERVERSE_SECRETS_ARN holds 2 names besides those of secrets, which are left out: "
        "it may hold CHAPTERVERSE_LEDGER, CHAPTERVERSE_RECORDS, CHAPTERVERSE_REPORT_TOKEN, CHAPTERVERSE_SIGNING_KEY, "
        "COHERE_API_KEY, OPENAI_API_KEY, QDRANT_API_KEY."
    )


@pytest.mark.parametrize(
    "value",
    [
        CANARY,
        f'{{"COHERE_API_KEY": "{CANARY}"',
        [CANARY],
        {"COHERE_API_KEY": [CANARY]},
        {"COHERE_API_KEY": 1, "QDRANT_API_KEY": CANARY},
        {"COHERE_API_KEY": None},
        "[" * 20_000 + CANARY,
        f'"{CANARY}\ud800"'.encode("utf-8", "replace").decode(),
    ],
    ids=["text", "torn", "list", "nested", "number", "null", "deep", "string"],
)
def test_what_is_no_object_of_strings_is_told_and_not_quoted(aws: S3Server, value: object) -> None:
    arn = secret(aws, value)
    name = arn.rpartition(":secret:")[2]
    assert refused(arn) == (
        f"The secret {name} of CHAPTERVERSE_SECRETS_ARN is no JSON object of strings: store it as "
        '{"COHERE_API_KEY": "…"}, names of variables and their values.'
    )


def test_bytes_are_no_text(aws: S3Server) -> None:
    made = client(aws, "secretsmanager").create_secret(
        Name=f"bytes-{secrets.token_hex(4)}", SecretBinary=CANARY.encode()
    )
    assert "is no JSON object of strings" in refused(made["ARN"])


def test_what_does_not_exist(aws: S3Server) -> None:
    for arn in (
        "arn:aws:secretsmanager:eu-central-1:123456789012:secret:none-AbCdEf",
        "arn:aws:ssm:eu-central-1:123456789012:parameter/docs/none",
    ):
        assert "does not exist in its region: check the ARN." in refused(arn)


@pytest.mark.parametrize(
    "named", [f'{{"COHERE_API_KEY": "{CANARY}"}}', "arn:aws:s3:::bucket/key", f"{CANARY} x", "arn:aws:ssm:::parameter/"]
)
def test_what_names_no_secret_is_refused_without_a_request(aws: S3Server, named: str) -> None:
    assert refused(named) == (
        "CHAPTERVERSE_SECRETS_ARN names no secret: set it to the ARN of a secret in Secrets Manager, or of a parameter "
        "in Parameter Store."
    )
    assert aws.requests == []


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (
            "AccessDeniedException",
            "may not be read with these credentials: allow secretsmanager:GetSecretValue, or ssm:GetParameter, on it.",
        ),
        ("DecryptionFailure", "can't be decrypted with these credentials: allow kms:Decrypt on its key."),
        ("InvalidRequestException", "Secrets Manager refused the action GetSecretValue (InvalidRequestException)."),
        ("UnrecognizedClientException", "Secrets Manager refused the AWS credentials"),
    ],
)
def test_a_refusal_says_what_to_allow(aws: S3Server, code: str, reason: str) -> None:
    arn = secret(aws, {"COHERE_API_KEY": CANARY})
    aws.faults.append(refusing(code, CANARY))
    said = refused(arn)
    assert said.startswith("The secret docs/keys-")
    assert reason in said


def test_without_a_network_or_credentials(aws: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    arn = secret(aws, {"COHERE_API_KEY": CANARY})
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    assert "Secrets Manager can't be reached" in refused(arn)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "There are no AWS credentials for Secrets Manager" in refused(arn)


def test_nothing_secret_is_in_a_repr(aws: S3Server) -> None:
    settings, warnings = fetch(secret(aws, {"COHERE_API_KEY": CANARY}))
    assert CANARY not in repr(settings) + repr(warnings)
