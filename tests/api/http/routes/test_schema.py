from __future__ import annotations

import subprocess
import sys

import pytest

from api.scripted import Client, Scripted, error_of
from chapterverse.errors import IndexMissing
from chapterverse.ext.knowledge.metadata import get_schemas
from chapterverse_api.app import create_app


def test_all_schemas_without_an_index() -> None:
    response = Client(create_app(Scripted([IndexMissing("x")]))).get("/v1/schema")
    assert response.json() == get_schemas()


@pytest.mark.parametrize("name", ["page", "persona", "faq", "memory", "turn", "summary"])
def test_one_schema(name: str) -> None:
    response = Client(create_app(Scripted())).get(f"/v1/schema?doc_type={name}")
    assert response.json() == get_schemas()[name]


@pytest.mark.parametrize("name", ["banana", "", "FAQ"])
def test_an_unknown_type_is_422(name: str) -> None:
    response = Client(create_app(Scripted())).get(f"/v1/schema?doc_type={name}")
    assert response.status_code == 422
    assert error_of(response) == {
        "code": "out_of_contract",
        "message": "doc_type must be 'page', 'persona', 'faq', 'memory', 'turn' or 'summary'.",
        "field": "doc_type",
    }


def test_a_cold_start_builds_no_model_of_a_document() -> None:
    program = "import sys, chapterverse_api.handler; sys.exit('chapterverse.ext.knowledge.metadata' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
