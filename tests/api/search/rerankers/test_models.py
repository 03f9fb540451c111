"""A reranker accepts every model that the documentation lists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from chapterverse.extensions import open_offer
from chapterverse.settings import Settings

PAGE = Path(__file__).parents[4] / "site_example" / "docs" / "how-it-works" / "retrieval.md"
LISTED = re.findall(r"`((?:cohere|bedrock):\S+)`", PAGE.read_text("utf-8"))


def test_the_documentation_lists_models_of_both_providers() -> None:
    assert {name.partition(":")[0] for name in LISTED} == {"cohere", "bedrock"}


@pytest.mark.parametrize("name", [name for name in LISTED if name.startswith("cohere:")])
def test_a_listed_name_is_one_that_a_reranker_has(name: str) -> None:
    opened = open_offer("reranker", Settings(reranker=name, cohere_api_key="k"))
    assert opened is not None
    assert opened.name == name
