"""What Python compiles anew at every start, though it never changes: regular expressions and methods of dataclasses.

No `.pyc` holds them, and they took a third of the time from a cold start to its first answer. So Lambda's Python writes
down what it makes of them when the package is made (`scripts/precompile.py`), and a start takes it from there. What is
not in that file, or was made by another Python, is compiled as ever.
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
#: Which Python made the file: the first number stands in each `.pyc`, the second is that of regular expressions.
MAGIC = (MAGIC_NUMBER, compiler._sre.MAGIC)

_used = False


def use(file: Path = FILE) -> None:
    """Take from now on what this file holds, if it is there and of this Python. A second call does nothing."""
    global _used
    if _used:
        return
    _used = True
    try:
        # As trustworthy as the `.pyc` beside it.
        magic, patterns, sources = marshal.loads(file.read_bytes())  # noqa: S302
    except (OSError, ValueError, EOFError, TypeError):
        return
    if magic != MAGIC:
        return
    compile_anew, make = compiler.compile, compiler._sre.compile

    def compiled(pattern: Any, flags: int = 0) -> Any:
        known = patterns.get((pattern, flags))
        return make(pattern, *marshal.loads(known)) if known else compile_anew(pattern, flags)  # noqa: S302

    def executed(source: str, *namespaces: Any) -> None:
        known = sources.get(source)
        builtins.exec(marshal.loads(known) if known else source, *namespaces)  # noqa: S102, S302

    replace(compiled, executed)


def replace(compiled: Callable[..., Any], executed: Callable[..., None]) -> None:
    """Have `re` compile by the first function, and `dataclasses` execute what it writes by the second."""
    compiler.compile = compiled
    # It is found before the builtin of this name.
    vars(dataclasses)["exec"] = executed
