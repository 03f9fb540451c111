"""Starts the runtime. Reports a failed start to Lambda and to the log, in one line each."""

from __future__ import annotations

import importlib
import os
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING

from chapterverse_api import log

# Nothing of the application, because these modules have to report its failed import.
from chapterverse_api.ext.aws import cold_start
from chapterverse_api.ext.aws.runtime_api import RuntimeApi, RuntimeFault

if TYPE_CHECKING:
    from chapterverse_api.ext.aws.loop import Loop

_DEFAULT = "chapterverse_api.handler.handler"


def main() -> int:
    """Serve until the process is killed; return an exit code if serving fails."""
    _write_log_by_line()
    address = os.environ.get("AWS_LAMBDA_RUNTIME_API")
    if not address:
        return _give_up("AWS_LAMBDA_RUNTIME_API is not set: this program is started by AWS Lambda, not by hand.")
    api = RuntimeApi(address)
    try:
        loop = _start(api)
        return 1 if loop is None else loop.run()
    except RuntimeFault as fault:
        return _give_up(f"{fault} This process ends, and Lambda starts another.")


def _start(api: RuntimeApi) -> Loop | None:
    """Return the loop for the handler in `_HANDLER`; None after a failure, which is reported to Lambda."""
    name = os.environ.get("_HANDLER") or _DEFAULT
    try:
        with cold_start.importing():
            from chapterverse_api.ext.aws.events import LambdaHandler
            from chapterverse_api.ext.aws.loop import Loop

            module, _, attribute = name.replace("/", ".").rpartition(".")
            handler = getattr(importlib.import_module(module), attribute)
        if not isinstance(handler, LambdaHandler):
            raise TypeError(f"{name} is no LambdaHandler.")
    except BaseException as error:
        message = f"The handler {name} can't be loaded ({type(error).__name__}): {error}"
        log.event("error", code="init_failed", **log.error_origin(error), message=message)
        api.fail(_aws_error_type(error), message)
        return None
    return Loop(api, handler)


def _aws_error_type(error: BaseException) -> str:
    """Return the name by which AWS's own runtime reports a failed start."""
    if isinstance(error, ImportError):
        return "Runtime.ImportModuleError"
    if isinstance(error, SyntaxError):
        return "Runtime.UserCodeSyntaxError"
    if isinstance(error, (AttributeError, TypeError)):
        return "Runtime.HandlerNotFound"
    return f"Runtime.{type(error).__name__}"


def _give_up(message: str) -> int:
    log.event("error", code="runtime_api", message=message)
    return 1


def _write_log_by_line() -> None:
    # A frozen or killed process would keep lines that are buffered by block.
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    log.write_to(sys.stdout)


if __name__ == "__main__":
    sys.exit(main())
