"""Starts the runtime. Reports a failed start to Lambda and to the log, in one line each."""

from __future__ import annotations

import importlib
import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

from chapterverse_api.observability import log

# Nothing of the application: a failed import must be reported, which needs these modules.
from chapterverse_api.runtime import cold_start, snapstart
from chapterverse_api.runtime.runtime_api import RuntimeApi, RuntimeFault

if TYPE_CHECKING:
    from chapterverse_api.runtime.loop import Loop

_DEFAULT = "chapterverse_api.handler.handler"


def main() -> int:
    """Serve until the process is killed; return an exit code if serving fails."""
    _write_lines()
    address = os.environ.get("AWS_LAMBDA_RUNTIME_API")
    if not address:
        return _give_up("AWS_LAMBDA_RUNTIME_API is not set: this program is started by AWS Lambda, not by hand.")
    api = RuntimeApi(address)
    try:
        loop = _start(api)
        if loop is None:
            return 1
        if snapstart.is_wanted():
            snapstart.wait(api)
        loop.run()
    except RuntimeFault as fault:
        return _give_up(f"{fault} This process ends, and Lambda starts another.")


def _start(api: RuntimeApi) -> Loop | None:
    """Return the loop for the handler in `_HANDLER`; None after a failure, which is reported to Lambda."""
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
    """Return the name of a failed start in AWS's own runtime."""
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
    # Block buffering would keep lines in a frozen or killed process.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    log.write_to(sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
