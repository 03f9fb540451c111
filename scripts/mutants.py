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
import importlib.util
import itertools
import json
import math
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
LIBRARY, SERVICE = "plugin/chapterverse", "lambda/chapterverse_api"
#: By target: the code, and the tests that may run on it.
TARGETS = {
    "check": (f"{SERVICE}/ext/check/*.py", "ext/check/test_[cfvw]*.py api/answer/test_second_votes.py"),
    "links": (f"{SERVICE}/ext/check/links/*.py", "ext/check/test_address_filter*.py ext/check/test_site_text.py"),
    "plan": (
        f"{LIBRARY}/indexing/plan.py {LIBRARY}/indexing/apply.py",
        "indexing/test_[!cs]*.py enrichment/test_*.py ext/knowledge/test_[ad]*.py",
    ),
    "guard": (
        f"{SERVICE}/http/guard.py {SERVICE}/http/admission.py",
        "api/http/guard/test_*.py api/http/routes/test_[cm]*[ps].py api/limits/test_p*.py api/observability/test_m*.py",
    ),
    "connections": (f"{SERVICE}/ext/server/connections.py", "ext/server/test_connections.py"),
    "budget": (
        f"{SERVICE}/ext/budget/*.py",
        "ext/budget/test_*.py api/answer/test_m*.py api/answer/test_second_votes.py api/observability/test_metrics.py",
    ),
    "limits": (f"{SERVICE}/limits.py {SERVICE}/ext/limiter/*.py", "api/limits/test_*.py ext/budget/test_*.py"),
}
#: Seconds of a processor that the tests of one mutant may need, and that the mutant may need beyond twice their own.
MOST_SECONDS, PATIENCE = 20.0, 10.0
#: Seconds after which a mutant that only waits is stopped, on a machine however busy.
MOST_WAITING = 300.0
_PAIRS = (
    (ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot),
    (ast.Add, ast.Sub), (ast.BitOr, ast.BitAnd), (ast.And, ast.Or),
)  # fmt: skip
SWAPS: dict[type[ast.AST], type[ast.AST]] = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])} | {
    ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip
#: Calls, options and fields that can't matter to a result, calls by a part of their names.
_SILENT_CALLS = ("Error", "Fault", "Exception", "log.", "progress", "compile", "cast", "Literal", "TypeVar")
_SILENT_OPTIONS = {"strict", "frozen", "slots", "repr"}
_SILENT_FIELDS = {"annotation", "returns", "op", "ops", "ctx", "decorator_list"}


class Mutant(NamedTuple):
    """A changed file.

    Attributes:
        constant: the constant of its module that the change is in; "" if it is in none.
        says: what stands in place of what.
        make: returns its code.
    """

    file: str
    line: int
    constant: str
    says: str
    make: Callable[[], str]


def find_mutants(file: str, code: str) -> Iterator[Mutant]:
    """Yield each mutant of a file, in the order of its code."""
    tree = ast.parse(code)

    def visit(parent: ast.AST, line: int, constant: str, *, silent: bool) -> Iterator[Mutant]:
        children = ((f, at, node) for f, value in ast.iter_fields(parent) for at, node in _items(value))
        for field, at, node in children:
            if not isinstance(node, ast.AST) or field in _SILENT_FIELDS:
                continue
            at_line = getattr(node, "lineno", line)
            if parent is tree and isinstance(node, ast.Assign | ast.AnnAssign):
                constant = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            is_silent = silent or _is_silent(node, bool(constant))
            if not is_silent or (isinstance(node, ast.Raise) and not silent):
                for new in _changes(node):
                    make = partial(_replaced, tree, parent, field, at, new)
                    yield Mutant(file, at_line, constant, f"{_short(node)}  ->  {_short(new)}", make)
            yield from visit(node, at_line, constant, silent=is_silent)
            constant = "" if parent is tree else constant

    yield from visit(tree, 1, "", silent=False)


def _items(value: object) -> list[tuple[int | None, object]]:
    return list(enumerate(value)) if isinstance(value, list) else [(None, value)]


def _is_silent(node: ast.AST, is_constant: bool) -> bool:
    """Whether a node and all below it stay as they are."""
    match node:
        case ast.Call(func=named) | ast.Subscript(value=named):
            return any(part in ast.unparse(named) for part in _SILENT_CALLS)
        case ast.Expr(value=ast.Constant()) | ast.JoinedStr() | ast.Raise():
            return True
        case ast.If():
            return ast.unparse(node.test) == "TYPE_CHECKING"
        case ast.keyword():
            return node.arg in _SILENT_OPTIONS
    return is_constant and isinstance(node, ast.Dict | ast.Set | ast.List | ast.Tuple)


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in a node's place."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in SWAPS:
            yield _with(node, ops=[SWAPS[type(op)]()])
        case ast.BoolOp():
            yield _with(node, op=SWAPS[type(node.op)]())
            yield from (_with(node, values=[v for v in node.values if v is not out]) for out in node.values)
        case ast.BinOp() if type(node.op) in SWAPS:
            yield _with(node, op=SWAPS[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1 if abs(value) < 10 else value * 2)
        case ast.Constant(value=str(text)) if text.count(" ") < 2:
            yield ast.Constant("" if text else "x")
        case ast.If() | ast.IfExp():
            yield from (_with(node, test=ast.Constant(value)) for value in (True, False))
        case ast.While():
            yield _with(node, test=ast.Constant(False))
        case ast.comprehension(ifs=[_, *_]):
            yield _with(node, ifs=[])
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield _with(node, value=None)
        case ast.AugAssign():
            yield ast.Assign([node.target], node.value)
        case ast.Expr(value=ast.Call()) | ast.Raise() | ast.Delete():
            yield ast.Pass()
        case ast.Break() | ast.Continue():
            yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
        case ast.ExceptHandler():
            yield _with(node, body=[ast.Raise()])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    changed.__dict__.update(fields)
    return changed


def _replaced(tree: ast.AST, parent: ast.AST, field: str, at: int | None, new: ast.AST) -> str:
    """Return the code with one node replaced, and leave the tree as it was."""
    before = getattr(parent, field)
    setattr(parent, field, new if at is None else [*before[:at], new, *before[at + 1 :]])
    code = ast.unparse(ast.fix_missing_locations(tree))
    setattr(parent, field, before)
    return code


def _short(node: ast.AST) -> str:
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node)))
    return text if len(text) <= 90 and "\n" not in text else f"{text.splitlines()[0][:90]} …"


