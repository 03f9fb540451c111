"""The import rules of the two packages, from their source and in fresh interpreters."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType

import house_picture
import pytest
from house_picture import LAYERS

import chapterverse
import chapterverse_api
from chapterverse.manifests import CORE, EXTENSIONS

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "plugin" / "chapterverse"
SERVICE = ROOT / "lambda" / "chapterverse_api"

#: What the service may know of the library.
OPEN_TO_SERVICE = {
    "model", "errors", "settings", "database", "text", "calibration", "embedding", "store", "filters",
    "reading", "widget", "extensions", "manifests", "version",
}  # fmt: skip

#: The rooms that another room needs.
ROOMS_BELOW = {
    "aws": {"net"}, "s3": {"aws", "leases", "net"}, "dynamodb": {"aws", "conversations"}, "qdrant": {"leases", "net"},
    "fastembed": {"embedders"}, "postgres": {"conversations"}, "npm": {"site_check", "transfer"},
    "evaluation": {"check", "knowledge", "transfer"}, "budget": {"models"},
    "models": {"check"},
    **{room: {"embedders", "models", "net"} for room in ("cohere", "openai", "bedrock")},
    "agents": {"check", "models", "net"}, "enrichment": {"budget", "check", "net"}, "sources": {"net"},
}  # fmt: skip

#: What a cold Lambda must not pay for before its first question.
NOT_ON_THE_LAMBDA = {
    "boto3", "botocore", "cohere", "qdrant_client", "mkdocs", "typer", "rich", "markdown_it", "tiktoken",
}  # fmt: skip

#: Each is imported by its own plugin alone.
GENERATORS = ("mkdocs", "sphinx")

#: What nothing loads before it is used.
VENDORS = {"cohere", "qdrant_client", "fastembed", "sphinx"}

#: What many modules load, rightly: imported once for all of them, as it takes nine tenths of the time.
WARM = ("fastapi", "markdown_it", "mdit_py_plugins", "opentelemetry", "pydantic", "typer", "yaml")

MOST_FOLDERS = 18


def module_name(package: Path, file: Path) -> str:
    parts = (package.name, *file.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules(package: Path) -> dict[str, Path]:
    """Return every module of a package by name."""
    return {module_name(package, file): file for file in sorted(package.rglob("*.py"))}


def imports(package: Path, file: Path) -> Iterator[str]:
    """Yield the absolute name of all that a file imports, wherever in the file; `from a import b` yields "a.b"."""
    inside = module_name(package, file).split(".")
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # One dot means the package that the file is in; a package's own __init__ is in itself.
            up = node.level - (file.name == "__init__.py")
            start = inside[: len(inside) - up] if node.level else []
            origin = ".".join([*start, *([node.module] if node.module else [])])
            yield from (f"{origin}.{alias.name}" for alias in node.names)


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(f"{package}.")


def broken_imports(library: Path, service: Path) -> list[str]:
    """Return every import that breaks a rule, as "module imports name"."""
    found = [(name, imported) for name, file in modules(library).items() for imported in imports(library, file)]
    broken = [pair for pair in found if closed_to_library(*pair)]
    found = [(name, imported) for name, file in modules(service).items() for imported in imports(service, file)]
    broken += [pair for pair in found if closed_to_service(*pair)]
    return [f"{name} imports {imported}" for name, imported in broken]


def closed_to_library(name: str, imported: str) -> bool:
    foreign = any(within(imported, tool) and name != f"chapterverse.{tool}" for tool in GENERATORS)
    return within(imported, "chapterverse_api") or foreign


def closed_to_service(name: str, imported: str) -> bool:
    # The bare package is open: importing it loads nothing.
    top, *rest = imported.split(".")
    # Commands and rooms run where an owner is, or on request, and may know all of the library.
    is_free = any(within(name, f"chapterverse_api.{part}") for part in ("commands", "ext"))
    return top == "mkdocs" or (top == "chapterverse" and bool(rest) and not is_free and rest[0] not in OPEN_TO_SERVICE)


def test_the_page_lists_what_the_service_may_import() -> None:
    text = (ROOT / "site_example/docs/project/architecture.md").read_text(encoding="utf-8")
    listed = text.partition("- The service imports of the library only ")[2].partition(". `commands`")[0]
    assert {*re.findall(r"`(\w+)`", listed)} == OPEN_TO_SERVICE


def graph(*packages: Path) -> dict[str, set[str]]:
    """Return which modules of these packages each of them imports, those under `TYPE_CHECKING` included."""
    files = {name: (package, file) for package in packages for name, file in modules(package).items()}
    # `from a import b` is the module a.b where there is one, else a name in the module a.
    return {
        name: {found for imported in imports(*place) if (found := _module(imported, files)) and found != name}
        for name, place in files.items()
    }


def _module(imported: str, known: Iterable[str]) -> str | None:
    parent = imported.rpartition(".")[0]
    return imported if imported in known else parent if parent in known else None


def by_package(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the same for the packages on the top level, and the modules beside them."""
    tops: dict[str, set[str]] = {}
    for name, imported in arrows.items():
        top = _top(name)
        tops.setdefault(top, set()).update(found for i in imported if (found := _top(i)) != top)
    return tops


