"""Changes the code in one place at a time, and counts the changes that the tests notice.

    python scripts/mutants.py budget --sample 100 --seed 2

A mutant is a target's code with one change: a comparison, a condition, an operator, a number, a word, or a statement
that is left out. In a copy of the tree, the tests that ran the changed line when nothing was changed run on it, the
quickest first, until one fails. A survivor is equivalent, dead code, or a gap in the tests: read it.

Not changed is what no test should state: docstrings, annotations, sentences and what raises or logs them, patterns,
tables at module level, and the options `strict`, `frozen` and `slots`. Results stay in a folder, by what the code and
its tests hold, so that the same command goes on where it was stopped. It needs a system that forks, and coverage:
`.venv/bin/uv pip install coverage`.
"""

from __future__ import annotations

import argparse
import ast
import copy
import hashlib
import importlib
import itertools
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LIBRARY, SERVICE = "plugin/chapterverse", "lambda/chapterverse_api"
#: By target: the code, and the tests that may run on it.
TARGETS = {
    "check": (f"{SERVICE}/check/*.py", "api/check/test_[cfv]*.py api/answer/test_second_votes.py"),
    "links": (f"{SERVICE}/check/links/*.py", "api/check/test_address_filter*.py api/check/test_site_text.py"),
    "plan": (
        f"{LIBRARY}/indexing/plan.py {LIBRARY}/indexing/apply.py",
        "indexing/test_[dhirsv]*.py indexing/test_p[ru]*.py",
    ),
    "guard": (
        f"{SERVICE}/http/guard/*.py",
        "api/http/guard/test_*.py api/limits/test_proof_of_work.py api/http/routes/test_mcp.py",
    ),
    "connections": (f"{SERVICE}/http/connections.py", "api/http/test_connections.py"),
    "budget": (
        f"{SERVICE}/budget/*.py",
        "api/budget/test_*.py api/answer/test_m*.py api/answer/test_second_votes.py api/observability/test_metrics.py",
    ),
    "limits": (f"{SERVICE}/limits/*.py", "api/limits/test_*.py api/budget/test_*.py"),
}
#: Seconds of a processor that the tests of one mutant may need, and times longer that they may take on a busy machine.
MOST_SECONDS, PATIENCE = 30.0, 20
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
#: Calls and options that can't matter to an answer, by a part of their names.
_SILENT_CALLS = ("Error", "Fault", "Exception", "log.", "progress", "compile", "cast", "Literal", "TypeVar")
_SILENT_OPTIONS = {"strict", "frozen", "slots", "repr"}
_KEPT_FIELDS = {"annotation", "returns", "op", "ops", "ctx", "decorator_list"}
_CONTAINERS = (ast.Dict, ast.Set, ast.List, ast.Tuple)


def _is_silent(node: ast.AST, *, at_module: bool) -> bool:
    """Whether a node and all below it stay as they are."""
    if isinstance(node, ast.Call | ast.Subscript):
        name = ast.unparse(node.func if isinstance(node, ast.Call) else node.value)
        return any(part in name for part in _SILENT_CALLS)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    if isinstance(node, ast.keyword):
        return node.arg in _SILENT_OPTIONS
    return isinstance(node, ast.JoinedStr | ast.Raise) or (at_module and isinstance(node, _CONTAINERS))


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in a node's place."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield ast.Compare(node.left, [COMPARISONS[type(op)]()], node.comparators)
        case ast.BoolOp():
            yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
            yield from (ast.BoolOp(node.op, [v for v in node.values if v is not left_out]) for left_out in node.values)
        case ast.BinOp() if type(node.op) in OPERATORS:
            yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield ast.Constant(node.value + 1 if abs(node.value) < 10 else node.value * 2)
        case ast.Constant(value=str()) if node.value.count(" ") < 2:
            yield ast.Constant("" if node.value else "x")
        case ast.If() | ast.IfExp():
            yield from (_with(node, test=ast.Constant(value)) for value in (True, False))
        case ast.While():
            yield _with(node, test=ast.Constant(False))
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])
        case ast.Return(value=ast.expr()) if ast.unparse(node.value) != "None":
            yield ast.Return(ast.Constant(None))
        case ast.AugAssign():
            yield ast.Assign([node.target], node.value, lineno=node.lineno)
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Break():
            yield ast.Continue()
        case ast.Continue():
            yield ast.Break()
        case ast.ExceptHandler():
            yield _with(node, body=[ast.Raise()])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


