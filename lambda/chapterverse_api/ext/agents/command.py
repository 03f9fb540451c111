"""Command `mcp`. It loads the service when it runs, so that its help needs no server to be installed."""

from __future__ import annotations

import sys
from typing import Unpack

from chapterverse.cli.parameters import ServiceFlags, settings_from
from chapterverse.extensions import load


def mcp(**flags: Unpack[ServiceFlags]) -> None:
    """Answer a program over the Model Context Protocol.

    The program starts this command and uses its standard input and output. The log goes to standard error.
    """
    serve = load("chapterverse_api.ext.agents.mcp.stdio:serve")
    service = load("chapterverse_api.service:Service.open")(settings_from(**flags))
    # Only messages may go to standard output, so a library's prints are redirected.
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    serve(service, sys.stdin.buffer, out)
