"""Possible responses of S3 and compatible servers: all kinds of XML, other regions, other clocks, half a file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from xml.sax.saxutils import escape

import pytest

from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexFault
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.responses import MalformedReply, error_code, parse_listing
from fakes.loopback import Answer, Fault, LoopbackServer, Request

WRITTEN = "2026-11-21T16:05:09.000Z"
ENTRY = f'<Contents><Key>KEY</Key><LastModified>{WRITTEN}</LastModified><ETag>"e"</ETag><Size>1</Size></Contents>'
NAMESPACE = ' xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


def page(*keys: str, more: str = "", namespace: str = NAMESPACE, encoding: str = "") -> bytes:
    token = f"<NextContinuationToken>{more}</NextContinuationToken>" if more else ""
    entries = "".join(ENTRY.replace("KEY", escape(key)) for key in keys)
    kind = f"<EncodingType>{encoding}</EncodingType>" if encoding else ""
    truncated = f"<IsTruncated>{'true' if more else 'false'}</IsTruncated>"
    return f"<ListBucketResult{namespace}>{truncated}{token}{kind}{entries}</ListBucketResult>".encode()


class Played(LoopbackServer):
    """Plays its responses in sequence, then repeats the last; each is a status, a body and headers."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[tuple[int, bytes, dict[str, str]]] = []

    def give(self, status: int, body: bytes = b"", **headers: str) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answers.append((status, body, {"ETag": '"e"', "Last-Modified": _now(), "Date": _now(), **named}))

    def answer(self, request: Request) -> Answer:
        status, body, headers = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Answer(status, body, headers)


def _now(ahead: timedelta = timedelta()) -> str:
    return format_datetime(datetime.now(UTC) + ahead, usegmt=True)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Played]:
    with Played() as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", running.url)
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing-secret")
        yield running


@pytest.fixture
def bucket(server: Played) -> Bucket:
    return Bucket.open("s3://bucket/p")


def said(error: BaseException) -> str:
    text = str(error)
    assert isinstance(error, ChapterVerseError)
    assert "testing-secret" not in text
    assert "\n" not in text
    assert text.endswith(".")
    return text


# Listings


def test_a_listing_is_read_page_by_page(server: Played, bucket: Bucket) -> None:
    server.give(200, page("p/a", more="t&amp;=/+"))
    server.give(200, page("p/b%20%2B%0A", encoding="url"))
    assert [o.key for o in bucket.list()] == ["a", "b +\n"]
    first, second = server.history
    assert first.path == "/bucket/?encoding-type=url&list-type=2&prefix=p%2F"
    assert second.path == "/bucket/?continuation-token=t%26%3D%2F%2B&encoding-type=url&list-type=2&prefix=p%2F"


def test_a_service_need_not_write_a_namespace(server: Played, bucket: Bucket) -> None:
    server.give(200, page("p/a", namespace=""))
    (found,) = bucket.list()
    assert (found.key, found.etag) == ("a", '"e"')


def test_a_listing_without_an_end_is_not_followed(server: Played, bucket: Bucket) -> None:
    server.give(200, page("p/a", more="again"))
    assert len([*bucket.list()]) == 2


LAUGHS = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>' + page("&b;")
ODD = [
    b"", b"{}", b"<html>", b"<html/>", b"<ListBucketResult>", page("p/a")[:-5], LAUGHS, b"\xff\xfe", b"\0",
    b'<!DOCTYPE x SYSTEM "file:///etc/passwd">' + page("p/a"), LAUGHS.decode().encode("utf-16"),
    b'<?xml version="1.0" encoding="no-such"?>' + page("p/a"), b"<a>" * 100_000, b"<ListBucketResult>" * 40,
    page("p/a").replace(WRITTEN.encode(), b"yesterday"), page("p/a").replace(WRITTEN.encode(), b"2026-11-21T16:05:09"),
    page("p/a").replace(b"<Key>p/a</Key>", b""), page("p/a").replace(b"ETag", b"Other"),
]  # fmt: skip


@pytest.mark.parametrize("body", ODD, ids=range(len(ODD)))
def test_a_listing_that_s3_would_not_send(server: Played, bucket: Bucket, body: bytes) -> None:
    server.give(200, body)
    with pytest.raises(IndexFault) as caught:
        [*bucket.list()]
    assert said(caught.value) == ("s3://bucket answered with something that S3 never says: check AWS_ENDPOINT_URL.")