def _replaced(tree: ast.AST, parent: ast.AST, field: str, at: int | None, new: ast.AST) -> str:
    """Return the code with one node replaced, and leave the tree as it was."""
    before = getattr(parent, field)
    setattr(parent, field, new if at is None else [*before[:at], new, *before[at + 1 :]])
    code = ast.unparse(ast.fix_missing_locations(tree))
    setattr(parent, field, before)
    return code


def find_mutants(file: str) -> Iterator[dict[str, Any]]:
    """Yield each mutant of a file, with its line and what it says in place of what."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))

    def visit(parent: ast.AST, line: int, name: str | None, *, silent: bool) -> Iterator[dict[str, Any]]:
        for field, value in ast.iter_fields(parent):
            for at, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if not isinstance(node, ast.AST) or field in _KEPT_FIELDS:
                    continue
                own_line, constant = getattr(node, "lineno", line), name
                if parent is tree and isinstance(node, ast.Assign | ast.AnnAssign):
                    constant = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
                is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
                is_silent = silent or is_text or _is_silent(node, at_module=name is not None)
                if not is_silent or (not silent and isinstance(node, ast.Raise)):
                    for new in _changes(node):
                        code = partial(_replaced, tree, parent, field, at, new)
                        says = f"{_short(node)}  ->  {_short(new)}"
                        yield {"file": file, "line": own_line, "name": constant, "says": says, "code": code}
                yield from visit(node, own_line, constant, silent=is_silent)

    yield from visit(tree, 1, None, silent=False)


def _short(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    return text if len(text) <= 90 else text.splitlines()[0][:90] + " …"


class Measure:
    """A pytest plugin that finds which lines each test runs, and how much time of a processor it takes."""

    def __init__(self, files: list[str]) -> None:
        from coverage import Coverage

        self._coverage = Coverage(data_file=None, include=files)
        self._seconds: dict[str, float] = {}
        self._failed: list[str] = []
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)
        self._seconds[nodeid] = _processor_time()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._seconds[nodeid] = _processor_time() - self._seconds[nodeid]

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._failed.append(report.nodeid)

    def save(self, results: Path) -> None:
        self._coverage.stop()
        data, tree = self._coverage.get_data(), str(Path.cwd())
        lines = {
            os.path.relpath(file, tree): {
                line: [c for c in contexts if c and c not in self._failed]
                for line, contexts in data.contexts_by_lineno(file).items()
            }
            for file in data.measured_files()
        }
        theirs = [n for n, m in sys.modules.items() if not (getattr(m, "__file__", None) or tree).startswith(tree)]
        results.write_text(json.dumps({"seconds": self._seconds, "lines": lines, "modules": theirs}))


def _processor_time() -> float:
    """Return the seconds of this process and of those that it waited for: how busy the machine is doesn't count."""
    return sum(os.times()[:4])


def in_fork(work: Callable[[], int], tree: Path, seconds: float) -> int | None:
    """Return what some work in a copy of the tree returns in a process of its own; None if it takes too long."""
    if not (child := os.fork()):
        with suppress(BaseException):
            os.setsid()
            os.chdir(tree)
            os.environ["PYTHONPATH"] = os.pathsep.join(code := [str(tree / "plugin"), str(tree / "lambda")])
            sys.path[:0] = code
            null = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(null, stream)
            os._exit(work())
        os._exit(1)
    until, done = time.monotonic() + seconds, 0
    while not done and time.monotonic() < until:
        time.sleep(0.02)
        done, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status) if done else os.waitpid(child, 0) and None


def run_tests(*arguments: str, plugin: object = None) -> int:
    import pytest

    # Plugins that were imported before the fork have their assertions as they are.
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main([*options, *arguments], plugins=[plugin] if plugin else [])


def find_files(*patterns: str) -> list[str]:
    return sorted(file.relative_to(ROOT).as_posix() for pattern in patterns for file in ROOT.glob(pattern))


