"""The environment of this process, replaced for a block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


@contextmanager
def replaced_environment(now: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(now)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
