"""SnapStart hooks, run before the snapshot of a started function and after a restore."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

from chapterverse_api.runtime.runtime_api import RuntimeApi

#: Exit codes of AWS's own runtime.
_BEFORE_SNAPSHOT_FAILED = 64
_AFTER_RESTORE_FAILED = 65


def is_wanted() -> bool:
    """Return whether Lambda will take a snapshot of this process."""
    return os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") == "snap-start"


def wait(api: RuntimeApi) -> None:
    """Run the hooks before the snapshot, wait for the restore, and run the hooks after it.

    Raises:
        SystemExit: a hook or the Runtime API failed, which was reported to Lambda.
        RuntimeFault: the report failed too.
    """
    hooks = _hooks()
    try:
        for hook, args, kwargs in reversed(hooks.get_before_snapshot() if hooks else ()):
            hook(*args, **kwargs)
        api.restore()
    except Exception as error:
        api.fail_init("Runtime.BeforeSnapshotError", _describe(error))
        raise SystemExit(_BEFORE_SNAPSHOT_FAILED) from error
    try:
        for hook, args, kwargs in hooks.get_after_restore() if hooks else ():
            hook(*args, **kwargs)
    except Exception as error:
        api.fail_restore("Runtime.AfterRestoreError", _describe(error))
        raise SystemExit(_AFTER_RESTORE_FAILED) from error


def _hooks() -> Any:
    """Return the hook registry of AWS's Python runtimes; None if it is missing, so nothing is registered."""
    try:
        return import_module("snapshot_restore_py")
    except ImportError:
        return None


def _describe(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
