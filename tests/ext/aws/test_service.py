"""AWS services with a JSON protocol: against moto, and against a misbehaving server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.ext.aws import AwsFault, AwsService
from fakes.loopback import Answer, Fault, LoopbackServer, Request
from fakes.s3_server import shared

UPDATE = "DynamoDB_20120810.UpdateItem"


class AwsServer(LoopbackServer):
    """A service whose clock may be wrong, or right where ours is wrong.

    Attributes:
        ahead: by how much its clock is ahead of this machine's.
        says: whether it says what time it is.
        refusal: what it answers to everything, a status and a code.
    """

    def __init__(self) -> None:
        super().__init__()
        self.ahead = timedelta()
        self.says = True
        self.refusal: tuple[int, str] | None = None

    def answer(self, request: Request) -> Answer:
        now = datetime.now(UTC) + self.ahead
        headers = {"Date": format_datetime(now, usegmt=True)} if self.says else {}
        if self.refusal:
            status, code = self.refusal
            return Answer(status, {"__type": f"com.amazonaws#{code}", "message": "testing-secret"}, headers)
        signed = datetime.strptime(request.headers["x-amz-date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if abs(signed - now) > timedelta(minutes=5):
            said = {"__type": "InvalidSignatureException", "message": "Signature expired: testing-secret"}
            return Answer(400, said, headers)
        return Answer(200, {"asked": request.body}, headers)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("AWS_REGION", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsServer]:
    with AwsServer() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.url)
        yield running


def one_sentence(error: BaseException) -> bool:
    text = str(error)
    return "testing-secret" not in text and "\n" not in text and text.endswith(".") and text.count(". ") == 0


# moto


def test_dynamodb_counts_under_a_condition(tmp_path: Path) -> None:
    with shared().entered(tmp_path):
        service = AwsService("dynamodb")
        key = {"AttributeName": "k", "KeyType": "HASH"}
        fields = [{"AttributeName": "k", "AttributeType": "S"}]
        made = {"TableName": "counts", "KeySchema": [key], "AttributeDefinitions": fields}
        service.call("DynamoDB_20120810.CreateTable", {**made, "BillingMode": "PAY_PER_REQUEST"})
        add = {
            "TableName": "counts",
            "Key": {"k": {"S": "grüße \U0001f30d"}},
            "UpdateExpression": "ADD n :one",
            "ConditionExpression": "attribute_not_exists(n) OR n < :most",
            "ExpressionAttributeValues": {":one": {"N": "1"}, ":most": {"N": "2"}},
            "ReturnValues": "ALL_NEW",
        }
        counts = [service.call(UPDATE, add)["Attributes"]["n"]["N"] for _ in range(2)]
        assert counts == ["1", "2"]
        with pytest.raises(AwsFault, match="ConditionalCheckFailedException") as caught:
            service.call(UPDATE, add)
        assert caught.value.code == "ConditionalCheckFailedException"
        assert caught.value.body["message"] == "The conditional request failed"
        with pytest.raises(AwsFault, match="DynamoDB has nothing by the name") as caught:
            service.call(UPDATE, {**add, "TableName": "other"})
        assert caught.value.code == "ResourceNotFoundException"


def test_secrets_and_parameters_are_read(tmp_path: Path) -> None:
    with shared().entered(tmp_path):
        secrets, parameters = AwsService("secretsmanager"), AwsService("ssm")
        secrets.call("secretsmanager.CreateSecret", {"Name": "s", "SecretString": "{}", "ClientRequestToken": "a" * 32})
        assert secrets.call("secretsmanager.GetSecretValue", {"SecretId": "s"})["SecretString"] == "{}"
        parameters.call("AmazonSSM.PutParameter", {"Name": "/p", "Value": "v", "Type": "SecureString"})
        found = parameters.call("AmazonSSM.GetParameter", {"Name": "/p", "WithDecryption": True})
        assert found["Parameter"]["Value"] == "v"
        with pytest.raises(AwsFault, match="Parameter Store has nothing by the name") as caught:
            parameters.call("AmazonSSM.GetParameter", {"Name": "/other"})
        assert caught.value.code == "ParameterNotFound"


# What is sent


def test_what_is_sent(server: AwsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    assert AwsService("ssm").call("AmazonSSM.GetParameter", {"Name": "é"}) == {"asked": {"Name": "é"}}
    AwsService("dynamodb", region="us-west-2").call(UPDATE, {})
    first, second = server.history
    assert (first.method, first.path, first.raw) == ("POST", "/", '{"Name":"é"}'.encode())
    assert first.headers["content-type"] == "application/x-amz-json-1.1"
    assert first.headers["x-amz-target"] == "AmazonSSM.GetParameter"
    assert first.headers["x-amz-security-token"] == "token"
    assert (
        f"Credential=testing/{datetime.now(UTC):%Y%m%d}/eu-central-1/ssm/aws4_request" in first.headers["authorization"]
    )
    assert "testing-secret" not in json.dumps(dict(first.headers))
    assert second.headers["content-type"] == "application/x-amz-json-1.0"
    assert "us-west-2/dynamodb/aws4_request" in second.headers["authorization"]


def test_nothing_is_sent_before_the_first_call_and_connections_are_kept(server: AwsServer) -> None:
    service = AwsService("dynamodb")
    assert server.connections == 0
    for _ in range(3):
        service.call(UPDATE, {})
    assert server.connections == 1


def test_an_endpoint_of_one_service_comes_first(server: AwsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", server.url)
    assert AwsService("secretsmanager").call("secretsmanager.GetSecretValue", {}) == {"asked": {}}


def test_threads_share_a_service(server: AwsServer) -> None:
    service = AwsService("dynamodb")
    with ThreadPoolExecutor(8) as pool:
        answers = pool.map(lambda i: service.call(UPDATE, {"i": i}), range(40))
    assert [answer["asked"]["i"] for answer in answers] == [*range(40)]


# Settings that can't be used


def test_no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(
        ConfigurationError, match="DynamoDB needs a region: set AWS_REGION in the environment"
    ) as caught:
        AwsService("dynamodb")
    assert one_sentence(caught.value)


@pytest.mark.parametrize("region", ["us east", "x.example.org/", "a" * 64, "us-east-1\n", "é"])
def test_a_region_that_is_none_reaches_no_other_host(monkeypatch: pytest.MonkeyPatch, region: str) -> None:
    monkeypatch.setenv("AWS_REGION", region)
    with pytest.raises(ConfigurationError, match="AWS_REGION is no name of a region") as caught:
        AwsService("dynamodb")
    assert one_sentence(caught.value)
    assert region not in str(caught.value)


@pytest.mark.parametrize("url", ["nowhere", "ftp://x", "http://", "http://[", "http://x:port"])
def test_an_endpoint_that_is_no_address(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_SSM", url)
    with pytest.raises(ConfigurationError, match="AWS_ENDPOINT_URL_SSM is no address") as caught:
        AwsService("ssm")
    assert one_sentence(caught.value)


def test_no_credentials(server: AwsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(AwsFault, match="There are no AWS credentials for Parameter Store") as caught:
        AwsService("ssm").call("AmazonSSM.GetParameter", {})
    assert one_sentence(caught.value)
    assert not server.history


# Refusals


REFUSALS = {
    (400, "ExpiredTokenException"): "DynamoDB refused the AWS credentials as expired: renew them.",
    (400, "UnrecognizedClientException"): "DynamoDB refused the AWS credentials: check AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY.",
    (400, "InvalidSignatureException"): "DynamoDB refused the AWS credentials: check AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY.",
    (400, "AccessDeniedException"): "DynamoDB denies access: allow these credentials the action UpdateItem.",
    (400, "ProvisionedThroughputExceededException"): "DynamoDB is too busy to answer, also after retries: try again "
    "later.",
    (500, "InternalServerError"): "DynamoDB failed with status 500, also after retries: try again later.",
    (400, "ValidationException"): "DynamoDB refused the action UpdateItem (ValidationException).",
    (400, "in\nvented testing-secret"): "DynamoDB refused the action UpdateItem (status 400).",
}  # fmt: skip


@pytest.mark.parametrize(("refusal", "sentence"), REFUSALS.items())
def test_every_refusal_is_one_sentence(server: AwsServer, refusal: tuple[int, str], sentence: str) -> None:
    server.refusal = refusal
    with pytest.raises(AwsFault) as caught:
        AwsService("dynamodb").call(UPDATE, {"Item": "testing-secret"})
    assert str(caught.value) == sentence
    assert caught.value.code in (refusal[1], "")
    assert caught.value.body["message"] == "testing-secret"


def test_a_passing_trouble_is_waited_out(server: AwsServer) -> None:
    server.play(Fault(503), Fault(500))
    assert AwsService("dynamodb").call(UPDATE, {}) == {"asked": {}}
    assert len(server.history) == 3


def test_what_will_not_pass_is_asked_once(server: AwsServer) -> None:
    server.refusal = 400, "ConditionalCheckFailedException"
    with pytest.raises(AwsFault):
        AwsService("dynamodb").call(UPDATE, {})
    assert len(server.history) == 1


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"<html>", b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_none(server: AwsServer, body: bytes) -> None:
    server.play(Fault(change=lambda _: body))
    with pytest.raises(AwsFault, match="DynamoDB answered with something that is no reply") as caught:
        AwsService("dynamodb").call(UPDATE, {})
    assert one_sentence(caught.value)


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:testing-secret@127.0.0.1:9")
    with pytest.raises(AwsFault, match="DynamoDB can't be reached, or did not answer in time") as caught:
        AwsService("dynamodb").call(UPDATE, {})
    assert one_sentence(caught.value)
    assert (caught.value.code, caught.value.body) == ("", {})


def test_a_connection_that_died_unnoticed_leaves_time_for_another(server: AwsServer) -> None:
    service = AwsService("dynamodb", seconds=1.0)
    service.call(UPDATE, {})
    server.play(Fault(hang=30.0))
    assert service.call(UPDATE, {}) == {"asked": {}}


# Clocks


@pytest.mark.parametrize("minutes", [-600, -6, 6, 60 * 24 * 400])
def test_a_wrong_clock_is_told_apart_and_set_right(server: AwsServer, minutes: int) -> None:
    server.ahead = timedelta(minutes=minutes)
    service = AwsService("dynamodb")
    assert service.call(UPDATE, {}) == {"asked": {}}
    assert len(server.history) == 2
    assert service.call(UPDATE, {}) == {"asked": {}}
    assert len(server.history) == 3


def test_a_clock_that_can_t_be_set_right_is_told(server: AwsServer) -> None:
    server.ahead, server.says = timedelta(hours=1), False
    with pytest.raises(AwsFault, match="DynamoDB refuses requests by a clock that is wrong by minutes") as caught:
        AwsService("dynamodb").call(UPDATE, {})
    assert one_sentence(caught.value)
    assert len(server.history) == 1


def test_a_wrong_key_is_not_taken_for_a_wrong_clock(server: AwsServer) -> None:
    server.refusal = 400, "InvalidSignatureException"
    with pytest.raises(AwsFault, match="refused the AWS credentials"):
        AwsService("dynamodb").call(UPDATE, {})
    assert len(server.history) == 1
