"""Describes a breach of contract in one sentence: the field and the rule, never the value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from pydantic import BaseModel, ValidationError

from chapterverse.errors import InputError
from chapterverse_api.contract import ChatQuery, Feedback, Message, RetrievalRequest, Signature
from chapterverse_api.rejections import Rejection

_MODELS: tuple[type[BaseModel], ...] = (ChatQuery, RetrievalRequest, Feedback, Message, Signature)
#: Only these may stand in a refusal: every other name in an error's path was made up by the caller.
_FIELDS = {name for model in _MODELS for name in model.model_fields}

_MUST: dict[str, str] = {
    "missing": "is missing",
    "extra_forbidden": "holds a field that the contract does not have",
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


def checked(**fields: Any) -> ChatQuery:
    """Return a query of these fields, by the same rules as one that came over HTTP.

    Raises:
        InputError: they are out of contract; the sentence is that of the 422.
    """
    try:
        return ChatQuery(**fields)
    except ValidationError as error:
        told = rejection([{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors()])
        raise InputError(told.message, field=told.field) from None


def rejection(problems: Sequence[Mapping[str, Any]]) -> Rejection:
    """Return the refusal for the first of pydantic's `problems`."""
    problem = problems[0]
    # FastAPI says first where a value came from: the body, the path, the query.
    location = problem["loc"][1:]
    if problem["type"] == "extra_forbidden":
        # What is wrong is the object: the field's own name may be one of another route.
        location = location[:-1]
    ours = list(takewhile(lambda part: isinstance(part, int) or part in _FIELDS, location))
    field = ".".join(str(part) for part in ours) or None
    rule = _rule(problem, inside=len(ours) < len(location))
    if field is None and problem["type"] == "value_error":
        # A rule over several fields stands at the top, and its own sentence begins with the one to change.
        first = rule.partition(" ")[0]
        return Rejection(422, "out_of_contract", f"{rule}.", field=first if first in _FIELDS else None)
    return Rejection(422, "out_of_contract", f"{field or 'The body'} {rule}.", field=field)


def _rule(problem: Mapping[str, Any], *, inside: bool) -> str:
    if inside and problem["type"] != "extra_forbidden":
        return "holds a value of the wrong kind"
    unit = "characters" if isinstance(problem["input"], str) else "items"
    rule = _MUST.get(problem["type"], "is not what the contract asks for")
    return rule.format_map({**problem.get("ctx", {}), "unit": unit})
