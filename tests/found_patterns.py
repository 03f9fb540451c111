"""Finds the regular expressions of the two packages, and how each is used."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from test_architecture import LIBRARY, SERVICE, modules

#: Methods that try a pattern at one place of a text: at its start, or at the place that a second argument names.
ANCHORED = {"match", "fullmatch", "match at", "fullmatch at"}

#: Imports modules and prints each pattern that they compile: module, line, pattern, flags, whether it is of bytes.
RECORD = """
import importlib, json, re, sys
compile, made = re.compile, []
def record(pattern, flags=0):
    done, place = compile(pattern, flags), sys._getframe(1)
    while "<" in place.f_code.co_name and place.f_code.co_name != "<module>":
        place = place.f_back
    name = place.f_globals["__name__"]
    if name.split(".")[0] in ("chapterverse", "chapterverse_api"):
        text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
        made.append([name, place.f_lineno, text, int(done.flags), isinstance(pattern, bytes), id(done)])
        keep.append(done)
    return done
keep = []
re.compile = record
for name in json.load(sys.stdin):
    importlib.import_module(name)
def name_of(module, pattern):
    return next((name for name, value in vars(sys.modules[module]).items() if id(value) == pattern), "")
print(json.dumps([[module, name_of(module, key), *rest] for module, *rest, key in made]))
"""


@dataclass(frozen=True, slots=True)
class Found:
    """A pattern.

    Attributes:
        name: of the variable that holds it, else "line 5".
        methods: by which it is applied to a text: those of `ANCHORED`, or "search" for all others.
    """

    module: str
    name: str
    pattern: str
    flags: int
    is_bytes: bool
    methods: tuple[str, ...]

    @property
    def place(self) -> str:
        return f"{self.module}.{self.name}"


def compiled() -> list[Found]:
    """Return every pattern that is compiled when all modules are imported."""
    names = json.dumps([*modules(LIBRARY), *modules(SERVICE)])
    done = subprocess.run([sys.executable, "-c", RECORD], input=names, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    uses = _uses()
    return [
        Found(module, name or f"line {line}", text, flags, is_bytes, _methods(uses.get((module, name), {"search"})))
        for module, name, line, text, flags, is_bytes in json.loads(done.stdout)
    ]


def _methods(used: set[str]) -> tuple[str, ...]:
    return tuple(sorted(used)) if used <= ANCHORED else ("search",)


def sources() -> Iterator[tuple[str, ast.Module]]:
    """Yield name and tree of each module."""
    for folder in (LIBRARY, SERVICE):
        for file in sorted(folder.rglob("*.py")):
            yield _module(file, folder), ast.parse(file.read_text(encoding="utf-8"))


def _module(file: Path, folder: Path) -> str:
    return ".".join(file.relative_to(folder.parent).with_suffix("").parts).removesuffix(".__init__")


def _uses() -> dict[tuple[str, str], set[str]]:
    """Return by which methods each name of a module is used; "search" for every other use."""
    uses: dict[tuple[str, str], set[str]] = defaultdict(set)
    for module, tree in sources():
        origin = _imports(tree)
        methods = {id(node.value): node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        several = {id(c.func.value) for c in _calls(tree) if isinstance(c.func, ast.Attribute) and len(c.args) > 1}
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                method = methods.get(id(node), "search")
                uses[origin.get(node.id, (module, node.id))].add(f"{method} at" if id(node) in several else method)
    return uses


def _imports(tree: ast.Module) -> dict[str, tuple[str, str]]:
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.asname or alias.name: (str(node.module), alias.name) for node in froms for alias in node.names}


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


#: Functions of `re` that apply a pattern.
APPLIED = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}


def inline() -> list[Found]:
    """Return every pattern that is written in a call of `re` in a function, or applied at once.

    A part that isn't known before the program runs becomes "x".
    """
    return [_found(module, call) for module, tree in sources() for call in _calls_of_re(tree)]


def _calls_of_re(tree: ast.Module) -> Iterator[ast.Call]:
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    late = {id(call) for function in functions for call in _calls(function)}
    applied = {f"re.{name}" for name in APPLIED}
    for call in _calls(tree):
        function = ast.unparse(call.func)
        if function in applied or (function == "re.compile" and id(call) in late):
            yield call


def _found(module: str, call: ast.Call) -> Found:
    value = _text(call.args[0], module)
    text = value if isinstance(value, str) else value.decode("latin-1")
    methods = _methods({call.func.attr})  # type: ignore[attr-defined]
    return Found(module, f"line {call.lineno}", text, _flags(call), isinstance(value, bytes), methods)


def _flags(call: ast.Call) -> int:
    names = re.findall(r"\bre\.([A-Z]+)\b", " ".join(map(ast.unparse, (*call.args[1:], *call.keywords))))
    return sum(getattr(re, name) for name in names)


def _text(node: ast.AST, module: str) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(value, module) for value in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left, module) + _text(node.right, module)
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, module)
    constant = getattr(importlib.import_module(module), node.id, None) if isinstance(node, ast.Name) else None
    return constant if isinstance(constant, (str, bytes)) else "x"