def _top(module: str) -> str:
    return ".".join(module.split(".")[:2])


def arrows_up(arrows: dict[str, set[str]]) -> list[str]:
    """Return every arrow of `by_package` that doesn't lead to a lower layer of its package, as "part imports part"."""
    depth = {
        f"{package}.{name}": number
        for package, layers in LAYERS.items()
        for number, layer in enumerate(layers)
        for name in layer.split()
    }
    inside = ((a, b) for a, found in arrows.items() for b in found if a.split(".")[0] == b.split(".")[0])
    # A package itself, which names what it exports, has no layer.
    return [f"{a} imports {b}" for a, b in inside if {a, b}.isdisjoint(LAYERS) and depth[a] >= depth[b]]


def circle(arrows: dict[str, set[str]]) -> list[str]:
    """Return modules that import each other in a ring; none where there is no circle."""
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        ring: list[str] = error.args[1]
        return ring
    return []


def arrows_of_scripts(folder: Path) -> dict[str, set[str]]:
    """Return what each JavaScript module imports of the others, at once or later."""
    named = re.compile(r"""\b(?:from\s*|import\s*\(?\s*)["'](\.[^"'\n]+)["']""")
    return {
        file.relative_to(folder).as_posix(): {
            os.path.normpath(file.relative_to(folder).parent / found)
            for found in named.findall(file.read_text("utf-8"))
        }
        for file in sorted(folder.rglob("*.js"))
    }


def loaded_by(module: str, *path: Path) -> set[str]:
    """Return the top-level packages that importing a module loads into a fresh interpreter, the library's own aside."""
    program = f"""
import json, sys
sys.path[:0] = {[str(p) for p in path]}
before = set(sys.modules)
import {module}
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, f"{module} can't be imported by itself:\n{done.stderr}"
    return set(json.loads(done.stdout)) - sys.stdlib_module_names


def loaded_by_each(modules: Iterable[str], *path: Path) -> dict[str, set[str]]:
    """Return the same for many modules, but for what `WARM` loads: each is imported into a fork of one interpreter."""
    program = f"""
import gc, importlib, json, os, sys, traceback
# A collection would copy the memory of the fork, and there is little to collect.
gc.disable()
sys.path[:0] = {[str(p) for p in path]}
for name in {WARM}:
    importlib.import_module(name)
