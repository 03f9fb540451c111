"""Skips work that a cold start doesn't need, about a fifth of the import time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chapterverse_api import precompiled

# FastAPI imports pydantic.v1 only to check that no model is of pydantic 1.
_LEGACY = "pydantic.v1"


@contextmanager
def importing() -> Iterator[None]:
    """Run the block's imports without garbage collection, without pydantic.v1, and with precompiled code."""
    is_absent, collects = _LEGACY not in sys.modules, gc.isenabled()
    # Modules are not garbage, so collecting while they load is wasted.
    gc.disable()
    if is_absent:
        # Imports of it fail in the block, as they will when pydantic drops it.
        sys.modules[_LEGACY] = None  # type: ignore[assignment]
    precompiled.install()
    try:
        _import_fastapi()
        yield
    finally:
        if is_absent:
            del sys.modules[_LEGACY]
        gc.freeze()
        if collects:
            gc.enable()


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
