from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.ground import Grounds, Nurseries, folder_in_memory
from faults.nursery import Nursery


@pytest.fixture(scope="package")
def nurseries() -> Iterator[Nurseries]:
    with contextlib.ExitStack() as stack:
        yield Nurseries([stack.enter_context(Nursery()) for _ in range(min(4, os.cpu_count() or 1))])


@pytest.fixture(scope="package")
def grounds(nurseries: Nurseries) -> Iterator[Grounds]:
    with folder_in_memory() as folder:
        yield Grounds(folder, nurseries)


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_in_memory() as made:
        yield made
