"""What a client can cause at will is logged now and then, and a log that nobody reads stops nobody."""

from __future__ import annotations

import io
import json
import os
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from chapterverse_api import log
from chapterverse_api.ext.server.connections import ThrottledErrors
from chapterverse_api.ext.server.server import LineWriter
from fakes.recorded_log import recorded_log


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    with recorded_log() as stream:
        yield stream


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_complaint_is_written_once_in_ten_seconds_with_its_number(stream: io.StringIO) -> None:
    now = 0.0
    throttled_errors = ThrottledErrors(clock=lambda: now)
    for _ in range(1000):
        throttled_errors.log("full", "It is full.")
    throttled_errors.log("full", "It is fuller.")
    now = 10.0
    throttled_errors.log("full", "It is full.")
    throttled_errors.log("full", "It is full.")
    told = [(line["code"], line["message"], line["times"]) for line in lines(stream)]
    assert told == [("full", "It is full.", 1), ("full", "It is fuller.", 1), ("full", "It is full.", 1000)]
    assert {line["event"] for line in lines(stream)} == {"error"}


def test_a_complaint_of_an_error_says_where_and_nothing_of_its_words(stream: io.StringIO) -> None:
    throttled_errors = ThrottledErrors()
    for words in ("cAnArYwOrD", "other"):
        try:
            raise ValueError(words)
        except ValueError as error:
            throttled_errors.log("internal", None, error)
    (line,) = lines(stream)
    assert (line["type"], line["message"]) == ("ValueError", None)
    assert line["where"].startswith("test_log.py:")


def test_lines_are_written_by_a_thread_in_their_order(stream: io.StringIO) -> None:
    read, write = os.pipe()
    writer = LineWriter(write)
    log.set_handler(writer)
    for i in range(100):
        log.event("response_sent", turn_id=str(i))
    writer.close()
    os.close(write)
    with os.fdopen(read, encoding="utf-8") as pipe:
        assert [json.loads(line)["turn_id"] for line in pipe] == [str(i) for i in range(100)]


def test_a_pipe_that_nobody_reads_stops_nobody_and_its_end_is_counted(stream: io.StringIO) -> None:
    read, write = os.pipe()
    writer = LineWriter(write)
    log.set_handler(writer)
    started = time.monotonic()
    for i in range(5000):
        log.event("response_sent", turn_id=f"{i:0200}")
    assert time.monotonic() - started < 5
    taken = b""
    while b'"log_dropped"' not in taken:
        taken += os.read(read, 65_536)
        log.event("response_sent", turn_id="last")

    def end() -> None:
        # Its thread ends when the queue had room for the sign of the end; then the pipe has an end, too.
        while writer._thread.is_alive():
            writer.close()
        os.close(write)

    threading.Thread(target=end).start()
    while some := os.read(read, 65_536):
        taken += some
    os.close(read)
    written = [json.loads(line) for line in taken.splitlines()]
    dropped = sum(line["times"] for line in written if line.get("code") == "log_dropped")
    kept = sum(line["event"] == "response_sent" and line["turn_id"] != "last" for line in written)
    assert kept + dropped >= 5000
    assert kept > 1000
