"""Reports the shape of the code: lines by package, longest files and functions.  shape.py [ROWS]

It is a report and not a gate: one long file about one subject is better than two halves.
"""

from __future__ import annotations

import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (ROOT / "plugin" / "chapterverse", ROOT / "lambda" / "chapterverse_api")


def functions(file: Path) -> Iterator[tuple[int, str]]:
    """Yield length in lines and place of each function in a file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield length, f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


def report(rows: int) -> Iterator[str]:
    files = {file: file.read_text(encoding="utf-8").count("\n") for p in PACKAGES for file in p.rglob("*.py")}
    folders = Counter[str]()
    for file, lines in files.items():
        folders["/".join(file.relative_to(ROOT).parts[1:3])] += lines
    lengths = sorted((function for file in files for function in functions(file)), reverse=True)
    sizes = [length for length, _ in lengths]
    yield f"{sum(files.values())} lines in {len(files)} files; functions: median {statistics.median(sizes):.0f} lines, "
    yield f"  nine in ten at most {statistics.quantiles(sizes, n=10)[-1]:.0f}"
    yield "\nLines by package"
    yield from (f"{lines:6} {folder}" for folder, lines in folders.most_common())
    yield "\nLongest files"
    yield from (f"{lines:6} {file.relative_to(ROOT)}" for file, lines in Counter(files).most_common(rows))
    yield "\nLongest functions"
    yield from (f"{length:6} {place}" for length, place in lengths[:rows])


if __name__ == "__main__":
    print("\n".join(report(int(sys.argv[1]) if len(sys.argv) > 1 else 15)))
