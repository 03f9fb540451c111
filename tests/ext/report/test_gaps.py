"""Subjects of unanswered questions."""

from __future__ import annotations

import time

from chapterverse.ext.report.gaps import join


def test_a_thousand_questions_that_say_the_same_take_no_second() -> None:
    shared = dict.fromkeys(range(20), 0.218)
    alike = [{**shared, 1000 + number: 0.218} for number in range(1000)]
    other = {5000: 1.0}
    started = time.process_time()
    assert join([*alike, other, other]) == [[*range(1000)], [1000, 1001]]
    assert time.process_time() - started < 1
