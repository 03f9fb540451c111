"""Metrics in CloudWatch's Embedded Metric Format: one JSON line per request, without SDK, call or agent.

See "Specification: Embedded metric format" in the CloudWatch user guide. Lines are written on Lambda only.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from chapterverse_api.observability import log

_METRICS_NAMESPACE = "ChapterVerse"

#: Every metric with its CloudWatch unit.
UNITS = {
    "Questions": "Count",
    "Rejections": "Count",
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
#: Metrics of every line, so that their average is a share of the requests.
_IN_EVERY_LINE = ("Questions", "Rejections", "Degraded", "Errors", "ColdStarts")

_measured: ContextVar[dict[str, float] | None] = ContextVar("measured", default=None)


def is_wanted() -> bool:
    """Return whether this process runs on Lambda, where CloudWatch reads its output."""
    return bool(os.environ.get("AWS_LAMBDA_FUNCTION_NAME"))


def measure_turn(
    *,
    seconds: float,
    stages: Mapping[str, float] | None = None,
    not_in_docs: bool = False,
    degraded: bool = False,
) -> None:
    """Add an answer's metrics to its request's line.

    Args:
        seconds: seconds from the question to the last word of the answer.
        stages: seconds by stage; `embed`, `search`, `rerank` and `generate` become metrics.
    """
    latencies = {"Latency": seconds}
    for stage in ("embed", "search", "rerank", "generate"):
        if stages and stage in stages:
            latencies[f"{stage.title()}Latency"] = stages[stage]
    milliseconds = {name: round(seconds * 1000, 3) for name, seconds in latencies.items()}
    measure(Questions=1, NotInDocs=int(not_in_docs), Degraded=int(degraded), **milliseconds)


def measure_status(status: int) -> None:
    """Count an error or a rejection by the status of a response."""
    measure(Errors=int(status >= 500), Rejections=int(400 <= status < 500))


def measure(**values: float) -> None:
    """Add values, by the names in `UNITS`, to the request's line, if one is written."""
    measured = _measured.get()
    if measured is not None:
        measured |= values


@contextmanager
def request_line(site: str | None, cold: bool) -> Iterator[None]:
    """Collect metrics during the block, and write them as one line unless all are 0.

    Args:
        site: the value of the only dimension, from the settings; None writes no line. Each value is billed as a metric
            of its own, so clients must not choose it.
        cold: whether this is the first request of the process.
    """
    measured: dict[str, float] = {"ColdStarts": int(cold)}
    token = _measured.set(measured)
    try:
        yield
    finally:
        _measured.reset(token)
        if site is not None and any(measured.values()):
            log.write(metrics_line(site or "default", measured, time.time()))


def metrics_line(site: str, metrics: Mapping[str, float], now: float) -> dict[str, Any]:
    """Return the document of one request.

    Args:
        metrics: values by the names in `UNITS`.
        now: seconds since the epoch.
    """
    values = dict.fromkeys(_IN_EVERY_LINE, 0) | dict(metrics)
    directive = {
        "Namespace": _METRICS_NAMESPACE,
        "Dimensions": [["Site"]],
        "Metrics": [{"Name": name, "Unit": UNITS[name]} for name in values],
    }
    emf = {"Timestamp": int(now * 1000), "CloudWatchMetrics": [directive]}
    return {"event": "metrics", "_aws": emf, "Site": site, **values}