before = set(sys.modules)
for module in {[*modules]}:
    if not os.fork():
        try:
            importlib.import_module(module)
            print(json.dumps([module, sorted({{n.partition(".")[0] for n in set(sys.modules) - before}})]), flush=True)
        except BaseException:
            sys.stderr.write(f"{{module}} can't be imported by itself:\\n{{traceback.format_exc()}}")
        os._exit(0)
    os.wait()
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True)
    assert not done.stderr, done.stderr
    assert done.returncode == 0
    return {module: set(found) - sys.stdlib_module_names for module, found in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def loaded() -> dict[str, set[str]]:
    """What each module of both packages loads, each imported by itself."""
    names = [*modules(LIBRARY), *modules(SERVICE)]
    found = loaded_by_each(names)
    assert [*found] == names
    return found


def test_both_packages_are_found() -> None:
    assert {"chapterverse", "chapterverse.model", "chapterverse.store"} <= modules(LIBRARY).keys()
    assert {"chapterverse_api", "chapterverse_api.handler"} <= modules(SERVICE).keys()


@pytest.mark.parametrize("package", [chapterverse, chapterverse_api])
def test_a_package_exports_what_an_extension_builds_with(package: ModuleType) -> None:
    assert package.__file__
    seen = {imported.rpartition(".")[2] for imported in imports(Path(package.__file__).parent, Path(package.__file__))}
    for name in package.__all__:
        assert getattr(package, name).__doc__
        # What type checkers know.
        assert name in seen
    with pytest.raises(AttributeError, match="has no attribute"):
        package.kettle  # noqa: B018


def public_names(text: str) -> Iterator[str]:
    """Yield the functions and constants of a module. Types are public where a public signature has them."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and not node.decorator_list:
            yield node.name
        if isinstance(node, ast.Assign):
            names = (name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))
            yield from (name for name in names if name.isupper() and not name.startswith("_"))


def test_the_picture_of_the_house_is_up_to_date() -> None:
    assert house_picture.PICTURE.read_text("utf-8") == house_picture.draw(), "run `python scripts/house_picture.py`"


def test_what_only_its_own_module_uses_has_an_underscore() -> None:
    sources = {
        file: file.read_text(encoding="utf-8") for package in (LIBRARY, SERVICE) for file in package.rglob("*.py")
    }
    known = Counter(word for text in sources.values() for word in set(re.findall(r"\w+", text)))
    for folder in ("tests", "scripts", "benchmarks", "training", "site_example/docs"):
        files = (file for end in ("py", "md") for file in (ROOT / folder).rglob(f"*.{end}"))
        known.update(word for file in files for word in set(re.findall(r"\w+", file.read_text(encoding="utf-8"))))
    alone = [f"{file}: {n}" for file, text in sources.items() for n in public_names(text) if known[n] < 2]
    assert alone == []


def test_a_constant_has_one_owner() -> None:
    owners: dict[str, list[str]] = {}
    for file in (file for package in (LIBRARY, SERVICE) for file in package.rglob("*.py")):
        for name in public_names(file.read_text(encoding="utf-8")):
            owners.setdefault(name, []).append(file.name)
    assert [f"{name}: {files}" for name, files in owners.items() if name.isupper() and len(files) > 1] == []


def test_no_import_crosses_a_border() -> None:
    assert broken_imports(LIBRARY, SERVICE) == []


def test_the_import_graph_has_no_circle() -> None:
    arrows = graph(LIBRARY, SERVICE)
    assert circle(arrows) == []
    assert circle(by_package(arrows)) == []


def test_the_modules_of_the_widget_import_each_other_in_no_circle() -> None:
    arrows = arrows_of_scripts(LIBRARY / "widget")
    # At once, and later.
    assert {"session.js", "turns.js"} <= arrows["failure.js"]
    assert circle(arrows) == []


def test_no_arrow_runs_up_a_layer() -> None:
    arrows = by_package(graph(LIBRARY, SERVICE))
    assert arrows_up(arrows) == []
    assert arrows_up({"chapterverse.text": {"chapterverse.store", "chapterverse.model", "chapterverse"}}) == [
        "chapterverse.text imports chapterverse.store"
    ]
    listed = [f"{package}.{name}" for package, layers in LAYERS.items() for layer in layers for name in layer.split()]
    assert sorted(listed) == sorted(name for name in arrows if "." in name)


def test_no_room_knows_another_but_the_ground_it_stands_on() -> None:
    known: dict[str, set[str]] = {}
    for name, imported in graph(LIBRARY, SERVICE).items():
        found = {room for other in imported if (room := _room(other)) and room != _room(name)}
        if (own := _room(name)) and found:
            known.setdefault(own, set()).update(found)
    assert known == ROOMS_BELOW
    listed = {extension.name for extension in EXTENSIONS if extension is not CORE}
    rooms = (file.parent.name for package in (LIBRARY, SERVICE) for file in (package / "ext").glob("*/__init__.py"))
    assert {*rooms} == listed
    page = (ROOT / "site_example" / "docs" / "project" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| room | offers |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| ([^|]+) \|", table, re.MULTILINE)
    assert {room for cell in cells for room in re.findall(r"`(\w+)`", cell)} == listed


def test_the_core_names_no_module_of_a_room() -> None:
    named = re.compile(r"""["']chapterverse(?:_api)?\.ext\.""")
    core = (file for package in (LIBRARY, SERVICE) for file in package.rglob("*.py") if "ext" not in file.parts)
    assert [file.name for file in core if named.search(file.read_text(encoding="utf-8"))] == ["manifests.py"]


def _room(module: str) -> str | None:
    """Return the room of a module; None if it is of the core."""
    _, *parts = module.split(".")
    return parts[1] if parts[:1] == ["ext"] and parts[1:] else None


def test_the_house_is_drawn_in_layers() -> None:
    page = (ROOT / "site_example" / "docs" / "project" / "architecture.md").read_text(encoding="utf-8")
    title, *rows = page.partition("```text\n")[2].partition("\n```")[0].split("\n")
    for package, column in zip(LAYERS, (slice(title.index("lambda")), slice(title.index("lambda"), None)), strict=True):
        cells = (row[column].strip().partition("  ")[0] for row in rows)
        drawn = [name.rstrip("/") for cell in cells for name in re.findall(r"[a-z_]+/?", cell)]
        layers = [set(layer.split()) for layer in LAYERS[package]]
        assert drawn == [name for layer in layers for name in drawn if name in layer]
        assert sorted(drawn) == sorted(set().union(*layers))


def test_the_top_level_has_few_folders() -> None:
    for package in (LIBRARY, SERVICE):
        assert sum((folder / "__init__.py").exists() for folder in package.iterdir()) <= MOST_FOLDERS


def test_the_service_loads_nothing_of_the_command_line() -> None:
    places = (place for own in EXTENSIONS for places in own.routes.values() for place in places.split())
    opened = (place for own in EXTENSIONS for forms in own.offers.values() for place in forms.values())
    parts = (place for own in EXTENSIONS for place in (*own.parts.values(), *own.lookups.values()))
    named = {place.partition(":")[0] for place in (*places, *opened, *parts) if place.startswith("chapterverse_api")}
    reached = set[str]()
    left = ["chapterverse_api.app", "chapterverse_api.handler", "chapterverse_api.service", *named]
    arrows = graph(LIBRARY, SERVICE)
    while left:
        name = left.pop()
        reached.add(name)
        left += arrows[name] - reached
    assert not [
        name for name in reached if within(name, "chapterverse_api.commands") or within(name, "chapterverse.cli")
    ]


def test_the_library_alone_loads_nothing() -> None:
    assert loaded_by("chapterverse") == {"chapterverse"}


def test_the_handler_loads_nothing_heavy() -> None:
    assert loaded_by("chapterverse_api.handler") & NOT_ON_THE_LAMBDA == set()


@pytest.mark.slow
def test_no_module_loads_a_vendor_sdk(loaded: dict[str, set[str]]) -> None:
    assert {name for name, heavy in loaded.items() if heavy & VENDORS} == set()


@pytest.mark.slow
def test_only_the_plugin_loads_mkdocs(loaded: dict[str, set[str]]) -> None:
    assert {name for name, heavy in loaded.items() if "mkdocs" in heavy} == {"chapterverse.mkdocs"}


@pytest.mark.slow
def test_the_library_does_not_load_the_service(loaded: dict[str, set[str]]) -> None:
    assert {n for n, heavy in loaded.items() if within(n, "chapterverse") and "chapterverse_api" in heavy} == set()


# The rules themselves are tested on packages that break them.


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, Path]:
    library, service = tmp_path / "chapterverse", tmp_path / "chapterverse_api"
    files = {
        library / "__init__.py": "",
        library / "model.py": "import json",
        library / "mkdocs.py": "from mkdocs.plugins import BasePlugin",
        library / "store" / "__init__.py": "from .. import model\nfrom . import edge",
        library / "store" / "edge.py": "",
        service / "__init__.py": "import chapterverse\nfrom chapterverse import version, model",
        service / "app.py": "import chapterverse.store.edge\nfrom chapterverse.embedding import open_embedder",
    }
    for file, text in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return library, service


