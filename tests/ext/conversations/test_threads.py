from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from api.writers import Scribe
from chapterverse.errors import ProviderError
from chapterverse.settings import Settings
from chapterverse_api.answer.event import RecordsFault
from chapterverse_api.contract import ChatQuery, ChatResponse, SourceChunk
from chapterverse_api.draft.draft import Writer
from chapterverse_api.draft.requests import MAX_SUMMARY_TOKENS
from chapterverse_api.ext.conversations.records import CitedSource, StoredThread, StoredTurn
from chapterverse_api.ext.conversations.threads import SUMMARY_TURNS, Threads, open_threads, summarize_offline
from fakes import postgres

CANARY = "cAnArY"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.sqlite"


def opened(path: Path) -> Threads:
    threads = open_threads(Settings(records=f"sqlite:{path}"))
    assert threads is not None
    return threads


def answered(number: int = 1, text: str = "", **changes: Any) -> ChatResponse:
    source = SourceChunk(
        id="1", chapter="Guide", section=f"Part {number}", snippet="", url=f"https://d.example/#{number}", score=1,
        chunk_id=None,
    )  # fmt: skip
    fields: dict[str, Any] = {
        "response": text or f"a{number}.", "source_chunks": [source], "segments": [], "mode": "rag",
        "status": "answered", "grounding_confidence": 0.9, "retrieval_used": True, "sources_cited": [source.url],
        "timestamp": "", "execution_time": 0.1, "turn_id": f"{number:032x}",
    }  # fmt: skip
    return ChatResponse(**{**fields, **changes})


def talk(threads: Threads, *numbers: int, text: str = "", writer: Writer | None = None) -> None:
    for number in numbers:
        threads.remember("t", ChatQuery(query=f"q{number}?"), answered(number, text), writer)


def test_nothing_is_kept_unless_it_is_asked_for() -> None:
    assert open_threads(Settings()) is None


def test_a_turn_is_remembered_with_what_it_cites(path: Path) -> None:
    unread = SourceChunk(
        id="2", chapter="X", section=None, snippet="", url="https://d.example/x", score=0, chunk_id=None
    )
    response = answered(1, source_chunks=[*answered(1).source_chunks, unread], status="partial")
    opened(path).remember("t", ChatQuery(query="q1?"), response)
    (turn,) = opened(path).recall("t").turns
    assert turn == StoredTurn(
        f"{1:032x}", "q1?", "a1.", "partial", (CitedSource("Guide › Part 1", "https://d.example/#1"),), turn.number
    )
    assert opened(path).recall("other") == StoredThread()


def test_what_was_selected_and_what_readers_tell_of_themselves_is_never_kept(path: Path) -> None:
    threads = opened(path)
    threads.remember("t", ChatQuery(selected_text=CANARY), answered(1, CANARY, mode="selected_text"))
    threads.remember("t", ChatQuery(query="q?", selected_text=CANARY), answered(2, CANARY, mode="selected_text"))
    assert not path.exists()
    threads.remember(
        "t", ChatQuery(query="q?", user_context=CANARY, page_url=f"https://d.example/{CANARY}"), answered(3)
    )
    assert len(threads.recall("t").turns) == 1
    assert CANARY.encode() not in path.read_bytes()


def test_a_long_answer_is_kept_as_a_history_holds_it(path: Path) -> None:
    threads = opened(path)
    threads.remember("t", ChatQuery(query="q?"), answered(1, "😀" * 5000))
    assert threads.recall("t").turns[0].answer == "😀" * 2000


def test_a_thread_is_forgotten(path: Path) -> None:
    threads = opened(path)
    talk(threads, 1)
    assert threads.forget("t")
    assert threads.recall("t") == StoredThread()
    assert not threads.forget("t")


def test_old_threads_are_removed_on_demand(path: Path) -> None:
    threads = opened(path)
    talk(threads, 1, 2)
    assert threads.expire(1) == 0
    time.sleep(0.002)
    assert threads.expire(0) == 2


# Summaries


def test_every_six_turns_a_model_goes_on_with_the_summary(path: Path) -> None:
    scribe = Scribe("The reader wants 1 to 6.", "The reader wants 1 to 12.")
    threads = opened(path)
    talk(threads, *range(1, SUMMARY_TURNS), writer=scribe)
    assert scribe.asked == []
    talk(threads, SUMMARY_TURNS, writer=scribe)
    assert threads.recall("t").summary == "The reader wants 1 to 6."
    talk(threads, *range(SUMMARY_TURNS + 1, 2 * SUMMARY_TURNS), writer=scribe)
    assert len(scribe.asked) == 1
    talk(threads, 2 * SUMMARY_TURNS, writer=scribe)
    thread = threads.recall("t")
    assert (thread.summary, thread.new_turns, len(thread.turns)) == ("The reader wants 1 to 12.", (), 12)
    (told,) = scribe.asked[1].messages
    assert told.content.startswith("The summary so far:\nThe reader wants 1 to 6.\n\nReader: q7?\n\nAnswer: a7.")
    assert "q6?" not in told.content
    assert scribe.asked[1].tokens == MAX_SUMMARY_TOKENS


