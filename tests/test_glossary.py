"""The glossary: no retired name is in the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "site_example" / "docs" / "project" / "glossary.md"
PACKAGES = (ROOT / "plugin" / "chapterverse", ROOT / "lambda" / "chapterverse_api")
#: Where a public function does not have a verb or the noun of its value yet.
NOT_NAMED_BY_VERBS = frozenset({"quoting"})
#: Participles that don't end in "ed", but for those that are a verb's own form as well, such as "read" and "put".
IRREGULAR = frozenset(
    "bound broken built chosen died drawn found given grown held hidden kept left lost made met paid said seen sent"
    " shown spent spoken taken thrown told worn written".split()
)
#: Verbs that end in "ed".
VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "speed"})
#: Ordinary words that a retired name was made of: in lower case they may name something else.
ORDINARY = frozenset(
    "asked caught exported held left listed means offered opening packed rated refusal said task told verified wanted"
    " whole worst".split()
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


def bare_participles(source: str) -> list[str]:
    """Return every public function or method of a file that is no property and only a participle: `corrected`."""
    defined = _public(ast.parse(source))
    return [
        node.name for node in defined if is_participle(node.name) and not any(map(_is_property, node.decorator_list))
    ]


def _public(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for child in node.body:
        if isinstance(child, ast.ClassDef):
            yield from _public(child)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child


def _is_property(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).endswith("property")


def is_participle(name: str) -> bool:
    """Whether a name is a participle alone, or one with "by", "of" or "out"; `stated_date` is the noun of a value."""
    first = re.sub("_(by|of|out)$", "", name)
    return first in IRREGULAR or (first.endswith("ed") and "_" not in first and first not in VERBS)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_public_functions_are_no_bare_participles(package: Path) -> None:
    found = {
        f"{file.relative_to(package)}: {name}"
        for file in package.rglob("*.py")
        if NOT_NAMED_BY_VERBS.isdisjoint(file.relative_to(package).parts)
        for name in bare_participles(file.read_text(encoding="utf-8"))
    }
    assert sorted(found) == []


def test_a_bare_participle_is_found() -> None:
    source = "def corrected(): ...\nclass A:\n  def held_out(self): ...\n  @property\n  def kept(self): ...\n"
    assert bare_participles(f"{source}def _told(): ...\ndef stated_date(): ...\ndef embed(): ...") == [
        "corrected",
        "held_out",
    ]


#: Modules that are named after a product.
PRODUCTS = frozenset({"fastembed"})


def participles(source: str) -> list[str]:
    """Return every class and function of a file, private ones too, and every parameter, whose name is only a
    participle: `_told`. A property and a switch may have such a name.
    """
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names += [] if any(map(_is_property, node.decorator_list)) else [node.name]
            parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            names += [one.arg for one in parameters if one.annotation is None or ast.unparse(one.annotation) != "bool"]
        elif isinstance(node, ast.ClassDef) and re.fullmatch("_?[A-Z][a-z]+", node.name):
            names.append(node.name.lower())
    return [name for name in names if is_participle(name.strip("_"))]


def test_classes_private_functions_parameters_and_modules_of_the_library_are_no_bare_participles() -> None:
    library = PACKAGES[0]
    files = [file.relative_to(library) for file in library.rglob("*.py") if "readers" not in file.parts]
    found = {f"{file}: {name}" for file in files for name in participles((library / file).read_text(encoding="utf-8"))}
    found |= {f"{file}" for file in files if any(map(is_participle, {*file.with_suffix("").parts} - PRODUCTS))}
    assert sorted(found) == []


def test_a_participle_of_a_class_a_private_function_or_a_parameter_is_found() -> None:
    source = "def _told(given: str, *, billed: bool, taken): ...\nclass Left:\n  @property\n  def _kept(self): ..."
    assert participles(f"{source}\nclass TextRejected: ...") == ["_told", "given", "taken", "left"]