def test_packages_that_keep_the_rules_pass(planted: tuple[Path, Path]) -> None:
    assert broken_imports(*planted) == []
    assert circle(graph(*planted)) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("chapterverse/cli.py", "import chapterverse_api.app", "chapterverse.cli imports chapterverse_api.app"),
        ("chapterverse/a.py", "def f():\n    import chapterverse_api", "chapterverse.a imports chapterverse_api"),
        ("chapterverse/cli.py", "from mkdocs import config", "chapterverse.cli imports mkdocs.config"),
        ("chapterverse/store/x.py", "import mkdocs", "chapterverse.store.x imports mkdocs"),
        ("chapterverse/mkdocs.py", "import sphinx.util", "chapterverse.mkdocs imports sphinx.util"),
        ("chapterverse_api/x.py", "from chapterverse import cli", "chapterverse_api.x imports chapterverse.cli"),
        ("chapterverse_api/x.py", "import chapterverse.cli as c", "chapterverse_api.x imports chapterverse.cli"),
        ("chapterverse_api/x.py", "import mkdocs.config", "chapterverse_api.x imports mkdocs.config"),
        ("chapterverse_api/a/b.py", "from chapterverse import cli", "chapterverse_api.a.b imports chapterverse.cli"),
    ],
)  # fmt: skip
def test_an_import_across_a_border_is_reported(
    planted: tuple[Path, Path], tmp_path: Path, file: str, text: str, complaint: str
) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert broken_imports(*planted) == [complaint]