def test_long_answers_are_summed_up_earlier(path: Path) -> None:
    scribe = Scribe("S")
    threads = opened(path)
    talk(threads, 1, text="a" * 4000, writer=scribe)
    assert scribe.asked == []
    talk(threads, 2, text="b" * 400, writer=scribe)
    assert threads.recall("t").summary == "S"


def test_what_a_model_is_told_has_an_end(path: Path) -> None:
    scribe = Scribe(*[ProviderError("down")] * 11, "S")
    talk(opened(path), *range(1, 13), text="a " * 2000, writer=scribe)
    (told,) = scribe.asked[-1].messages
    assert told.content.count("Reader: ") == 12
    assert len(told.content) <= 12 * 4050


def test_a_model_that_fails_leaves_the_old_summary_and_the_turns(path: Path) -> None:
    threads, scribe = opened(path), Scribe("S", ProviderError("down"), "T")
    talk(threads, *range(1, 13), writer=scribe)
    thread = threads.recall("t")
    assert (thread.summary, len(thread.new_turns), len(thread.turns)) == ("S", 6, 12)
    talk(threads, 13, writer=scribe)
    assert threads.recall("t").summary == "T"


@pytest.mark.parametrize("reply", ["", " \n ", "\n"])
def test_a_model_that_says_nothing_makes_no_summary(path: Path, reply: str) -> None:
    threads, scribe = opened(path), Scribe(reply)
    talk(threads, *range(1, 7), writer=scribe)
    assert threads.recall("t").summary == ""


def test_a_summary_has_an_end(path: Path) -> None:
    threads, scribe = opened(path), Scribe("first line\n" + "word " * 9000 + "\0")
    talk(threads, *range(1, 7), writer=scribe)
    summary = threads.recall("t").summary
    assert summary.startswith("first line\nword")
    assert len(summary) <= MAX_SUMMARY_TOKENS * 3.5


def test_a_model_has_only_so_long(path: Path) -> None:
    scribe = Scribe("S")
    threads = opened(path)
    talk(threads, *range(1, 6), writer=scribe)
    threads.remember("t", ChatQuery(query="q6?"), answered(6), scribe, seconds=0.5)
    assert 0 < scribe.asked[0].seconds <= 0.5


def test_without_a_model_a_summary_names_questions_and_titles(path: Path) -> None:
    threads = opened(path)
    talk(threads, *range(1, 7))
    summary = threads.recall("t").summary
    assert summary.splitlines()[:2] == ["Asked: q1?", "Asked: q2?"]
    assert summary.splitlines()[-1] == "Cited: " + "; ".join(f"Guide › Part {n}" for n in range(1, 7))


def test_of_long_questions_the_last_are_named() -> None:
    turns = [StoredTurn(str(n), f"q{n} {'x' * 500}", "a", "answered", (CitedSource("T", "u"),)) for n in range(6)]
    lines = summarize_offline(turns).splitlines()
    assert lines[-1] == "Cited: T"
    assert lines[-2].startswith("Asked: q5 ")
    assert "q0" not in summarize_offline(turns)
    assert len(summarize_offline(turns)) <= MAX_SUMMARY_TOKENS * 3.5


# A database that fails


def test_a_database_that_fails_fails_no_answer_and_is_told_to_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = tmp_path / "broken"
    broken.write_text(f"This is no database. {CANARY} " * 50)
    threads = opened(broken)
    assert threads.recall("t") == StoredThread()
    threads.remember("t", ChatQuery(query=f"{CANARY}?"), answered(1, CANARY))
    # The second was not tried: the first is not a moment ago.
    (record,) = caplog.records
    event = json.loads(record.message)
    assert (event["event"], event["code"], event["thread_id"]) == ("error", "records_unavailable", "t")
    assert CANARY not in record.message
    with pytest.raises(RecordsFault, match="is no database of conversations"):
        threads.forget("t")


def test_a_database_that_comes_back_is_used_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    place = tmp_path / "place"
    place.mkdir()
    inner = open_threads(Settings(records=f"sqlite:{place}"))
    assert inner is not None
    threads = Threads(inner._records, Settings(), pause=0.05)
    talk(threads, 1)
    place.rmdir()
    time.sleep(0.06)
    talk(threads, 2)
    assert [turn.question for turn in threads.recall("t").turns] == ["q2?"]
    assert len(caplog.records) == 1


def test_a_server_that_is_gone_costs_one_wait(caplog: pytest.LogCaptureFixture) -> None:
    threads = open_threads(Settings(records="postgresql://u:hunter2@127.0.0.1:1/db"))
    assert threads is not None
    for _ in range(3):
        assert threads.recall("t") == StoredThread()
    assert len(caplog.records) == 1
    assert "hunter2" not in caplog.text


def test_a_thread_on_postgres_has_a_summary_too() -> None:
    threads = open_threads(Settings(records=postgres.server().database()))
    assert threads is not None
    talk(threads, *range(1, 7), writer=Scribe("S"))
    assert threads.recall("t").summary == "S"
