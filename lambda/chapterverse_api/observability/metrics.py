"""Metrics in CloudWatch's Embedded Metric Format: one JSON line a request.

No SDK, no call and no agent: see "Specification: Embedded metric format" in the CloudWatch user guide. Off Lambda
nobody reads such lines, so none are written there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from chapterverse_api.observability import log

NAMESPACE = "ChapterVerse"

#: Every metric and its unit, one of those that CloudWatch knows.
UNITS = {
    "Questions": "Count",
    "Refusals": "Count",
    "NotInDocs": "Count",
    "Degraded": "Count",
    "Errors": "Count",
    "ColdStarts": "Count",
    "CostUsd": "None",
    "InputTokens": "Count",
    "OutputTokens": "Count",
    "Latency": "Milliseconds",
    "EmbedLatency": "Milliseconds",
    "SearchLatency": "Milliseconds",
    "RerankLatency": "Milliseconds",
    "GenerateLatency": "Milliseconds",
    "BudgetShare": "Percent",
}
#: Counted in every line, so that each of them has an average: a share of the requests.
_ALWAYS = ("Questions", "Refusals", "Degraded", "Errors", "ColdStarts")

_measured: ContextVar[dict[str, float] | None] = ContextVar("measured", default=None)


def wanted() -> bool:
    """Return whether this process runs on Lambda, where CloudWatch reads what it writes."""
    return bool(os.environ.get("AWS_LAMBDA_FUNCTION_NAME"))


def measure_turn(
    *,
    seconds: float,
    stages: Mapping[str, float] | None = None,
    not_in_docs: bool = False,
    degraded: bool = False,
) -> None:
    """Take how an answer came about into the line of its request; where no line is written, do nothing.

    Args:
        seconds: from the question to the last word of the answer.
        stages: seconds by stage, of which `embed`, `search`, `rerank` and `generate` become metrics.
    """
    measured = _measured.get()
    if measured is None:
        return
    measured |= {
        "Questions": 1,
        "NotInDocs": int(not_in_docs),
        "Degraded": int(degraded),
        "Latency": _milliseconds(seconds),
    }
    for stage in ("embed", "search", "rerank", "generate"):
        if stages and stage in stages:
            measured[f"{stage.title()}Latency"] = _milliseconds(stages[stage])


def measure_cost(usd: float, input_tokens: int, output_tokens: int, budget_share: float | None) -> None:
    """Take what models cost into the line of their request, also where its answer was never finished.

    Args:
        budget_share: how much of the day's budget is gone, in percent; None where there is none.
    """
    measured = _measured.get()
    if measured is None:
        return
    measured |= {"CostUsd": round(usd, 6), "InputTokens": input_tokens, "OutputTokens": output_tokens}
    if budget_share is not None:
        measured["BudgetShare"] = round(budget_share, 2)


def count_error() -> None:
    """Count an error that the status of the response doesn't tell: a stream's status was sent before it broke."""
    measured = _measured.get()
    if measured is not None:
        measured["Errors"] = 1


@contextmanager
def request_line(site: str, cold: bool) -> Iterator[dict[str, float]]:
    """Collect what is measured while the block runs, and write it as one line if there is anything to tell.

    Args:
        site: the one dimension. It comes from the settings: each value that a client could choose would be a metric of
            its own, and be billed as one.
        cold: whether this is the first request of the process.
    """
    measured: dict[str, float] = {"ColdStarts": int(cold)}
    token = _measured.set(measured)
    try:
        yield measured
    finally:
        _measured.reset(token)
        if any(measured.values()):
            log.write(line(site or "default", measured, time.time()))


def line(site: str, measured: Mapping[str, float], now: float) -> dict[str, Any]:
    """Return the document of one request.

    Args:
        measured: numbers by the names of `UNITS`.
        now: seconds since the epoch.
    """
    values = dict.fromkeys(_ALWAYS, 0) | dict(measured)
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [["Site"]],
        "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
    }
    emf = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [directive]}
    return {"event": "metrics", "_aws": emf, "Site": site, **values}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1000, 3)
