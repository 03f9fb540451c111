"""`GET /v1/schema`: the JSON Schemas of the documents that the index and the conversations consist of."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import APIRouter
from starlette.responses import JSONResponse

from chapterverse_api.rejections import openapi_entries

router = APIRouter(prefix="/v1")

_SCHEMA = {
    "type": "object",
    "properties": {
        "document_type": {"type": "string"},
        "schema": {"type": "object"},
        "fields": {"type": "array", "items": {"type": "string"}},
        "required_fields": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["document_type", "schema", "fields", "required_fields"],
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The schema of `doc_type`; without it, an object with those of all types by name.",
        "content": {
            "application/json": {
                "schema": {"anyOf": [_SCHEMA, {"type": "object", "additionalProperties": _SCHEMA}]},
            }
        },
    }
}


@router.get("/schema", responses=_ANSWER | openapi_entries(403, 422))
async def schema(
    doc_type: Literal["page", "persona", "faq", "memory", "turn", "summary"] | None = None,
) -> JSONResponse:
    """Return the JSON Schema of one type of documents, or of all."""
    # Imported here: a cold start need not build the models.
    from chapterverse.knowledge.metadata import get_all_schemas, get_schema

    return JSONResponse(get_schema(doc_type) if doc_type else get_all_schemas())
