"""Parses request bodies strictly: bytes to JSON or one rejection, in linear time.

Python's parser accepts NaN, duplicate keys, numbers of any length and lone surrogates. Each breaks something later
(JSON writers, databases, caches), so all are rejected here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute

from chapterverse.text.json_text import INTEGERS, NestedTooDeep, check_depth
from chapterverse_api.rejections import Rejection
from chapterverse_api.request_limits import MAX_BODY_BYTES, MAX_BODY_LEVELS, MAX_NUMBER_CHARS


class GuardedRoute(APIRoute):
    """A route whose body is read by `read` instead of by FastAPI."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def check_then_handle(request: Request) -> Response:
            if self.body_field is not None:
                request = _ParsedRequest(request, await read(request))
            return await handle(request)

        return check_then_handle


class _ParsedRequest(Request):
    """A request with its body read and parsed."""

    def __init__(self, request: Request, raw: bytes) -> None:
        super().__init__(request.scope, request.receive)
        self._raw = raw
        self._value = parse(raw)

    async def body(self) -> bytes:
        return self._raw

    async def json(self) -> Any:
        return self._value


async def read(request: Request, limit: int = MAX_BODY_BYTES) -> bytes:
    """Return the body of a JSON request.

    Raises:
        Rejection: 415 for another content type or an encoded body, 413 over `limit` bytes.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" or request.headers.get("content-encoding", "identity") != "identity":
        raise Rejection(415, "not_json", "Send the body as plain application/json.")
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and (len(declared) > 9 or int(declared) > limit):
        raise _too_large(limit)
    raw = bytearray()
    # Count while reading, because a chunked body declares no length and a client may lie.
    async for piece in request.stream():
        raw += piece
        if len(raw) > limit:
            raise _too_large(limit)
    return bytes(raw)


def parse(raw: bytes) -> dict[str, Any]:
    """Return the JSON object in `raw`.

    Raises:
        Rejection: 400 for anything but strict JSON in UTF-8, 422 for a value that is no object.
    """
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        raise _malformed_error("The body is not valid UTF-8.") from None
    try:
        check_depth(text, MAX_BODY_LEVELS)
        value = json.loads(
            text,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except NestedTooDeep:
        raise _malformed_error(f"The body is nested deeper than {MAX_BODY_LEVELS} levels.") from None
    except json.JSONDecodeError:
        raise _malformed_error("The body is not valid JSON.") from None
    for string in _strings(value):
        _check_string(string)
    if not isinstance(value, dict):
        raise Rejection(422, "out_of_contract", "The body must be a JSON object.")
    return value


def _integer(digits: str) -> int:
    if len(digits) > MAX_NUMBER_CHARS or int(digits) not in INTEGERS:
        raise _malformed_error("The body holds a number that is too large.")
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > MAX_NUMBER_CHARS or float(digits) in (float("inf"), float("-inf")):
        raise _malformed_error("The body holds a number that is too large.")
    return float(digits)


def _constant(_: str) -> NoReturn:
    raise _malformed_error("The body holds NaN or Infinity, which JSON does not have.")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _malformed_error("The body holds an object with the same key twice.")
    return value


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from _strings(item)


def _check_string(string: str) -> None:
    if "\0" in string:
        raise _malformed_error("The body holds a NUL character.")
    try:
        string.encode()
    except UnicodeEncodeError:
        raise _malformed_error("The body holds half of a surrogate pair.") from None


def _malformed_error(message: str) -> Rejection:
    return Rejection(400, "malformed", message)


def _too_large(limit: int) -> Rejection:
    return Rejection(413, "too_large", f"The body is over {limit // 1024} KB.")
