"""Skips work that a cold start doesn't need, about a fifth of the import time."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chapterverse_api import precompiled

# FastAPI asks of every model of a route whether it is one of pydantic 1, and imports all of that to find out.
_LEGACY = "pydantic.v1"


@contextmanager
def importing() -> Iterator[None]:
    """Import what the block imports without the collector, and without what no model of ours is made of."""
    absent, collects = _LEGACY not in sys.modules, gc.isenabled()
    # Modules are no garbage: looking for some again and again while they load finds none.
    gc.disable()
    if absent:
        # An import of it fails in the block, as it will everywhere when pydantic has dropped it.
        sys.modules[_LEGACY] = None  # type: ignore[assignment]
    precompiled.use()
    try:
        _import_fastapi()
        yield
    finally:
        if absent:
            del sys.modules[_LEGACY]
        gc.freeze()
        if collects:
            gc.enable()


def _import_fastapi() -> None:
    """Import FastAPI, whose models of OpenAPI are built when somebody asks for that: pydantic does so at first use."""
    if "fastapi" in sys.modules:
        return
    from pydantic import BaseModel

    # What follows is put back below.
    base: Any = BaseModel
    rebuild, config = vars(base)["model_rebuild"], base.model_config

    def rebuilt(model: Any, /, **how: Any) -> bool | None:
        # FastAPI's own calls, which come without arguments, are about names that are not known yet: they are by then.
        return rebuild.__func__(model, **how) if how else None

    base.model_config, base.model_rebuild = {**config, "defer_build": True}, classmethod(rebuilt)
    try:
        import fastapi  # noqa: F401
    finally:
        base.model_config, base.model_rebuild = config, rebuild
