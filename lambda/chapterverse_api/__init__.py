"""The service: answers questions over HTTP with citations.

The names of this package are what an extension builds with. Each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chapterverse_api.answer.event import AnswerGiven
    from chapterverse_api.app import create_app
    from chapterverse_api.draft.draft import AnswerGenerator, Checker, CheckRequest, Span
    from chapterverse_api.draft.requests import GenerationRequest, Passage
    from chapterverse_api.ext.conversations.records import Records
    from chapterverse_api.limits import Limiter
    from chapterverse_api.search.lookups import LookupQuery, LookupResult, make_candidate
    from chapterverse_api.search.ranking import Candidate
    from chapterverse_api.search.rerankers import Reranker

#: The public names by the module that defines them.
_PLACES = {
    "answer.event": "AnswerGiven",
    "app": "create_app",
    "draft.draft": "AnswerGenerator CheckRequest Checker Span",
    "draft.requests": "GenerationRequest Passage",
    "limits": "Limiter",
    "ext.conversations.records": "Records",
    "search.lookups": "LookupQuery LookupResult make_candidate",
    "search.ranking": "Candidate",
    "search.rerankers": "Reranker",
}

__all__ = [
    "AnswerGenerator",
    "AnswerGiven",
    "Candidate",
    "CheckRequest",
    "Checker",
    "GenerationRequest",
    "Limiter",
    "LookupQuery",
    "LookupResult",
    "Passage",
    "Records",
    "Reranker",
    "Span",
    "create_app",
    "make_candidate",
]


def __getattr__(name: str) -> Any:
    for module, names in _PLACES.items():
        if name in names.split():
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
