"""Regular expressions that every Python from 3.11 reads alike.

Before 3.11.5, which Debian 12 is older than, Python loses its place where a round of a possessive group fails: after
`(?:ab?c)*+` it goes on behind the "a" of "ax". So a possessive quantifier stands behind one character or class only. A
group is repeated in an atomic one, `(?>(?:ab?c)*)`, which says the same and is read rightly.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from re import _constants, _parser  # type: ignore[attr-defined]

import pytest

from test_architecture import LIBRARY, ROOT, SERVICE, modules

CODE = ("plugin", "lambda", "scripts", "tests", "benchmarks", "infra")

ONE_CHARACTER = {_constants.ANY, _constants.IN, _constants.LITERAL, _constants.NOT_LITERAL}

POSSESSIVE = re.compile(r"[*+?}]\+")

#: The worst that an unknown part of a pattern may be.
GROUP = "(?:ab?c)"

#: Prints every pattern that is alive when all modules are imported, those of libraries among them.
ALIVE = """
import gc, importlib, json, re, sys
for name in json.load(sys.stdin):
    importlib.import_module(name)
# The service freezes what it has imported.
gc.unfreeze()
held = (thing for holder in gc.get_objects() for thing in gc.get_referents(holder))
patterns = {(p.pattern, p.flags) for p in held if isinstance(p, re.Pattern)}
print(json.dumps([[t if isinstance(t, str) else t.decode("latin-1"), f] for t, f in patterns]))
"""


def repeats_a_group(pattern: str, flags: int = 0) -> bool:
    """Return whether a possessive quantifier follows more than one character."""
    return _repeats(_parser.parse(pattern, flags))


def _repeats(node: object) -> bool:
    if isinstance(node, _parser.SubPattern):
        node = node.data
    if not isinstance(node, (list, tuple)):
        return False
    found = len(node) == 2 and node[0] is _constants.POSSESSIVE_REPEAT and not _is_one_character(node[1][2])
    return found or any(map(_repeats, node))


def _is_one_character(body: _parser.SubPattern) -> bool:
    return len(body) == 1 and body[0][0] in ONE_CHARACTER


def written(file: Path) -> Iterator[tuple[int, str, int]]:
    """Yield line, pattern and flags of each call of `re` in a file that may hold a possessive quantifier.

    What is not known before the program runs becomes a group.
    """
    source = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)) if POSSESSIVE.search(source) else ():
        if isinstance(node, ast.Call) and node.args and _is_of_re(node.func):
            rest = map(ast.unparse, (*node.args[1:], *(keyword.value for keyword in node.keywords)))
            # The other flags don't change how a pattern is read.
            yield node.lineno, _text(node.args[0]), re.VERBOSE if "re.VERBOSE" in " ".join(rest) else 0


def _is_of_re(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) and function.value.id == "re"


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
        return node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return GROUP


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (r"[^a]*+b++.?+\d{2,}+", False),
        (r"(?:x)++", False),
        (r"(?>(?:ab?c)*)", False),
        (r"(?:ab?c)*", False),
        (r"(?:ab?c)*+", True),
        (r"(?:ab|c){2,}+", True),
        (r"(a)?+", True),
        (r"x(?=y(?:ab)++)", True),
        (r"x|(?:y(?P<z>(?:ab)?+))", True),
        (r"(?>(?:a(?:bc)*+)*)", True),
    ],
)
def test_possessive_groups_are_found(pattern: str, found: bool) -> None:
    assert repeats_a_group(pattern) is found


def test_possessive_groups_are_found_where_a_program_puts_them_together(tmp_path: Path) -> None:
    file = tmp_path / "planted.py"
    file.write_text('import re\ndef f(a, b):\n    return re.match(rf"x{a}" + b + r"*+", a), re.sub(rf"{a}*", "y*+", b)')
    assert [(line, repeats_a_group(text, flags)) for line, text, flags in written(file)] == [(3, True), (3, False)]


def test_no_pattern_repeats_a_group_possessively() -> None:
    names = json.dumps([*modules(LIBRARY), *modules(SERVICE)])
    done = subprocess.run([sys.executable, "-W", "error", "-c", ALIVE], input=names, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    patterns = json.loads(done.stdout)
    assert len(patterns) > 300
    assert [text for text, flags in patterns if repeats_a_group(text, flags)] == []


def test_no_pattern_that_is_made_later_repeats_a_group_possessively() -> None:
    files = [file for folder in CODE for file in sorted((ROOT / folder).rglob("*.py"))]
    made = [(f"{file.relative_to(ROOT)}:{line}", text, flags) for file in files for line, text, flags in written(file)]
    assert len(made) > 50
    assert [place for place, text, flags in made if repeats_a_group(text, flags)] == []
