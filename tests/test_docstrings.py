"""The names in docstrings: every argument and attribute that one describes exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (ROOT / "plugin" / "chapterverse", ROOT / "lambda" / "chapterverse_api")
_ENTRY = re.compile(r"^    ((?:\*{0,2}\w+)(?:, \*{0,2}\w+)*): ", re.MULTILINE)


def described(docstring: str, heading: str) -> set[str]:
    """Return the names that a section of a docstring describes."""
    section = re.search(rf"^{heading}:\n(.*?)(?:\n\S|\Z)", docstring, re.MULTILINE | re.DOTALL)
    entries = _ENTRY.findall(section[1]) if section else []
    return {name.strip("* ") for entry in entries for name in entry.split(",")}


def attributes(definition: ast.ClassDef) -> set[str]:
    """Return the names that a class, or a method through `self`, binds."""
    bound = {node.name for node in definition.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    for node in ast.walk(definition):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            bound.add(node.id if isinstance(node, ast.Name) else node.attr)
    return bound


def arguments(definition: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    args = definition.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg}


def unknown_names(source: str) -> Iterator[str]:
    """Yield each name that a docstring describes and its definition lacks."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            text = ast.get_docstring(node) or ""
            own = attributes(node)
            parameters = [arguments(f) for f in node.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
            yield from sorted(described(text, "Attributes") - own)
            yield from sorted(described(text, "Args") - own.union(*parameters))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from sorted(described(ast.get_docstring(node) or "", "Args") - arguments(node))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_docstrings_describe_what_exists(package: Path) -> None:
    found = {
        f"{file.relative_to(ROOT)}: {name}"
        for file in package.rglob("*.py")
        for name in unknown_names(file.read_text(encoding="utf-8"))
    }
    assert sorted(found) == []


def test_a_name_that_does_not_exist_is_found() -> None:
    source = '''
def run(pages, *, limit):
    """Run.

    Args:
        page: one.
        limit: at most.

    Raises:
        Error: it fails.
    """

class Page:
    """A page.

    Attributes:
        url, path: where it is.
        title: none.
    """

    url: str

    def __init__(self):
        self.path = ""
'''
    assert sorted(unknown_names(source)) == ["page", "title"]
