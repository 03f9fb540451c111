"""The changes that `scripts/mutants.py` makes, and the share that it reports."""

from __future__ import annotations

import pytest
from mutants import TARGETS, find_files, find_mutants, interval

CODE = '''"""Nothing of this."""
from typing import Literal
LIMITS = {"a": 1}
MOST = 12

def f(x: Literal["a"], y: int = 3) -> bool:
    """Nor of this."""
    if x < y:
        raise ValueError(f"{x} is too small, by {y - x}.")
    log.event("seen", at=x)
    return not x or list(zip(x, y, strict=True))
'''


def changes(code: str) -> list[str]:
    return [mutant.says for mutant in find_mutants("a.py", code)]


def test_what_a_test_should_state_is_changed_and_nothing_else() -> None:
    assert changes(CODE) == [
        "12  ->  24",
        "3  ->  4",
        "if x < y: …  ->  if True: …",
        "if x < y: …  ->  if False: …",
        "x < y  ->  x <= y",
        'raise ValueError(f"{x} is too small, by {y - x}.")  ->  pass'.replace('"', "'"),
        "log.event('seen', at=x)  ->  pass",
        "return not x or list(zip(x, y, strict=True))  ->  return",
        "not x or list(zip(x, y, strict=True))  ->  not x and list(zip(x, y, strict=True))",
        "not x or list(zip(x, y, strict=True))  ->  list(zip(x, y, strict=True))",
        "not x or list(zip(x, y, strict=True))  ->  not x",
        "not x  ->  x",
    ]


def test_each_mutant_has_one_change_and_leaves_the_next_ones_none() -> None:
    codes = [mutant.make() for mutant in find_mutants("a.py", "def f(x):\n    return x + 1 > 2\n")]
    returned = ["return", "return x + 1 >= 2", "return x - 1 > 2", "return x + 2 > 2", "return x + 1 > 3"]
    assert codes == [f"def f(x):\n    {line}" for line in returned]


@pytest.mark.parametrize("name", TARGETS)
def test_each_target_has_code_and_tests(name: str) -> None:
    code, tests = TARGETS[name]
    assert all(find_files(pattern) for pattern in code.split())
    assert all(find_files(pattern, "tests") for pattern in tests.split())


def test_the_interval_is_wilsons() -> None:
    assert interval(4, 20) == pytest.approx((0.0807, 0.4160), abs=0.0005)
    assert interval(10, 10) == pytest.approx((0.7225, 1.0), abs=0.0005)
