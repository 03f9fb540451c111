"""Measures how an operation's time grows with its input."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

ROUNDS = 5


def assert_linear(work: Callable[[int], object], small: int, large: int) -> None:
    """Fail when `work(large)` takes over three times as long as a linear method would, in each of several rounds.

    A quadratic method needs `large / small` times as much as a linear one, so make that 8 or more. Processor time, the
    collector off and the best of five rounds: a busy machine only slows one round, a quadratic method all of them.
    """
    limit = 3 * large / small
    ratios = []
    for _ in range(ROUNDS):
        # The floor keeps the noise of the timer out of very fast work.
        ratios.append(_seconds(work, large) / max(_seconds(work, small), 0.005))
        if ratios[-1] < limit:
            return
    raise AssertionError(f"{large / small:g} times the input took {min(ratios):.0f} times as long")


def _seconds(work: Callable[[int], object], size: int) -> float:
    gc.disable()
    started = time.process_time()
    try:
        work(size)
        return time.process_time() - started
    finally:
        gc.enable()
