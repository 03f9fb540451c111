from __future__ import annotations

import pytest

from api.scripted import ANSWER, META, WHOLE, Client, Scripted, error_of
from chapterverse_api.app import create_app
from chapterverse_api.contract import AnswerEvent, ChatQuery
from chapterverse_api.http import answers
from chapterverse_api.http.answers import IncompleteAnswer, read_final


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
    assert answers.wants_stream(accept)


@pytest.mark.parametrize("accept", ["", "*/*", "application/json", "text/*", "text/event-stream; q=0", "text/event"])
def test_no_stream_is_wanted(accept: str) -> None:
    assert not answers.wants_stream(accept)


def test_a_stream_that_yields_nothing_fails_before_it_begins() -> None:
    response = Client(create_app(Scripted([]))).post(
        "/v1/chat", {"query": "a"}, headers={"accept": answers.EVENT_STREAM}
    )
    assert (response.status_code, error_of(response)["code"]) == (500, "internal")


def test_the_final_part_is_the_last() -> None:
    assert read_final(Scripted(WHOLE).chat(ChatQuery(query="a"))) == ANSWER


@pytest.mark.parametrize("events", [[], [META]])
def test_an_answer_without_its_final_part_is_none(events: list[AnswerEvent]) -> None:
    with pytest.raises(IncompleteAnswer):
        read_final(Scripted(events).chat(ChatQuery(query="a")))
