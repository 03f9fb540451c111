"""Fixtures of the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fakes.cohere_server import CohereServer


@pytest.fixture
def server() -> Iterator[CohereServer]:
    with CohereServer() as running:
        yield running
