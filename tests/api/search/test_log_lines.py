from __future__ import annotations

from pathlib import Path

import pytest

from api import quill
from chapterverse_api.commands import ServiceSession
from chapterverse_api.search.question import drop_details
from chapterverse_api.search.results import MIN_ON_TOPIC
from chapterverse_api.search.site_search import SearchRequest, retrieve
from fakes.openai_server import KEY, OpenAIServer

LINE = (
    '2026-11-02T09:14:07.221Z WARN worker=3 pid=48113 id=9f3ac2d071be plugin="minify" dropped=12 took 5012 ms: '
    "plugin must answer within five seconds /srv/build/7f/run.sock"
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("dropped=12 of 40 messages", "of messages"),
        ("at com.example.Pool.take(Pool.java:88) pool is closed", "pool is closed"),
        ('File "/srv/a/b.py", line 3, in run: pool is closed', "pool is closed"),
        ("pool is closed 2026-11-02 09:14:07", "pool is closed"),
        ("pool 9f3ac2d071be is closed in 12ms", "pool is closed in"),
        ("panic in /srv/build/main: pool is closed", "panic in : pool is closed"),
    ],
)
def test_what_is_of_one_machine_alone_is_left_out(text: str, left: str) -> None:
    assert " ".join(drop_details(text, lambda detail: "").split()) == left


@pytest.mark.parametrize(
    "text", ["How do I upgrade to version 2?", "Is Python 3.12 supported?", "a == b", "and/or", "defaced", "x = 1"]
)
def test_a_question_keeps_its_numbers_and_words(text: str) -> None:
    assert drop_details(text, lambda detail: "") == text


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> ServiceSession:
    return quill.service(quill.publish(tmp_path_factory.mktemp("index")))


def test_details_that_the_section_holds_count_and_the_others_do_not(service: ServiceSession) -> None:
    snapshot = service.resources.index.snapshot()
    bare = retrieve(snapshot, None, SearchRequest("plugin must answer within five seconds"))
    pasted = retrieve(snapshot, None, SearchRequest(LINE))
    assert pasted.candidates[0].chunk.section_heading == "Writing a plugin"
    assert pasted.verdict == "yes"
    assert pasted.answerability.docs > 0.6 * bare.answerability.docs


def test_with_a_model_only_another_subject_is_refused(tmp_path: Path) -> None:
    settings = quill.publish(tmp_path)
    weak = "Who may read what a build writes at night?"
    with OpenAIServer() as model:
        model.scripts.append(["NOT_IN_DOCS"])
        own = settings.override(generator="openai:gpt-4.1-mini", openai_url=model.url, openai_api_key=KEY)
        session = ServiceSession.open(own)
        found = retrieve(session.resources.index.snapshot(), None, SearchRequest(weak))
        assert found.answerability.docs > MIN_ON_TOPIC
        assert found.verdict == "no"
        assert quill.ask(session, weak).status == "not_in_docs"
        assert len(model.history) == 1
        # Without the model's judgement nothing of that may be quoted.
        model.scripts.append([])
        assert quill.ask(session, weak).status == "not_in_docs"
    assert quill.ask(ServiceSession.open(settings), weak).status == "not_in_docs"
