"""Starts the runtime. A failure to start is reported to Lambda and to the log, in one line each."""

from __future__ import annotations

import importlib
import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

from chapterverse_api.observability import log

# Nothing of the application: an import of it that fails must find somebody to tell.
from chapterverse_api.runtime import cold_start, snapstart
from chapterverse_api.runtime.api import RuntimeApi, RuntimeFault

if TYPE_CHECKING:
    from chapterverse_api.runtime.loop import Loop

_DEFAULT = "chapterverse_api.handler.handler"


def main() -> int:
    """Serve until the process is killed; return its exit code if it can't."""
    _write_lines()
    address = os.environ.get("AWS_LAMBDA_RUNTIME_API")
    if not address:
        return _give_up("AWS_LAMBDA_RUNTIME_API is not set: this program is started by AWS Lambda, not by hand.")
    api = RuntimeApi(address)
    try:
        loop = _started(api)
        if loop is None:
            return 1
        if snapstart.is_wanted():
            snapstart.wait(api)
        loop.run()
    except RuntimeFault as fault:
        return _give_up(f"{fault} This process ends, and Lambda starts another.")


def _started(api: RuntimeApi) -> Loop | None:
    """Return the loop over the handler that `_HANDLER` names; None if there is none, which Lambda is told."""
    name = os.environ.get("_HANDLER") or _DEFAULT
    try:
        with cold_start.importing():
            from chapterverse_api.runtime.events import LambdaHandler
            from chapterverse_api.runtime.loop import Loop

            module, _, attribute = name.replace("/", ".").rpartition(".")
            handler = getattr(importlib.import_module(module), attribute)
        if not isinstance(handler, LambdaHandler):
            raise TypeError(f"{name} is no LambdaHandler.")
    except BaseException as error:
        kind = type(error).__name__
        message = f"The handler {name} can't be loaded ({kind}): {error}"
        log.event("error", turn_id=None, code="init_failed", **log.origin_of(error), message=message)
        api.fail_init(_kind(error), message)
        return None
    return Loop(api, handler)


def _kind(error: BaseException) -> str:
    """Return the name that AWS's own runtime has for a failed start."""
    if isinstance(error, ImportError):
        return "Runtime.ImportModuleError"
    if isinstance(error, SyntaxError):
        return "Runtime.UserCodeSyntaxError"
    if isinstance(error, (AttributeError, TypeError)):
        return "Runtime.HandlerNotFound"
    return f"Runtime.{type(error).__name__}"


def _give_up(message: str) -> int:
    log.event("error", turn_id=None, code="runtime_api", message=message)
    return 1


def _write_lines() -> None:
    # A pipe is written in blocks otherwise, and a process that is frozen or killed keeps what it has.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    log.write_to(sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
