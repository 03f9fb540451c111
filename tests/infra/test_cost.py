"""The page of costs: its sums agree with its rows, and its rows with its prices."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from chapterverse.settings import Settings
from chapterverse_api.ext.aws import metrics
from chapterverse_api.ext.budget.prices import Prices, Use
from infra.conftest import ROOT

PAGE = (ROOT / "site_example" / "docs" / "running" / "cost.md").read_text("utf-8")
QUESTIONS = (1_000, 10_000, 100_000, 1_000_000)
GB_SECOND, REQUESTS, WRITES, LOGS, METRIC, LISTINGS = 13.3334, 0.2, 0.625, 0.5, 0.3, 5.0


def rows(section: str) -> dict[str, list[Decimal]]:
    """Return the table of a section: the name of each row and its four amounts."""
    text = PAGE.partition(f"{{ #{section} }}")[2].partition("\n## ")[0].replace("*", "")
    found = re.findall(r"^\| ([A-Z][A-Za-z0-9 ]+) \| ([\d. |]+) \|$", text, re.MULTILINE)
    return {name: [Decimal(cell.strip()) for cell in cells.split("|")] for name, cells in found}


@pytest.mark.parametrize("section", ["quotes", "cohere"])
def test_sums_are_of_their_rows(section: str) -> None:
    *parts, together = rows(section).values()
    assert len(parts) >= 6
    assert [sum(column) for column in zip(*parts, strict=True)] == together


def test_a_server_takes_the_place_of_the_bucket() -> None:
    with_server = rows("qdrant")
    for name, section in (("With quotes", "quotes"), ("With Cohere", "cohere")):
        found = rows(section)
        expected = [t - s + 30 for t, s in zip(found["Together"], found["S3"], strict=True)]
        assert with_server[name] == expected


@pytest.mark.parametrize(("section", "seconds", "writes"), [("quotes", 0.35, 2), ("cohere", 4.15, 4)])
def test_rows_are_of_the_prices(section: str, seconds: float, writes: int) -> None:
    prices = Prices.from_settings(
        Settings(embedder="cohere", reranker="cohere", generator="cohere:command-r-08-2024"), 0.1
    )
    million = {
        "Lambda": seconds * GB_SECOND + REQUESTS,
        "DynamoDB": writes * WRITES,
        "Logs": 6 * LOGS,
        "S3": LISTINGS,
        "Embedding": prices.embedder.cost(Use(20)),
        "Reranking": prices.reranker.cost(Use(searches=1)),
        "Generating": prices.generator.cost(Use(3500, 300)),
    }
    for name, amounts in rows(section).items():
        if name in million:
            stored = 0.2 * 0.023 if name == "S3" else 0
            expected = [million[name] * questions / 1e6 + stored for questions in QUESTIONS]
            assert [float(a) for a in amounts] == pytest.approx(expected, abs=0.0051), name


def test_the_tables_ceiling_is_that_of_the_template() -> None:
    template = (ROOT / "infra" / "template.yaml").read_text("utf-8")
    ((reads, writes),) = re.findall(
        r"OnDemandThroughput: \{ MaxReadRequestUnits: (\d+), MaxWrite\w+: (\d+) \}", template
    )
    ((quote, model),) = re.findall(r"^\| DynamoDB \| (\d) writes \| (\d) writes \|", PAGE, re.MULTILINE)
    answers = f"{int(writes) // int(model)} model answers, or {int(writes) // int(quote)} quotes"
    assert f"| the table | {writes} writes a second by the template: {answers} |" in PAGE
    # A ceiling for a flood, in the template's own words.
    assert f"{int(writes) // int(model)} answers by models per second with {model} writes each" in template
    assert int(reads) >= int(writes)


def test_every_metric_is_paid_for() -> None:
    assert [float(a) for a in rows("cohere")["Metrics"]] == pytest.approx([len(metrics.UNITS) * METRIC] * 4)
