"""Reads a stream of server-sent events, as a client does."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


def events(lines: Iterator[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the events of a stream as they come."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))
