from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.ground import Nurseries
from faults.nursery import Nursery


@pytest.fixture(scope="package")
def nurseries() -> Iterator[Nurseries]:
    with contextlib.ExitStack() as stack:
        yield Nurseries([stack.enter_context(Nursery()) for _ in range(min(4, os.cpu_count() or 1))])


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: a kill loses nothing that was written, synced to a disk or not."""
    memory = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield made
    shutil.rmtree(made, ignore_errors=True)
