"""A crowd is read as far as the time goes, and nobody begins to be read too late."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

from chapterverse.reading import FIRST_ESTIMATE, LATE_SECONDS, ReadingQueue


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def until(self, end: float) -> Callable[[], float]:
        """Return the seconds that are left until then."""
        return lambda: max(0.0, end - self.now)


def read(queue: ReadingQueue, clock: Clock, passages: int, seconds_each: float) -> None:
    with queue.turn(passages, clock.until(1e9)) as is_in_time:
        assert is_in_time
        for _ in range(passages):
            with queue.timing():
                clock.now += seconds_each


def test_who_comes_alone_is_always_read_however_slow_the_last_one_was() -> None:
    clock = Clock()
    queue = ReadingQueue(1, clock)
    read(queue, clock, 8, 60.0)
    with queue.turn(8, clock.until(clock.now + 0.5)) as is_in_time:
        assert is_in_time


def test_who_has_no_time_behind_the_others_does_not_wait() -> None:
    clock = Clock()
    queue = ReadingQueue(2, clock)
    for _ in range(20):
        read(queue, clock, 8, 0.1)
    # Two are read at once, of eight passages each, and then the third: .8 s each.
    ages, soon = clock.until(1e9), clock.until(clock.now + 1.5)
    with queue.turn(8, ages), queue.turn(8, ages), queue.turn(8, soon) as is_in_time:
        assert not is_in_time
    # Whoever does not wait is not in the others' way.
    with queue.turn(8, ages), queue.turn(8, soon) as is_in_time:
        assert is_in_time


def test_who_waited_too_long_does_not_begin() -> None:
    clock = Clock()
    queue = ReadingQueue(1, clock)
    entered, waiting = Event(), Event()

    def left() -> float:
        # The second look at the time is the wait's own.
        waiting.set()
        return 100.0 if not entered.is_set() else 8 * FIRST_ESTIMATE / 2

    def ask() -> bool:
        with queue.turn(8, left) as is_in_time:
            return is_in_time

    with ThreadPoolExecutor(1) as threads:
        with queue.turn(8, clock.until(1e9)):
            asked = threads.submit(ask)
            assert waiting.wait(60)
            entered.set()
        assert asked.result() is False
    # Its place is free again.
    read(queue, clock, 8, 0.1)


def test_no_more_than_the_processors_are_read_at_once_and_all_that_have_time_are() -> None:
    queue, both = ReadingQueue(2), Barrier(2, timeout=60)
    reading: list[int] = []
    most: list[int] = []

    def ask(number: int) -> bool:
        with queue.turn(1, lambda: 600.0) as is_in_time:
            reading.append(number)
            both.wait()
            most.append(len(reading))
            both.wait()
            reading.remove(number)
            return is_in_time

    with ThreadPoolExecutor(12) as threads:
        assert all(threads.map(ask, range(12)))
    assert set(most) == {2}


def test_a_question_that_was_not_read_is_remembered_for_a_minute() -> None:
    clock = Clock()
    queue = ReadingQueue(1, clock)
    late = [queue.is_late]
    queue.count_late()
    for clock.now in (LATE_SECONDS - 1, LATE_SECONDS):
        late.append(queue.is_late)
    assert late == [False, True, False]
