from __future__ import annotations

import pytest

from api.scripted import Client, Scripted, error_of
from chapterverse_api.app import create_app
from chapterverse_api.http import sse


@pytest.mark.parametrize(
    "accept",
    [
        "text/event-stream",
        "TEXT/Event-Stream",
        "application/json, text/event-stream",
        "text/event-stream;q=0.9, application/json;q=0.1",
    ],
)
def test_a_stream_is_wanted(accept: str) -> None:
    assert sse.wants_stream(accept)


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "text/*", "text/event-stream; q=0", "text/event"])
def test_no_stream_is_wanted(accept: str) -> None:
    assert not sse.wants_stream(accept)


def test_a_stream_that_yields_nothing_fails_before_it_begins() -> None:
    response = Client(create_app(Scripted([]))).post("/v1/chat", {"query": "a"}, headers={"accept": sse.MEDIA_TYPE})
    assert (response.status_code, error_of(response)["code"]) == (500, "internal")
