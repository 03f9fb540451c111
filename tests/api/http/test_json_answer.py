from __future__ import annotations

import pytest

from api.scripted import ANSWER, META, WHOLE, Scripted
from chapterverse_api.contract import AnswerEvent, ChatQuery
from chapterverse_api.http.json_answer import IncompleteAnswer, read_final


def test_the_final_part_is_the_last() -> None:
    assert read_final(Scripted(WHOLE).chat(ChatQuery(query="a"))) == ANSWER


@pytest.mark.parametrize("events", [[], [META]])
def test_an_answer_without_its_final_part_is_none(events: list[AnswerEvent]) -> None:
    with pytest.raises(IncompleteAnswer):
        read_final(Scripted(events).chat(ChatQuery(query="a")))
