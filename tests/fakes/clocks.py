"""A clock that only the test moves."""

from __future__ import annotations


class Clock:
    """Returns the seconds `now`. `sleep` advances them and records how long it slept."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
