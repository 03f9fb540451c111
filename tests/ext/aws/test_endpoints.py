"""Hosts of AWS services against botocore's own list."""

from __future__ import annotations

from pathlib import Path

import pytest
from botocore.session import Session

from chapterverse.ext.aws.environment import endpoint, region_for
from chapterverse.ext.net.address import Address
from chapterverse.ext.s3.bucket import bucket_address

REGIONS = [
    "us-east-1",
    "eu-central-1",
    "ap-southeast-7",
    "us-gov-west-1",
    "cn-north-1",
    "cn-northwest-1",
    "eusc-de-east-1",
]


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(name, raising=False)


def theirs(service: str, region: str) -> Address:
    client = Session().create_client(service, region, aws_access_key_id="a", aws_secret_access_key="b")
    return Address.parse(client.meta.endpoint_url)


@pytest.mark.parametrize("region", REGIONS)
@pytest.mark.parametrize("service", ["dynamodb", "secretsmanager", "ssm"])
def test_a_service_is_where_botocore_has_it(service: str, region: str) -> None:
    assert endpoint(service, region) == theirs(service, region)


@pytest.mark.parametrize(
    ("bucket", "place"),
    [
        ("docs", "https://docs.s3.eu-central-1.amazonaws.com"),
        ("docs.example.org", "https://s3.eu-central-1.amazonaws.com/docs.example.org"),
        ("Docs_Old", "https://s3.eu-central-1.amazonaws.com/Docs_Old"),
    ],
)
def test_a_bucket_has_a_host_of_its_own_where_a_certificate_allows(bucket: str, place: str) -> None:
    assert bucket_address(bucket, "eu-central-1") == Address.parse(place)


def test_a_bucket_in_china() -> None:
    assert bucket_address("docs", "cn-north-1") == Address.parse("https://docs.s3.cn-north-1.amazonaws.com.cn")


def test_a_bucket_of_another_service_is_in_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000/s3/")
    assert bucket_address("docs", "auto") == Address.parse("http://127.0.0.1:9000/s3/docs")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://ACCOUNT.example.org")
    assert bucket_address("docs", "auto") == Address.parse("https://account.example.org/docs")


def test_the_region_of_the_process_comes_before_that_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config").write_text("[default]\nregion = eu-west-1\n[profile other]\nregion = eu-west-2\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert region_for("s3") == "eu-west-1"
    monkeypatch.setenv("AWS_PROFILE", "other")
    assert region_for("s3") == "eu-west-2"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    assert region_for("s3") == "eu-west-3"
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert region_for("s3") == "eu-north-1"
    assert region_for("s3", "eu-south-1") == "eu-south-1"


@pytest.mark.parametrize(
    ("host", "said"), [("http://[::1]:8000", "[::1]:8000"), ("https://h:443", "h"), ("http://h", "h")]
)
def test_what_the_header_says(host: str, said: str) -> None:
    assert Address.parse(host).authority == said
