"""The service's log, recorded for a block."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from chapterverse_api import log


@contextmanager
def recorded_log() -> Iterator[io.StringIO]:
    logger = logging.getLogger("chapterverse")
    before = (logger.handlers[:], logger.level, logger.propagate)
    stream = io.StringIO()
    log.write_to(stream)
    try:
        yield stream
    finally:
        logger.handlers[:], logger.level, logger.propagate = before
