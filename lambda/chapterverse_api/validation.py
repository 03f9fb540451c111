"""Describes an invalid request in one sentence: the field and the rule, never the value."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from chapterverse.errors import InputError
from chapterverse_api.contract import ChatQuery, Feedback, Message, RetrievalRequest, Signature
from chapterverse_api.rejections import Rejection

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
        rejected = rejection(problems, model.model_fields, subject=subject)
        raise InputError(rejected.message, field=rejected.field) from None


def rejection(
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