class Target:
    """A target's code in a copy of the tree, and what its tests run of it."""

    def __init__(self, name: str, results: Path, tree: Path) -> None:
        code, tests = TARGETS[name]
        self.files = find_files(*code.split())
        self._tests = find_files(*(f"tests/{pattern}" for pattern in tests.split()))
        digest = hashlib.sha256(b"".join((ROOT / file).read_bytes() for file in [*self.files, *self._tests]))
        self.results = results / f"{name}-{digest.hexdigest()[:12]}"
        self._tree = tree
        self._measured = self._measure()

    def _measure(self) -> Any:
        file = self.results / "measured.json"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)

            def measure() -> int:
                plugin = Measure(self.files)
                code = run_tests(*self._tests, plugin=plugin)
                plugin.save(file)
                return code

            in_fork(measure, self._tree, 3600)
        return json.loads(file.read_text(encoding="utf-8"))

    def preload(self) -> None:
        """Import what the tests import of others, once for all mutants."""
        for module in self._measured["modules"]:
            with suppress(Exception):
                importlib.import_module(module)

    def tests(self, mutant: dict[str, Any]) -> list[str]:
        """Return the tests that ran a mutant's line, or the lines that name its constant, the quickest first."""
        lines = self._measured["lines"].get(mutant["file"], {})
        text = (self._tree / mutant["file"]).read_text(encoding="utf-8").splitlines()
        numbers = [n for n, line in enumerate(text, 1) if mutant["name"] and mutant["name"] in line] or [mutant["line"]]
        found = {test for n in numbers for test in lines.get(str(n), ())}
        found = found or {test for tests in lines.values() for test in tests}
        seconds = self._measured["seconds"]
        chosen, total = list[str](), 0.0
        for test in sorted(found, key=lambda test: (seconds[test], test)):
            total += seconds[test]
            if total > MOST_SECONDS and chosen:
                break
            chosen.append(test)
        return chosen

    def judge(self, mutant: dict[str, Any], code: str) -> str:
        """Return what the tests say of a mutant."""
        tests = self.tests(mutant)
        if not tests:
            return "survived: no test runs it"
        file = self._tree / mutant["file"]
        before, patience = file.read_bytes(), 60 + PATIENCE * sum(self._measured["seconds"][test] for test in tests)
        _write(file, code.encode())
        status = in_fork(lambda: run_tests("-x", *tests), self._tree, patience)
        _write(file, before)
        return {None: "timeout", 0: f"survived {len(tests)} tests"}.get(status, "killed")


_writes = itertools.count(int(time.time()))


def _write(file: Path, code: bytes) -> None:
    file.write_bytes(code)
    # Python tells by the whole second whether what it compiled is old.
    os.utime(file, (second := next(_writes), second))


def copy_tree(tree: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for path in (ROOT / os.fsdecode(name) for name in listed.stdout.split(b"\0") if name):
        if path.is_file() and not path.is_symlink():
            (tree / path.relative_to(ROOT)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, tree / path.relative_to(ROOT))
    for name in (".venv", ".cache", "node_modules"):
        (tree / name).symlink_to(ROOT / name)


def interval(killed: int, of: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share."""
    z, share = 1.96, killed / of
    middle, width = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - width) / (1 + z * z / of), (middle + width) / (1 + z * z / of)


def run(name: str, sample: int, seed: int, results: Path, tree: Path) -> None:
    target = Target(name, results, tree)
    mutants = [mutant for file in target.files for mutant in find_mutants(file)]
    random.Random(seed).shuffle(mutants)
    record = target.results / f"seed-{seed}.json"
    judged: dict[str, str] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    target.preload()
    for file in target.files:
        unchanged, code = (
            {"file": file, "line": 0, "name": None},
            ast.unparse(ast.parse((ROOT / file).read_text("utf-8"))),
        )
        if "killed" in (target.judge(unchanged, code), target.judge(unchanged, code)):
            sys.exit(f"Tests fail on {file} though nothing is changed: let them pass first.")
    verdicts = []
    for mutant in mutants[:sample]:
        code = mutant["code"]()
        key = f"{mutant['file']}:{mutant['line']} {hashlib.sha256(code.encode()).hexdigest()[:8]}  {mutant['says']}"
        if key not in judged:
            judged[key] = target.judge(mutant, code)
            record.write_text(json.dumps(judged, indent=1, ensure_ascii=False), encoding="utf-8")
            print(judged[key], key, flush=True)
        verdicts.append(judged[key].split()[0].rstrip(":"))
    counts = Counter(verdicts)
    noticed = counts["killed"] + counts["timeout"]
    low, high = interval(noticed, len(verdicts))
    print(
        f"{name}: {len(verdicts)} of {len(mutants)} mutants, {counts['killed']} killed, {counts['timeout']} timed out, "
        f"{counts['survived']} survived: {noticed / len(verdicts):.0%} noticed, 95 % interval {low:.0%} to {high:.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", choices=TARGETS, metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--sample", type=int, default=100, help="mutants of each target (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="chooses them (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=ROOT / ".cache/mutants", help="default: %(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as tree:
        copy_tree(Path(tree))
        for name in options.targets:
            run(name, options.sample, options.seed, options.results.absolute(), Path(tree).resolve())


if __name__ == "__main__":
    main()
