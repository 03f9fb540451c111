"""Invariants of every request that costs money."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chapterverse.errors import ProviderError
from fakes.loopback import LoopbackServer, failing


def assert_sent_once(server: LoopbackServer, status: int, ask: Callable[[], object]) -> None:
    """Fail unless a request that may have been billed was sent once and is known as billed."""
    server.play(failing(status))
    with pytest.raises(ProviderError) as caught:
        ask()
    assert caught.value.retryable
    assert not caught.value.unbilled
    assert len(server.history) == 1
