"""The glossary: no retired name is in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "site_example" / "docs" / "project" / "glossary.md"
PACKAGES = (ROOT / "plugin" / "chapterverse", ROOT / "lambda" / "chapterverse_api")
#: Ordinary words that a retired name was made of: in lower case they may name something else.
ORDINARY = frozenset(
    "caught exported held left means offered opening rated refusal said task told verified wanted whole worst".split()
)


def retired(page: str) -> set[str]:
    """Return the names of the table of retired names."""
    return set(re.findall(r"^\| `(\w+)` \|", page.partition("## Retired names")[2], re.MULTILINE))


def names(source: str) -> Iterator[str]:
    """Yield every identifier of a file: variables, attributes, parameters, definitions, imports."""
    for node in ast.walk(ast.parse(source)):
        for field in ("id", "attr", "arg", "name", "asname"):
            name = getattr(node, field, None)
            if isinstance(name, str):
                yield from name.split(".")


def is_retired(name: str, gone: set[str]) -> bool:
    """Whether a name is one of these in any spelling, such as `_PATIENCE`; ordinary words only as they are."""
    bare = name.strip("_")
    spelled = {one.strip("_").lower() for one in gone} - ORDINARY
    return name in gone or bare in gone or bare.lower() in spelled


def test_no_retired_name_stands_in_the_code() -> None:
    gone = retired(GLOSSARY.read_text(encoding="utf-8"))
    assert {"Means", "Sought", "Patience", "Cutoff"} <= gone
    assert {one.strip("_").lower() for one in gone} >= ORDINARY
    found = {
        f"{file.relative_to(ROOT)}: {name}"
        for package in PACKAGES
        for file in package.rglob("*.py")
        for name in {*names(file.read_text(encoding="utf-8")), *file.relative_to(package).with_suffix("").parts}
        if is_retired(name, gone)
    }
    assert sorted(found) == []


def test_a_retired_name_is_found() -> None:
    assert retired("| `a` | `b` |\n## Retired names\n| `Old` | `New` |\n") == {"Old"}
    assert set(names("def f(a): return a.Old")) >= {"f", "a", "Old"}


def test_a_retired_name_is_found_in_every_spelling() -> None:
    gone = {"Patience", "Left", "_told"}
    assert all(is_retired(name, gone) for name in ("Patience", "patience", "_PATIENCE", "Left", "_Left", "_told"))
    assert not any(is_retired(name, gone) for name in ("left", "_left", "_LEFT", "patient", "impatience"))
