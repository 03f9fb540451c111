"""Opens the reranker that the settings name."""

from __future__ import annotations

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.retrieval.rerankers.protocols import Reranker


def open_reranker(settings: Settings) -> Reranker | None:
    """Return the reranking model that `settings.reranker` names; None for `none`, and for `local`, which is no model.

    Raises as `open_offer` does.
    """
    reranker: Reranker | None = open_offer("reranker", settings)
    return reranker
