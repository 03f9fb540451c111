"""Errors over HTTP: a status, a code and one plain sentence without internal details.

Every error becomes a `Rejection`: those of `chapterverse.errors` by the table below, others as `internal`. The log gets
the cause; the response names no file, no class and nothing from the request. Of an invalid request it says the field
and the rule, never the value. At addresses of OpenAI's API it has the form of OpenAI's errors.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import BaseModel, ValidationError

from chapterverse import errors
from chapterverse_api import log
from chapterverse_api.contract import (
    ChatQuery,
    ErrorBody,
    ErrorResponse,
    Feedback,
    Message,
    RetrievalRequest,
    Signature,
    StreamError,
)
from chapterverse_api.request_limits import MAX_HEAD_BYTES

if TYPE_CHECKING:
    from starlette.responses import JSONResponse
    from starlette.types import Receive, Scope, Send

#: Addresses of OpenAI's API, whose clients expect its errors.
OPENAI_PATHS = frozenset({"/v1/chat/completions", "/v1/models", "/v1/models/chapterverse"})

_BY_ERROR: dict[type[Exception], tuple[int, str, str]] = {
    errors.IndexMissing: (503, "index_missing", "This documentation has not been indexed yet."),
    errors.IndexMismatch: (
        503,
        "index_mismatch",
        "The index of this documentation does not fit this service; its owner has to rebuild one of them.",
    ),
    errors.IndexFault: (503, "index_unavailable", "The index of this documentation can't be read right now."),
    errors.ProviderError: (503, "provider_unavailable", "The model that answers can't be reached right now."),
    errors.ConfigurationError: (503, "misconfigured", "This service is not set up correctly: its owner has to fix it."),
    Exception: (500, "internal", "Something went wrong on our side."),
}

_BY_STATUS: dict[int, tuple[str, str]] = {
    404: ("not_found", "There is nothing at this address."),
    405: ("method_not_allowed", "This address does not take that method."),
}

_DESCRIPTIONS = {
    400: "Malformed: not UTF-8, or not strict JSON",
    403: "The origin is not allowed, or the service is not reached by this name",
    404: "Nothing at this address",
    413: "The body is too large",
    415: "The body is not application/json",
    422: "Out of contract: `field` names what to change",
    429: "Too many requests of one client: `Retry-After` says how many seconds to wait",
    500: "Something went wrong on our side",
    503: "Nothing can be answered at all right now",
}

_RESPONSE_HEADERS: dict[int, dict[str, Any]] = {
    429: {
        "headers": {
            "Retry-After": {"description": "Seconds", "schema": {"type": "integer", "minimum": 1}},
            "X-Work": {"description": "A challenge, where `code` is `work_required`", "schema": {"type": "string"}},
        }
    }
}
#: A model in its place would be built anew for each status of each route, which takes a cold start 15 ms.
_ERRORS = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorResponse"}}}}

_MODELS: tuple[type[BaseModel], ...] = (ChatQuery, RetrievalRequest, Feedback, Message, Signature)
_Request = TypeVar("_Request", bound=BaseModel)
#: Only these names may appear in a message; any other name in an error's path comes from the caller.
_KNOWN_FIELDS = {name for model in _MODELS for name in model.model_fields} | {"doc_type"}

_RULES_BY_ERROR_TYPE: dict[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "is no field of this request",
    "string_type": "must be text",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "literal_error": "must be {expected}",
    "string_too_short": "must hold at least {min_length} {unit}",
    "string_too_long": "must hold at most {max_length} {unit}",
    "string_pattern_mismatch": "holds a character that is not allowed here",
    "too_short": "must hold at least {min_length} {unit}",
    "too_long": "must hold at most {max_length} {unit}",
    "greater_than_equal": "must be at least {ge:g}",
    "less_than_equal": "must be at most {le:g}",
    "value_error": "{error}",
}


class Rejection(Exception):
    """A request that gets no answer, and the application that says so.

    Attributes:
        status: the HTTP status.
        code: a stable word for programs.
        message: one sentence for people.
        field: dotted path of the field to change, if there is one.
        retryable: whether the same request may succeed later.
        retry_after: seconds until then, if known.
        headers: those of the response.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        field: str | None = None,
        retryable: bool = False,
        retry_after: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.field = status, code, message, field
        self.retryable, self.retry_after = retryable, retry_after
        self.headers = ({} if retry_after is None else {"retry-after": str(retry_after)}) | dict(headers or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.response(scope.get("path", ""))(scope, receive, send)

    def response(self, path: str = "") -> JSONResponse:
        """Return the response to a request for this path."""
        # Lazy: a command's help needs no server to be installed.
        from starlette.responses import JSONResponse

        return JSONResponse(self.document(path), self.status, self.headers)

    def event(self, path: str) -> str:
        """Return the last event of a stream that this ended."""
        if path in OPENAI_PATHS:
            return f"data: {json.dumps(self.document(path))}\n\n"
        error = StreamError(code=self.code, message=self.message, retryable=self.retryable)
        return f"event: error\ndata: {error.model_dump_json()}\n\n"

    def document(self, path: str = "") -> dict[str, Any]:
        """Return the body of the response, at an address of OpenAI's API in the form of its reference."""
        if path in OPENAI_PATHS:
            client_error = "rate_limit_error" if self.status == 429 else "invalid_request_error"
            kind = "server_error" if self.status >= 500 else client_error
            return {"error": {"message": self.message, "type": kind, "param": self.field, "code": self.code}}
        answer = ErrorResponse(error=ErrorBody(code=self.code, message=self.message, field=self.field))
        return answer.model_dump(exclude_none=True)


def head_too_large() -> Rejection:
    """Return the rejection of a request whose line and headers are over `MAX_HEAD_BYTES`."""
    return Rejection(431, "headers_too_large", f"The headers are over {MAX_HEAD_BYTES // 1024} KB.")


def from_error(error: Exception, site: str = "") -> Rejection:
    """Return the rejection for `error`; if `site` is known, a 503 names it as an alternative."""
    if isinstance(error, Rejection):
        return error
    if isinstance(error, errors.InputError):
        return Rejection(422, "out_of_contract", str(error), field=error.field)
    kind = next(kind for kind in type(error).__mro__ if kind in _BY_ERROR)
    status, code, message = _BY_ERROR[kind]
    if status == 503 and site:
        message = f"{message} Meanwhile {site} has its own search."
    retryable = isinstance(error, errors.IndexFault) or getattr(error, "retryable", False)
    return Rejection(status, code, message, retryable=retryable)


def from_status(status: int, headers: Mapping[str, str] | None = None) -> Rejection:
    """Return the rejection for a request that the router rejected, with these headers."""
    code, message = _BY_STATUS.get(status, ("refused", "This request can't be answered."))
    return Rejection(status, code, message, headers=headers)


def make_query(**fields: Any) -> ChatQuery:
    """Return a query with these fields, validated like an HTTP request.

    Raises:
        InputError: a field is invalid; the message is the same as in the 422 response.
    """
    return parse_request(ChatQuery, fields)


def parse_request(model: type[_Request], document: object, *, subject: str = "The body") -> _Request:
    """Return a request from a parsed body, or from what `subject` names.

    Raises:
        InputError: it does not fit the contract; the message is the same as in the 422 response.
    """
    try:
        return model.model_validate(document)
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()]
        rejected = from_problems(problems, model.model_fields, subject=subject)
        raise errors.InputError(rejected.message, field=rejected.field) from None


