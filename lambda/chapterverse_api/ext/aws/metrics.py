"""Metrics in CloudWatch's Embedded Metric Format: one JSON line per request, without SDK, call or agent.

See "Specification: Embedded metric format" in the CloudWatch user guide.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from chapterverse_api import log

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


def write_metrics(site: str, metrics: Mapping[str, float]) -> None:
    """Write the metrics of a request as one line, unless all are 0.

    Args:
        site: the value of the only dimension, from the settings. Each value is billed as a metric of its own, so
            clients must not choose it.
    """
    if any(metrics.values()):
        log.write(metrics_line(site or "default", metrics, time.time()))


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
