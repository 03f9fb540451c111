"""Command `mcp`."""

from __future__ import annotations

import sys

from chapterverse.cli import parameters
from chapterverse.cli.parameters import settings_from
from chapterverse_api.ext.agents import stdio
from chapterverse_api.service import Service


def mcp(
    store: parameters.Store = None,
    site: parameters.Site = None,
    docs_version: parameters.Version = None,
    embedder: parameters.Embedder = None,
) -> None:
    """Answer a program over the Model Context Protocol.

    The program starts this command and uses its standard input and output. The log goes to standard error.
    """
    service = Service.open(settings_from(store, site, docs_version, embedder=embedder))
    # Only messages may go to standard output, so a library's prints are redirected.
    out, sys.stdout = sys.stdout.buffer, sys.stderr
    stdio.serve(service, sys.stdin.buffer, out)
