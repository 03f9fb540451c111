"""What is documented of the reranking models; one that is not listed here may be named too."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    """One model as its provider documents it.

    Attributes:
        context: tokens of question and text together that it reads at once; of the question at most half of them in
            the model with the shortest. A chunk is far below all of them, so none is ever cut.
        per_search: US dollars for a question with up to 100 texts, where it is charged so.
        per_million: US dollars for a million tokens of questions and texts, where it is charged so.
    """

    context: int
    per_search: float = 0.0
    per_million: float = 0.0


#: By `Reranker.name`. Context: Cohere's and Amazon's documentation; prices: listings of November 2026, Cohere's by
#: others than Cohere, good for an estimate and no more.
MODELS = {
    "cohere:rerank-v3.5": Model(4096, per_search=0.0020),
    "cohere:rerank-v4.0-fast": Model(32_768, per_search=0.0020),
    "cohere:rerank-v4.0-pro": Model(32_768, per_search=0.0025),
    "cohere:rerank-v5.0-fast": Model(32_768, per_million=0.02),
    "cohere:rerank-v5.0-pro": Model(32_768, per_million=0.05),
    "bedrock:cohere.rerank-v3-5:0": Model(4096, per_search=0.0020),
}
