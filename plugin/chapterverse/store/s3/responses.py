"""What S3 says in XML. It is read with suspicion: an endpoint is whatever an operator, or a network, makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, XMLParser

#: A listing is four deep.
_DEEPEST = 16


class OddAnswerError(ValueError):
    """It is no XML that S3 would send."""


def parsed(raw: bytes) -> Element:
    """Return the root of a document, tags without their namespace, which not every service writes.

    Raises:
        OddAnswerError: as above.
    """
    parser = XMLParser(target=_Plain())  # noqa: S314 entities are declared in a document type, which is refused
    try:
        parser.feed(raw)
        root = parser.close()
    # An unknown encoding is a `LookupError`.
    except (ParseError, ValueError, LookupError):
        raise OddAnswerError from None
    assert isinstance(root, Element)
    return root


def error_code(raw: bytes) -> str:
    """Return S3's code in the body of an error, "" where there is none."""
    try:
        root = parsed(raw)
    except OddAnswerError:
        return ""
    return (root.findtext("Code") or "") if root.tag == "Error" else ""


def listed(raw: bytes) -> tuple[list[Mapping[str, str]], str]:
    """Return the objects of a page by the names of their fields, and what asks for the next page, "" at the end.

    Raises:
        OddAnswerError: it is no page of a listing.
    """
    root = parsed(raw)
    if root.tag != "ListBucketResult":
        raise OddAnswerError
    found = [{field.tag: field.text or "" for field in entry} for entry in root.findall("Contents")]
    if root.findtext("EncodingType") == "url":
        found = [{**entry, "Key": unquote(entry["Key"])} for entry in found if "Key" in entry]
    more = root.findtext("NextContinuationToken", "") if root.findtext("IsTruncated") == "true" else ""
    return [*found], more


class _Plain(TreeBuilder):
    """A tree without namespaces, document types, and depths that nobody needs."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def doctype(self, *_: Any) -> None:
        raise OddAnswerError

    def start(self, tag: str, attrs: dict[Any, Any], /) -> Element:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise OddAnswerError
        return super().start(tag.rpartition("}")[2], attrs)

    def end(self, tag: str, /) -> Element:
        self._depth -= 1
        return super().end(tag.rpartition("}")[2])