def test_a_relative_import_is_resolved(planted: tuple[Path, Path]) -> None:
    library, _ = planted
    assert list(imports(library, library / "store" / "__init__.py")) == [
        "chapterverse.model",
        "chapterverse.store.edge",
    ]


def test_a_circle_that_only_a_type_checker_sees_is_found(planted: tuple[Path, Path]) -> None:
    library, _ = planted
    lines = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from chapterverse.store import edge\n"
    (library / "model.py").write_text(lines, encoding="utf-8")
    assert circle(graph(*planted)) == []
    (library / "store" / "edge.py").write_text("from chapterverse import model\n", encoding="utf-8")
    assert {"chapterverse.model", "chapterverse.store.edge"} <= {*circle(graph(*planted))}
    assert circle(by_package(graph(*planted)))


def test_a_heavy_import_is_seen(tmp_path: Path) -> None:
    (tmp_path / "light.py").write_text("import heavy.part, json", encoding="utf-8")
    (tmp_path / "heavy").mkdir()
    (tmp_path / "heavy" / "part.py").write_text("", encoding="utf-8")
    assert loaded_by("light", tmp_path) == {"light", "heavy"}
    assert loaded_by_each(["heavy", "light"], tmp_path) == {"heavy": {"heavy"}, "light": {"light", "heavy"}}


def test_what_is_imported_beforehand_hides_nothing_that_is_forbidden() -> None:
    assert set().union(*map(loaded_by, WARM)) & {*VENDORS, "mkdocs", "chapterverse", "chapterverse_api"} == set()


def test_a_module_that_cannot_be_imported_by_itself_is_seen(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text("import second\nvalue = 1", encoding="utf-8")
    (tmp_path / "second.py").write_text("from first import value", encoding="utf-8")
    with pytest.raises(AssertionError, match="first can't be imported by itself"):
        loaded_by_each(["second", "first"], tmp_path)


# Nothing of ours is patched

#: By file of the tests, what of ours is replaced all the same.
PATCHED = {
    # The system's names of this boot and of its processes: a test can't have others.
    "ext/test_presence.py": {
        "chapterverse.ext.leases._BOOT_ID", "chapterverse.ext.leases._NAMESPACE",
    },
    # A publisher with a mistake that no argument makes.
    "faults/planted.py": {"publication._writer"},
}  # fmt: skip


def patches(source: str) -> set[str]:
    """Return what a module replaces: a library's parts don't count, our own and those of objects do."""
    nodes = [*ast.walk(ast.parse(source))]
    foreign, found = {*sys.stdlib_module_names, "qdrant_edge"}, set[str]()
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name
            found |= {"mock"} & {*module.split("."), *(name.name for name in node.names)}
            if module.partition(".")[0] not in (LIBRARY.name, SERVICE.name):
                foreign |= {(name.asname or name.name).partition(".")[0] for name in node.names} - {"mock"}
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("setattr", "delattr", "setitem", "delitem"):
                found |= {_target(node.args[0])}
        elif isinstance(node, ast.Assign):
            found |= {ast.unparse(target) for target in node.targets if _is_private_to_another(target)}
    return {name for name in found if name.partition(".")[0] not in foreign}


def _target(place: ast.expr) -> str:
    return place.value if isinstance(place, ast.Constant) and isinstance(place.value, str) else ast.unparse(place)


def _is_private_to_another(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and target.attr.startswith("_") and ast.unparse(target.value) != "self"


def test_nothing_of_ours_is_patched() -> None:
    tests = ROOT / "tests"
    files = {file.relative_to(tests).as_posix(): file.read_text("utf-8") for file in tests.rglob("*.py")}
    assert {name: found for name, text in files.items() if (found := patches(text))} == PATCHED


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('m.setattr("chapterverse.reading.X", 1)', {"chapterverse.reading.X"}),
        ("from chapterverse import reading\nm.setattr(reading, 'X', 1)", {"reading"}),
        ("from chapterverse_api.http import server\nm.delattr(server.app, 'X')", {"server.app"}),
        ("m.setattr(store, 'heads', list)", {"store"}),
        ("store._heads = []", {"store._heads"}),
        ("from unittest import mock", {"mock"}),
        ("import time\nm.setattr(time, 'time', int)", set()),
        ("m.setattr('tempfile.tempdir', None)\nself._heads = []", set()),
    ],
)
def test_a_patch_is_found(line: str, found: set[str]) -> None:
    assert patches(line) == found
