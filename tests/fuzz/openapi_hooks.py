"""Hooks that adapt Schemathesis to our OpenAPI (loaded by it, in its own environment)."""

from __future__ import annotations

from typing import Any

import schemathesis

#: It compares numbers as doubles, for which -9223372036854775999 is a 64-bit integer; the service knows better.
_SURE = 2**63 - 2048


@schemathesis.hook
def filter_body(_: Any, body: Any) -> bool:
    """Leave out bodies that hold a number at the edge of 64 bits."""
    return not _holds_edge(body)


def _holds_edge(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_edge, value.values()))
    if isinstance(value, list):
        return any(map(_holds_edge, value))
    return isinstance(value, int | float) and abs(value) > _SURE
