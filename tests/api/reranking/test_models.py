"""The table of models is the one that the documentation shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chapterverse.settings import Settings
from chapterverse_api.reranking import open_reranker
from chapterverse_api.reranking.models import MODELS, Model

PAGE = Path(__file__).parents[3] / "site_example" / "docs" / "how-it-works" / "retrieval.md"


def price(model: Model) -> str:
    if model.per_search:
        return f"${model.per_search * 1000:.2f} for 1,000 questions"
    return f"${model.per_million:.2f} for a million tokens"


def test_the_documentation_lists_the_models_with_what_they_read_and_cost() -> None:
    rows = re.findall(r"^\| `((?:cohere|bedrock):\S+)` \| (.+?) \| (.+?) \|$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert rows == [(name, f"{model.context:,} tokens", price(model)) for name, model in MODELS.items()]


@pytest.mark.parametrize("name", [name for name in MODELS if name.startswith("cohere:")])
def test_a_listed_name_is_one_that_a_reranker_has(name: str) -> None:
    opened = open_reranker(Settings(reranker=name, cohere_api_key="k"))
    assert opened is not None
    assert opened.name == name
