"""The service: answers questions over HTTP with citations.

The names of this package are what an extension builds with. Each is loaded when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from chapterverse_api.app import create_app
    from chapterverse_api.check.checkers import Checker, CheckRequest
    from chapterverse_api.draft.draft import Span
    from chapterverse_api.draft.passage import Passage
    from chapterverse_api.draft.protocols import AnswerGenerator
    from chapterverse_api.draft.requests import GenerationRequest
    from chapterverse_api.limits.protocols import Limiter
    from chapterverse_api.records.protocols import Records
    from chapterverse_api.search.rerankers import Reranker

#: The modules that define the public names.
_PLACES = {
    "AnswerGenerator": "draft.protocols",
    "CheckRequest": "check.checkers",
    "Checker": "check.checkers",
    "GenerationRequest": "draft.requests",
    "Limiter": "limits.protocols",
    "Passage": "draft.passage",
    "Records": "records.protocols",
    "Reranker": "search.rerankers",
    "Span": "draft.draft",
    "create_app": "app",
}

__all__ = [
    "AnswerGenerator",
    "CheckRequest",
    "Checker",
    "GenerationRequest",
    "Limiter",
    "Passage",
    "Records",
    "Reranker",
    "Span",
    "create_app",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
