"""SnapStart hooks: before the snapshot of a started function, and after a restore."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from chapterverse_api.runtime.api import RuntimeApi

# As AWS's own runtime exits.
_BEFORE_FAILED = 64
_AFTER_FAILED = 65


def is_wanted() -> bool:
    """Return whether this process is about to become a snapshot."""
    return os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start"


def wait(api: RuntimeApi) -> None:
    """Run what was registered for the time before a snapshot, wait for it, and run what was for the time after.

    Raises:
        SystemExit: a hook failed, or the Runtime API did; Lambda has been told.
        RuntimeFault: it could not even be told.
    """
    hooks = _hooks()
    try:
        for hook, args, kwargs in reversed(hooks.get_before_snapshot() if hooks else ()):
            hook(*args, **kwargs)
        api.restore()
    except Exception as error:
        api.fail_init("Runtime.BeforeSnapshotError", _described(error))
        raise SystemExit(_BEFORE_FAILED) from error
    try:
        for hook, args, kwargs in hooks.get_after_restore() if hooks else ():
            hook(*args, **kwargs)
    except Exception as error:
        api.fail_restore("Runtime.AfterRestoreError", _described(error))
        raise SystemExit(_AFTER_FAILED) from error


def _hooks() -> Any:
    """Return the registry that AWS's runtimes for Python have; None where it is missing, and nothing registered."""
    try:
        return import_module("snapshot_restore_py")
    except ImportError:
        return None


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
