"""Skips work that a cold start doesn't need, and takes compiled code from a file.

Without garbage collection, pydantic.v1 and FastAPI's own models the imports take a fifth less time. Regular expressions
and generated dataclass methods, which no `.pyc` contains, take a third of the time from a cold start to the first
answer: without the file it costs 2.2 times the hello of `benchmarks/cold_start.py`, with it 1.5 (medians of nine
alternating rounds on a busy machine, index in Qdrant; 2.3 and 1.8 from S3). `scripts/precompile.py` runs Lambda's
Python while the package is built and stores what it compiles. Entries that are missing, or made by another Python, are
compiled as usual.
"""

from __future__ import annotations

import builtins
import dataclasses
import gc
import marshal
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any

# FastAPI imports pydantic.v1 only to check that no model is of pydantic 1.
_LEGACY = "pydantic.v1"
_PRECOMPILED_FILE = Path(__file__).parents[2] / "precompiled.bin"

compiler: Any = vars(re)["_compiler"]
#: Identifies the Python that made the file: magic numbers of `.pyc` files and of regular expressions.
MAGIC = (MAGIC_NUMBER, compiler._sre.MAGIC)

_installed = False


@contextmanager
def importing() -> Iterator[None]:
    """Run the block's imports without garbage collection, without pydantic.v1, and with precompiled code."""
    is_absent, collects = _LEGACY not in sys.modules, gc.isenabled()
    # Modules are not garbage, so collecting while they load is wasted.
    gc.disable()
    if is_absent:
        # Imports of it fail in the block, as they will when pydantic drops it.
        sys.modules[_LEGACY] = None  # type: ignore[assignment]
    install()
    try:
        _import_fastapi()
        yield
    finally:
        if is_absent:
            del sys.modules[_LEGACY]
        gc.freeze()
        if collects:
            gc.enable()


def install(file: Path = _PRECOMPILED_FILE) -> None:
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


def _import_fastapi() -> None:
    """Import FastAPI with its OpenAPI models unbuilt; pydantic builds them at first use."""
    if "fastapi" in sys.modules:
        return
    from pydantic import BaseModel

    # Restored below.
    base: Any = BaseModel
    rebuild, config = vars(base)["model_rebuild"], base.model_config

    def rebuild_if_forced(model: Any, /, **options: Any) -> bool | None:
        # FastAPI calls it without options because of names that are not defined yet. They are by the first use.
        return rebuild.__func__(model, **options) if options else None

    base.model_config, base.model_rebuild = {**config, "defer_build": True}, classmethod(rebuild_if_forced)

    try:
        import fastapi  # noqa: F401
    finally:
        base.model_config, base.model_rebuild = config, rebuild
