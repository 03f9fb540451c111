"""When a service has a meter, and that a site without a model does without one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from api import quill
from api.answer.test_pipeline import ScriptedGenerator
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse_api import log
from chapterverse_api.contract import RetrievalRequest
from chapterverse_api.ext.budget.circuit_breaker import FAILURE_THRESHOLD
from chapterverse_api.service import Service

QUESTION = "How do I clear the cache?"


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return quill.publish(tmp_path_factory.mktemp("plain"))


@pytest.mark.slow
def test_without_a_model_nothing_of_the_room_is_imported(plain: Settings) -> None:
    script = """
import sys
from fastapi.testclient import TestClient
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
app = create_app(settings=Settings(store=sys.argv[1]))
with TestClient(app, base_url="http://127.0.0.1") as client:
    for path in ("chat", "retrieve"):
        assert client.post(f"/v1/{path}", json={"query": "How do I clear the cache?"}).status_code == 200, path
    assert client.get("/v1/status").json()["status"] == "ok"
print(sorted(name for name in sys.modules if name.startswith("chapterverse_api.ext.budget")))
"""
    run = subprocess.run([sys.executable, "-c", script, plain.store], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("daily_budget_usd", "five", "CHAPTERVERSE_DAILY_BUDGET_USD is no amount"),
        ("prices", "five", "CHAPTERVERSE_PRICES can't be read"),
        ("economy_generator", "quill", "CHAPTERVERSE_ECONOMY_GENERATOR is 'quill'"),
        ("limiter", "quill", "CHAPTERVERSE_LIMITER is 'quill'"),
    ],
)
def test_a_mistake_about_money_is_told_though_nothing_costs_any(setting: str, value: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        Service.open(Settings().override(**{setting: value}))


@pytest.mark.parametrize(
    "setting", [{"daily_budget_usd": "7"}, {"prices": "reranker=2"}, {"limiter": "sqlite:counters"}]
)
def test_a_budget_that_nothing_is_paid_from_is_checked_and_left_out(setting: dict[str, str]) -> None:
    assert Service.open(Settings().override(**setting)).resources.meter is None


def test_a_generator_that_only_spares_money_is_a_model_too() -> None:
    settings = Settings(economy_generator="openai:m", openai_url="http://127.0.0.1:9/v1", openai_api_key="k")
    meter = quill.meter_of(Service.open(settings))
    assert meter.economy
    assert meter.economy.name == "openai:m"


def test_a_model_of_ones_own_costs_nothing_and_is_skipped_after_failures(plain: Settings) -> None:
    generator = ScriptedGenerator(breaks=0)
    service = quill.service(plain.override(daily_budget_usd="0"), generator=generator)
    for _ in range(FAILURE_THRESHOLD + 2):
        assert quill.ask(service, QUESTION).status == "degraded"
    assert len(generator.requests) == FAILURE_THRESHOLD
    assert service.status().degraded == ["generator"]


def test_without_a_model_a_request_is_measured_all_the_same(plain: Settings) -> None:
    for _ in range(2):
        with log.request(None) as measured:
            quill.service(plain).retrieve(RetrievalRequest(query=QUESTION))
    assert (measured["CostUsd"], measured["InputTokens"], measured["OutputTokens"]) == (0.0, 0, 0)
    assert "BudgetShare" not in measured
