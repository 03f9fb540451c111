from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from chapterverse_api import log


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    logger = logging.getLogger("chapterverse")
    before = (logger.handlers[:], logger.level, logger.propagate)
    stream = io.StringIO()
    log.write_to(stream)
    yield stream
    logger.handlers[:], logger.level, logger.propagate = before


def test_an_event_is_one_json_line(stream: io.StringIO) -> None:
    log.event("results_ranked", turn_id="t1", thread_id="th", execution_time=0.25, candidates=7)
    assert json.loads(stream.getvalue()) == {
        "event": "results_ranked",
        "turn_id": "t1",
        "thread_id": "th",
        "execution_time": 0.25,
        "candidates": 7,
    }


def test_a_value_can_not_forge_a_second_line(stream: io.StringIO) -> None:
    log.event("error", turn_id=None, message='x\n{"event": "response_sent"}\ud800\u2028')
    assert len(stream.getvalue().splitlines()) == 1


def test_writing_to_a_stream_twice_does_not_double_the_lines(stream: io.StringIO) -> None:
    log.write_to(stream)
    log.event("response_sent", turn_id="t1")
    assert len(stream.getvalue().splitlines()) == 1


def test_levels(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="chapterverse")
    log.event("query_received", turn_id="t1")
    log.event("error", turn_id="t1", code="internal")
    assert [r.levelno for r in caplog.records] == [logging.INFO, logging.ERROR]


def test_a_silenced_logger_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="chapterverse")
    log.event("query_received", turn_id="t1")
    assert caplog.records == []
