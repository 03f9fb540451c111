"""Opens the reranker that the settings name."""

from __future__ import annotations

from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api.retrieval.rerankers.protocols import Reranker


def open_reranker(settings: Settings) -> Reranker | None:
    """Return the reranking model that `settings.reranker` names; None for `none`, and for `local`, which is no model.

    Raises:
        ConfigurationError: no such reranker, or its key or package is missing.
    """
    kind, _, model = settings.reranker.partition(":")
    if settings.reranker in {"none", "local"}:
        return None
    if kind == "cohere":
        from chapterverse_api.retrieval.rerankers.cohere import CohereReranker

        return CohereReranker.from_settings(settings, model)
    if kind == "bedrock":
        from chapterverse_api.retrieval.rerankers.bedrock import BedrockReranker

        return BedrockReranker.open(model)
    raise ConfigurationError(
        f"There is no reranker named {settings.reranker!r}: use none, local, cohere[:MODEL] or bedrock:MODEL."
    )
