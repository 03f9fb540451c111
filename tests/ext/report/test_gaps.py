"""Subjects of unanswered questions."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from chapterverse.ext.report.groups import LEAST_NEARNESS, _nearness, join


def test_a_thousand_questions_that_say_the_same_take_no_second() -> None:
    shared = dict.fromkeys(range(20), 0.218)
    alike = [{**shared, 1000 + number: 0.218} for number in range(1000)]
    other = {5000: 1.0}
    started = time.process_time()
    assert join([*alike, other, other]) == [[*range(1000)], [1000, 1001]]
    assert time.process_time() - started < 1


def test_the_nearest_two_are_joined_until_none_are_near() -> None:
    for seed in range(20):
        profiles = list(_profiles(Random(seed), 40))
        assert sorted(join(profiles)) == _join_by_all_pairs(profiles)


def _profiles(random: Random, number: int) -> Iterator[dict[int, float]]:
    for _ in range(number):
        weights = {random.randrange(12): random.random() for _ in range(6)}
        length = math.hypot(*weights.values())
        yield {term: weight / length for term, weight in weights.items()}


def _join_by_all_pairs(profiles: Sequence[Mapping[int, float]]) -> list[list[int]]:
    """Join as `join` does, by looking at each pair of groups each time."""
    members, near = _nearness(profiles)
    near = {a: dict(row) for a, row in near.items()}
    while True:
        pairs = [
            (-near[a].get(b, 0.0) / (len(members[a]) * len(members[b])), a, b) for a in near for b in near if a < b
        ]
        mean, a, b = min(pairs, default=(0.0, 0, 0))
        if -mean < LEAST_NEARNESS:
            return sorted(map(sorted, members.values()))
        members[a] += members.pop(b)
        row = near.pop(b)
        for other in near:
            if sum_ := near[other].pop(b, 0.0):
                near[a][other] = near[other][a] = near[a].get(other, 0.0) + row[other] if other != a else sum_
        near[a].pop(a, None)
