"""SECURITY.md against the tests that it names."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "SECURITY.md").read_text("utf-8")
ROWS = [line.strip("|").split(" | ") for line in PAGE.splitlines() if re.search(r"\.py::test_", line)]


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`([\w/]+\.py)::(\w+)`", PAGE)
    assert len(named) == len(ROWS) > 30
    assert [(file, name) for file, name in named if name not in _functions(TESTS / file)] == []


def test_every_control_answers_a_requirement_and_is_proved_by_a_test() -> None:
    for control, requirements, test in ROWS:
        assert control.strip()
        assert re.fullmatch(r"\d{1,2}\.\d\.\d{1,2}(, \d{1,2}\.\d\.\d{1,2})*", requirements), control
        assert re.fullmatch(r"`[\w/]+\.py::test_\w+` ?", test), control


def _functions(file: Path) -> set[str]:
    if not file.is_file():
        return set()
    return {node.name for node in ast.walk(ast.parse(file.read_text("utf-8"))) if isinstance(node, ast.FunctionDef)}
