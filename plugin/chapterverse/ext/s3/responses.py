"""Reads S3's responses: documents in XML, and errors, each of which becomes one sentence with the fault and the remedy.

The responses are not trusted, because an operator or a network decides which server answers. Messages repeat only the
bucket's name and S3's short code, because an address may hold a password, and an answer any text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

from chapterverse.errors import ChapterVerseError, ConfigurationError, IndexFault, IndexUnavailable
from chapterverse.ext.net.client import Reply
from chapterverse.ext.net.stream import Stream

#: Elements in each other. A listing has four.
_MAX_DEPTH = 16


class MalformedReply(ValueError):
    """The bytes are no XML that S3 sends."""


def _parse_xml(raw: bytes) -> Element:
    """Return the root of a document. Tags have no namespace, because not every service writes it.

    Raises:
        MalformedReply: it is no XML, or has a document type or too many levels.
    """
    parser = XMLParser(target=_Plain())  # noqa: S314 entities are declared in a document type, which is refused
    try:
        parser.feed(raw)
        root = parser.close()
    # An unknown encoding is a `LookupError`.
    except (ParseError, ValueError, LookupError):
        raise MalformedReply from None
    assert isinstance(root, Element)
    return root


def error_code(raw: bytes) -> str:
    """Return S3's code in the body of an error, "" without one."""
    try:
        root = _parse_xml(raw)
    except MalformedReply:
        return ""
    return (root.findtext("Code") or "") if root.tag == "Error" else ""


def parse_listing(raw: bytes) -> tuple[list[Mapping[str, str]], str]:
    """Return the objects of a page by the names of their fields, and the token of the next page, "" at the end.

    Raises:
        MalformedReply: the document is no page of a listing.
    """
    root = _parse_xml(raw)
    if root.tag != "ListBucketResult":
        raise MalformedReply
    objects = [{field.tag: field.text or "" for field in entry} for entry in root.findall("Contents")]
    if root.findtext("EncodingType") == "url":
        objects = [{**entry, "Key": unquote(entry["Key"])} for entry in objects if "Key" in entry]
    more = root.findtext("NextContinuationToken", "") if root.findtext("IsTruncated") == "true" else ""
    return [*objects], more


class _Plain(TreeBuilder):
    """Builds a tree without namespaces, and rejects document types and deep nesting."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def doctype(self, *_: Any) -> None:
        raise MalformedReply

    def start(self, tag: str, attrs: dict[Any, Any], /) -> Element:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise MalformedReply
        return super().start(tag.rpartition("}")[2], attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag.rpartition("}")[2])


class Missing(IndexFault):
    """There is no such object."""


class NotModified(IndexFault):
    """The object has not changed since the caller read it."""


class S3Rejection(IndexFault):
    """The condition of a write does not hold."""


class Conflict(S3Rejection):
    """Another write to the same object is in progress, so it is not known yet whether the condition holds."""


_ANSWERS: dict[str, type[IndexFault]] = {
    "NoSuchKey": Missing, "404": Missing, "InvalidRange": Missing, "416": Missing,
    "304": NotModified, "NotModified": NotModified,
    "PreconditionFailed": S3Rejection, "412": S3Rejection,
    "ConditionalRequestConflict": Conflict, "OperationAborted": Conflict, "409": Conflict,
}  # fmt: skip
_NO_BUCKET = {"NoSuchBucket", "InvalidBucketName"}
_BAD_KEY = {"InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
_DENIED = {"AccessDenied", "AllAccessDisabled", "AccountProblem", "Forbidden", "403"}
_BUSY = {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling", "ThrottlingException",
         "TooManyRequests", "RequestLimitExceeded", "429", "500", "502", "503", "504"}  # fmt: skip
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
_NOT_IMPLEMENTED = {"NotImplemented", "501"}
_CODE = re.compile(r"[A-Za-z0-9.]{1,64}")
_REGION = re.compile(r"[a-z0-9-]{1,40}")


def s3_error(answer: Reply | Stream, bucket: str, permission: str) -> ChapterVerseError:
    """Return the error of an answer.

    Args:
        permission: the permission that the request needs, such as "s3:PutObject".
    """
    if answer.status < 300:
        return malformed_error(bucket)
    # An answer to HEAD has no body, and so no code.
    code = error_code(answer.raw) or str(answer.status)
    if code in _ANSWERS:
        return _ANSWERS[code](f"s3://{bucket} answered {code}: run it again.")
    if code in _NO_BUCKET:
        return ConfigurationError(f"There is no bucket {bucket!r}: create it, or correct the address of the store.")
    if code in _BAD_KEY:
        return ConfigurationError(f"S3 does not accept the AWS credentials for s3://{bucket} ({code}): renew them.")
    region = answer.headers.get("x-amz-bucket-region", "")
    if code in _ELSEWHERE or (code == "400" and region):
        setting = f"AWS_REGION={region}" if _REGION.fullmatch(region) else "AWS_REGION to its own"
        return ConfigurationError(f"s3://{bucket} is in another region: set {setting}.")
    if code in _DENIED:
        return ConfigurationError(f"S3 denies access to s3://{bucket}: allow {permission}.")
    if code in _BUSY:
        return IndexUnavailable(
            f"s3://{bucket} is too busy to answer ({code}), also after retries: run it again later."
        )
    if code == "RequestTimeTooSkewed":
        return IndexFault("S3 refuses requests by a clock that is wrong by minutes: set the clock of this machine.")
    if code in _NOT_IMPLEMENTED:
        return unconditional_error(bucket)
    name = code if _CODE.fullmatch(code) else "an unknown code"
    return IndexFault(f"s3://{bucket} refused a request ({name}): see the error codes of S3.")


def unreachable_error(bucket: str) -> IndexUnavailable:
    """Return the error for every failure of the network, including an answer that breaks off."""
    return IndexUnavailable(
        f"s3://{bucket} can't be reached: check the network, AWS_ENDPOINT_URL and AWS_REGION, then run again."
    )


def malformed_error(bucket: str) -> IndexFault:
    """Return the error of an answer that S3 does not give."""
    return IndexFault(f"s3://{bucket} answered with something that S3 never says: check AWS_ENDPOINT_URL.")


def unconditional_error(bucket: str) -> ConfigurationError:
    """Return the error of a service that ignores the condition of a write."""
    return ConfigurationError(
        f"The service of s3://{bucket} has no conditional writes (If-Match, If-None-Match), without which two builds "
        "could break each other's index: use Amazon S3 or a service that has them."
    )
