"""Caches compiled regular expressions and generated dataclass methods, which no `.pyc` contains.

Compiling them takes a third of the time from a cold start to the first answer: without this file it costs 2.2 times
the hello of `benchmarks/cold_start.py`, with it 1.5 (medians of nine alternating rounds on a busy machine, index in
Qdrant; 2.3 and 1.8 from S3). `scripts/precompile.py` runs Lambda's Python while the package is built and stores the
results in a file. At start they are loaded from it. Entries that are missing, or made by another Python, are compiled
as usual.
"""

from __future__ import annotations

import builtins
import dataclasses
import marshal
import re
from collections.abc import Callable
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("precompiled.bin")

compiler: Any = vars(re)["_compiler"]
#: Identifies the Python that made the file: magic numbers of `.pyc` files and of regular expressions.
MAGIC = (MAGIC_NUMBER, compiler._sre.MAGIC)

_installed = False


def install(file: Path = FILE) -> None:
    """Use the entries of this file if it exists and matches this Python. A second call does nothing."""
    global _installed
    if _installed:
        return
    _installed = True
    try:
        # As trustworthy as the `.pyc` files beside it.
        magic, patterns, sources = marshal.loads(file.read_bytes())  # noqa: S302
    except (OSError, ValueError, EOFError, TypeError):
        return
    if magic != MAGIC:
        return
    compile_anew, make_pattern = compiler.compile, compiler._sre.compile

    def cached_compile(pattern: Any, flags: int = 0) -> Any:
        code = patterns.get((pattern, flags))
        return make_pattern(pattern, *marshal.loads(code)) if code else compile_anew(pattern, flags)  # noqa: S302

    def cached_exec(source: str, *namespaces: Any) -> None:
        code = sources.get(source)
        builtins.exec(marshal.loads(code) if code else source, *namespaces)  # noqa: S102, S302

    patch(cached_compile, cached_exec)


def patch(compile_pattern: Callable[..., Any], exec_source: Callable[..., None]) -> None:
    """Replace the compiler of `re`, and the `exec` that `dataclasses` calls."""
    compiler.compile = compile_pattern
    # A module's global takes precedence over the builtin.
    vars(dataclasses)["exec"] = exec_source