class Measure:
    """A pytest plugin that finds which lines each test runs, and how much time of a processor it takes."""

    def __init__(self, files: list[str]) -> None:
        from coverage import Coverage

        self._coverage = Coverage(data_file=None, include=files)
        self._seconds: dict[str, float] = {}
        self._coverage.start()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._coverage.switch_context(nodeid)
        self._seconds[nodeid] = sum(os.times()[:4])

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        # With the processes that it waited for.
        self._seconds[nodeid] = sum(os.times()[:4]) - self._seconds[nodeid]

    def save(self, file: Path) -> None:
        self._coverage.stop()
        data, tree = self._coverage.get_data(), str(Path.cwd())
        lines = {os.path.relpath(f, tree): data.contexts_by_lineno(f) for f in data.measured_files()}
        foreign = [n for n, m in sys.modules.items() if not (getattr(m, "__file__", None) or tree).startswith(tree)]
        file.write_text(json.dumps({"seconds": self._seconds, "lines": lines, "modules": foreign}), encoding="utf-8")


def run_tests(*arguments: str, plugin: object = None) -> int:
    import pytest

    # Plugins that were imported before the fork have their assertions as they are.
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    return pytest.main([*options, *arguments], plugins=[plugin] if plugin else [])


def in_fork(work: Callable[[], int], tree: Path, seconds: float) -> int:
    """Return what some work in a copy of the tree returns in a process of its own; the signal, negative, that ended it.

    Args:
        seconds: the time of a processor that it may take.
    """
    if not (child := os.fork()):
        with suppress(BaseException):
            os.setsid()
            os.chdir(tree)
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), math.ceil(seconds)))
            sys.path[:0] = code = [str(tree / "plugin"), str(tree / "lambda")]
            os.environ["PYTHONPATH"] = os.pathsep.join(code)
            for stream in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), stream)
            os._exit(work())
        os._exit(1)
    until, done, status = time.monotonic() + seconds + MOST_WAITING, 0, 0
    while not done and time.monotonic() < until:
        time.sleep(0.02)
        done, status = os.waitpid(child, os.WNOHANG)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(status if done else os.waitpid(child, 0)[1])


def find_files(patterns: str, folder: str = ".") -> list[str]:
    return sorted(f.relative_to(ROOT).as_posix() for pattern in patterns.split() for f in (ROOT / folder).glob(pattern))