def test_entities_and_files_are_not_read() -> None:
    for raw in (LAUGHS, b'<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><Error><Code>&f;</Code></Error>'):
        with pytest.raises(MalformedReply):
            parse_listing(raw)
        assert error_code(raw) == ""


# Documents


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_a_document_without_its_headers(server: Played, bucket: Bucket, header: str) -> None:
    server.give(200, b"{}")
    del server.answers[0][2][header]
    with pytest.raises(IndexFault, match="S3 never says"):
        bucket.read("x")


def test_a_document_without_an_end(server: Played, bucket: Bucket) -> None:
    server.give(200, bytes(17 << 20))
    with pytest.raises(IndexFault, match="S3 never says") as caught:
        bucket.read("x")
    said(caught.value)


def test_a_date_that_is_none_is_taken_for_now(server: Played, bucket: Bucket) -> None:
    server.give(200, b"{}", Date="soon")
    found = bucket.read("x")
    assert found
    assert found.age < 60


# Regions and clocks


@pytest.mark.parametrize(
    ("status", "code"), [(301, "PermanentRedirect"), (400, "AuthorizationHeaderMalformed"), (301, ""), (400, "")]
)
def test_a_bucket_in_another_region(server: Played, bucket: Bucket, status: int, code: str) -> None:
    body = f"<Error><Code>{code}</Code><Endpoint>testing-secret</Endpoint></Error>".encode() if code else b""
    server.give(status, body, x_amz_bucket_region="eu-west-1", Location="http://127.0.0.1:9/")
    acts: list[Any] = [lambda: bucket.read("x"), lambda: [*bucket.list()], lambda: [*bucket.stream("x", 9)]]
    for act in acts:
        with pytest.raises(ConfigurationError) as caught:
            act()
        assert said(caught.value) == "s3://bucket is in another region: set AWS_REGION=eu-west-1."


@pytest.mark.parametrize("region", ["", "x; rm -rf", "A" * 99, "\u00e9"])
def test_a_region_that_is_none_is_not_repeated(server: Played, bucket: Bucket, region: str) -> None:
    server.give(301, b"", **({"x_amz_bucket_region": region} if region.isascii() else {}))
    with pytest.raises(ConfigurationError, match="set AWS_REGION to its own"):
        bucket.read("x")


def test_a_wrong_clock_is_set_right_by_that_of_the_service(server: Played, bucket: Bucket) -> None:
    ahead = _now(timedelta(minutes=20))
    server.give(403, b"<Error><Code>RequestTimeTooSkewed</Code></Error>", Date=ahead)
    server.give(200, b"{}", Date=ahead)
    assert bucket.read("x")
    first, second = (datetime.fromisoformat(r.headers["x-amz-date"]) for r in server.history)
    assert timedelta(minutes=19) < second - first < timedelta(minutes=21)


def test_a_clock_that_can_t_be_set_right_is_told(server: Played, bucket: Bucket) -> None:
    server.give(403, b"<Error><Code>RequestTimeTooSkewed</Code></Error>", Date=_now(timedelta(minutes=20)))
    with pytest.raises(IndexFault) as caught:
        bucket.read("x")
    assert said(caught.value) == (
        "S3 refuses requests by a clock that is wrong by minutes: set the clock of this machine."
    )
    assert len(server.history) == 2


# Downloads


def test_a_download_goes_on_where_it_broke_off(server: Played, bucket: Bucket) -> None:
    server.give(200, b"0123456789")
    server.give(206, b"56789")
    server.play(Fault(cut=True), Fault())
    assert b"".join(bucket.stream("x", 10)) == b"0123456789"
    assert [r.headers.get("range") for r in server.history] == [None, "bytes=5-"]


def test_a_service_that_begins_anew_is_not_taken_for_one_that_goes_on(server: Played, bucket: Bucket) -> None:
    server.give(200, b"0123456789")
    server.play(Fault(cut=True), Fault())
    with pytest.raises(IndexFault, match="S3 never says"):
        b"".join(bucket.stream("x", 10))


def test_a_redirect_is_not_followed(server: Played, bucket: Bucket) -> None:
    server.give(307, b"<Error><Code>TemporaryRedirect</Code></Error>", Location="http://127.0.0.1:9/")
    with pytest.raises(IndexFault, match=r"refused a request \(TemporaryRedirect\)") as caught:
        bucket.read("x")
    said(caught.value)
    assert len(server.history) == 1