def from_problems(
    problems: Sequence[Mapping[str, Any]], names: Collection[str] = (), *, subject: str = "The body"
) -> Rejection:
    """Return the rejection for the first of pydantic's `problems`.

    Args:
        names: names of fields that a message may hold, beside those of the contract.
        subject: the subject of the sentence if the problem is in no field.
    """
    problem, known_names = problems[0], _KNOWN_FIELDS.union(names)
    # FastAPI puts the value's origin first: body, path or query.
    location = problem["loc"][1:]
    known_path = list(takewhile(lambda part: isinstance(part, int) or part in known_names, location))
    field = ".".join(str(part) for part in known_path) or None
    rule = _describe(problem, inside=len(known_path) < len(location))
    if field is None and problem["type"] == "value_error":
        # A rule over several fields has no path; its message starts with the field to change.
        first = rule.partition(" ")[0]
        return Rejection(422, "out_of_contract", f"{rule}.", field=first if first in known_names else None)
    return Rejection(422, "out_of_contract", f"{field or subject} {rule}.", field=field)


def _describe(problem: Mapping[str, Any], *, inside: bool) -> str:
    if inside and problem["type"] == "extra_forbidden":
        return "holds a field that the contract does not have"
    if inside:
        return "holds a value of the wrong kind"
    unit = "characters" if isinstance(problem["input"], str) else "items"
    rule = _RULES_BY_ERROR_TYPE.get(problem["type"], "is not what the contract asks for")
    return rule.format_map({**problem.get("ctx", {}), "unit": unit})


def report(error: Exception, *, turn_id: str | None = None, site: str = "", **fields: Any) -> Rejection:
    """Return the rejection for `error` (see `from_error`), and log the cause if the status is 500 or higher.

    Args:
        fields: further fields of the event (see `log.event`), such as the `part` that failed.
    """
    rejection = from_error(error, site)
    if rejection.status >= 500:
        log.event(
            "error",
            turn_id=turn_id,
            code=rejection.code,
            **log.error_origin(error),
            # Only our own messages never quote the reader; a ValueError may contain the question.
            message=str(error) if isinstance(error, errors.ChapterVerseError) else None,
            **fields,
        )
    return rejection


def openapi_entries(*statuses: int, errors: Mapping[str, Any] = _ERRORS) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI entries of these rejections, where `errors` describes their body."""
    return {
        status: {"description": _DESCRIPTIONS[status], **errors, **_RESPONSE_HEADERS.get(status, {})}
        for status in statuses
    }