class Target:
    """A target's code in a copy of the tree, and what its tests run of it."""

    def __init__(self, name: str, results: Path, tree: Path) -> None:
        self.code = {file: (ROOT / file).read_text(encoding="utf-8") for file in find_files(TARGETS[name][0])}
        tests = find_files(TARGETS[name][1], "tests")
        digest = hashlib.sha256(
            "".join([*self.code.values(), *((ROOT / f).read_text("utf-8") for f in tests)]).encode()
        )
        self.results, self._tree = results / f"{name}-{digest.hexdigest()[:12]}", tree
        self.results.mkdir(parents=True, exist_ok=True)
        if not (measured := self.results / "measured.json").exists():
            in_fork(partial(self._measure, tests, measured), tree, 3600)
        self._seconds, self._lines, modules = json.loads(measured.read_text(encoding="utf-8")).values()
        for module in modules:
            with suppress(Exception):
                importlib.import_module(module)
        self._times = itertools.count(int(time.time()))
        self.require_success()

    def require_success(self) -> None:
        """Run the tests on code that is not changed, but written as that of a mutant is."""
        for file, code in self.code.items():
            self._write(file, ast.unparse(ast.parse(code)))
        tests = sorted({test for file in self.code for test in self._tests_of(file)})
        # Twice, as one may fail on a busy machine.
        if all(in_fork(partial(run_tests, "-x", *tests), self._tree, 3600) for _ in range(2)):
            sys.exit(f"Tests fail though nothing is changed: let them pass first, and remove {self.results}.")
        for file, code in self.code.items():
            self._write(file, code)

    def _measure(self, tests: list[str], results: Path) -> int:
        plugin = Measure([*self.code])
        # What becomes slow is a timeout without a test of growth, and these and the slow ones take the most time.
        code = run_tests("-m", "not slow", "-k", "not linear_time and not bounded_time", *tests, plugin=plugin)
        plugin.save(results)
        return code

    def _tests_of(self, file: str, *lines: int) -> set[str]:
        """Return the tests that ran any of these lines of a file, or any at all."""
        by_line = self._lines.get(file, {})
        return {test for line in map(str, lines or by_line) for test in by_line.get(line, ()) if test}

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that ran a mutant's line, or the lines that name its constant, the quickest first."""
        found = self._tests_of(mutant.file, mutant.line)
        for file, code in self.code.items() if mutant.constant else ():
            named = [n for n, line in enumerate(code.splitlines(), 1) if mutant.constant in line]
            found |= self._tests_of(file, *named) if named else set()
        # What only an import runs may matter to all.
        found = found or self._tests_of(mutant.file)
        ordered = sorted(found, key=lambda test: (self._seconds[test], test))
        total = itertools.accumulate(self._seconds[test] for test in ordered)
        return [test for test, seconds in zip(ordered, total, strict=True) if seconds <= MOST_SECONDS]

    def judge(self, mutant: Mutant) -> str:
        """Return what the tests say of a mutant."""
        if not (tests := self.tests(mutant)):
            return "survived 0 tests"
        self._write(mutant.file, mutant.make())
        patience = PATIENCE + 2 * sum(self._seconds[test] for test in tests)
        status = in_fork(lambda: run_tests("-x", *tests), self._tree, patience)
        self._write(mutant.file, self.code[mutant.file])
        return f"survived {len(tests)} tests" if status == 0 else "killed" if status > 0 else "timeout"

    def _write(self, file: str, code: str) -> None:
        (self._tree / file).write_text(code, encoding="utf-8")
        # Python tells by the whole second whether what it compiled is old.
        os.utime(self._tree / file, (second := next(self._times), second))


def interval(part: int, of: int) -> tuple[float, float]:
    """Return Wilson's interval of 95 % for a share."""
    z, share = 1.96, part / of
    middle, width = share + z * z / (2 * of), z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - width) / (1 + z * z / of), (middle + width) / (1 + z * z / of)


def run(name: str, sample: int, seed: int, results: Path, tree: Path) -> None:
    """Judge a sample of a target's mutants, and print the survivors and the share that was noticed."""
    target = Target(name, results, tree)
    mutants = [mutant for file, code in target.code.items() for mutant in find_mutants(file, code)]
    random.Random(seed).shuffle(mutants)
    record = target.results / f"seed-{seed}.json"
    judged: dict[str, str] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    counts = Counter[str]()
    for mutant in mutants[:sample]:
        digest = hashlib.sha256(mutant.make().encode()).hexdigest()
        key = f"{mutant.file}:{mutant.line} {digest[:8]}  {mutant.says}"
        if key not in judged:
            judged[key] = target.judge(mutant)
            record.write_text(json.dumps(judged, indent=1, ensure_ascii=False), encoding="utf-8")
        if judged[key] != "killed":
            print(judged[key], key, flush=True)
        counts[judged[key].split()[0]] += 1
    # What broke meanwhile, such as a removed environment, would look like mutants that were noticed.
    target.require_success()
    total = counts.total()
    noticed = total - counts["survived"]
    low, high = interval(noticed, total)
    print(
        f"{name}, seed {seed}: {total} of {len(mutants)} mutants, {counts['killed']} killed, {counts['timeout']} timed "
        f"out, {counts['survived']} survived: {noticed / total:.0%} noticed, 95 % interval {low:.0%} to {high:.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="+", choices=TARGETS, metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--sample", type=int, default=100, help="mutants of each target (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="chooses them (default: %(default)s)")
    parser.add_argument("--results", type=Path, default=ROOT / ".cache/mutants", help="default: .cache/mutants")
    options = parser.parse_args()
    if not importlib.util.find_spec("coverage"):
        sys.exit("coverage is missing: run `.venv/bin/uv pip install coverage` first.")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        tree, left_out = Path(folder).resolve() / "tree", (".git", ".venv", ".cache", "node_modules")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*left_out))
        for name in left_out[1:]:
            (tree / name).symlink_to(ROOT / name)
        for name in options.targets:
            run(name, options.sample, options.seed, options.results.absolute(), tree)


if __name__ == "__main__":
    main()
