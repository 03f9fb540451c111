from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.calibration import WeightedQuestion
from chapterverse.settings import Settings
from chapterverse_api.contract import ChatQuery, Message
from chapterverse_api.conversation.transcript import Conversation, Signer
from chapterverse_api.draft.requests import MAX_RECALLED_TOKENS, GenerationRequest, estimate_tokens
from chapterverse_api.ext.conversations.records import StoredThread, StoredTurn, open_records
from chapterverse_api.ext.conversations.threads import (
    MAX_RECALLED_TURNS,
    continue_thread,
    find_relevant_turns,
    open_threads,
)
from chapterverse_api.ext.models.prompts import conversation

PROXY = ("Which port does my proxy use?", "The proxy listens on port 8443.")


def turns(*pairs: tuple[str, str]) -> list[StoredTurn]:
    return [StoredTurn(f"{n:032x}", q, a, "answered", number=n + 1) for n, (q, a) in enumerate(pairs)]


def others(count: int) -> list[tuple[str, str]]:
    return [(f"What of color {n}?", f"Theme {n} is teal.") for n in range(count)]


def test_an_old_turn_that_speaks_of_the_question_is_found() -> None:
    kept = turns(*others(5), PROXY, *others(20))
    assert [turn.question for turn in find_relevant_turns(kept, "On what port was the proxy again?")] == [PROXY[0]]


def test_of_those_that_hold_as_many_words_the_newest_come() -> None:
    kept = turns(*[(f"Set proxy {n}?", "By the port.") for n in range(10)])
    assert [turn.number for turn in find_relevant_turns(kept, "proxy port")] == list(
        range(10, 10 - MAX_RECALLED_TURNS, -1)
    )
    assert len(find_relevant_turns(kept, "proxy port", 1)) == 1


def test_the_best_turns_come_first_into_their_share_and_stand_in_order() -> None:
    long = "word " * 200
    pairs = [(f"Set the proxy {n}?", f"By the port {n}. {long}") for n in range(12)]
    thread = StoredThread(tuple(turns(*pairs, *others(9))))
    found = talk(thread, "proxy port", turn_top_k=20).recalled
    assert estimate_tokens(found) <= MAX_RECALLED_TOKENS
    shown = [n for n in range(12) if f"Set the proxy {n}?" in found]
    # The newest of equals, as many as there is room for, oldest first.
    assert shown == list(range(12 - len(shown), 12))
    assert 2 <= len(shown) < 12
    assert found.index("proxy 10?") < found.index("proxy 11?")
    assert "proxy 11?" in talk(thread, "proxy port", turn_top_k=1).recalled
    assert "proxy 10?" not in talk(thread, "proxy port", turn_top_k=1).recalled


@pytest.mark.parametrize("question", ["How do I deploy?", "🦄", "", "?"])
def test_what_speaks_of_nothing_that_was_said_recalls_nothing(question: str) -> None:
    assert find_relevant_turns(turns(PROXY, *others(3)), question) == ()


def test_a_refused_turn_is_not_recalled() -> None:
    refused = StoredTurn("0" * 32, *PROXY, "not_in_docs", number=1)
    assert find_relevant_turns([refused], "proxy port") == ()


def talk(thread: StoredThread, question: str, *history: Message, turn_top_k: int = MAX_RECALLED_TURNS) -> Conversation:
    query = ChatQuery(query=question, conversation_history=list(history))
    return continue_thread(thread, query, Signer(), turn_top_k)


def test_what_a_prompt_holds_anyway_is_not_recalled() -> None:
    thread = StoredThread(tuple(turns(*others(3), PROXY)))
    assert talk(thread, "Which port of the proxy?").recalled == ""
    older = StoredThread(tuple(turns(PROXY, *others(9))))
    found = talk(older, "Which port of the proxy?")
    assert found.recalled == f"Reader: {PROXY[0]}\nAnswer: {PROXY[1]}"
    assert PROXY[0] not in {message.content for message in found.messages}


def test_it_is_recalled_for_a_browser_that_sends_its_own_part_of_the_conversation() -> None:
    signer = Signer()
    mark = signer.sign("0" * 32, "", "Hello?", "Hi.")
    history = [Message(role="user", content="Hello?"), Message(role="assistant", content="Hi.", signature=mark)]
    thread = StoredThread(tuple(turns(PROXY, *others(9))))
    query = ChatQuery(query="Which port of the proxy?", conversation_history=history)
    found = continue_thread(thread, query, signer)
    assert [message.content for message in found.messages] == ["Hello?", "Hi."]
    assert "port 8443" in found.recalled


def test_a_model_is_told_of_it_and_no_more_than_its_share() -> None:
    for recalled in ("Reader: Which port?\nAnswer: 8443.", "x" * 50_000):
        request = GenerationRequest("And now?", WeightedQuestion(), (), "en", recalled=recalled)
        (told,) = conversation(request)
        assert f"What we said of this earlier:\n{recalled[:20]}" in told.content
        assert estimate_tokens(told.content) < MAX_RECALLED_TOKENS + 50


def test_threads_read_further_back_than_a_summary_does(tmp_path: Path) -> None:
    threads = open_threads(Settings(records=f"sqlite:{tmp_path / 'records.sqlite'}"))
    records = open_records(Settings(records=f"sqlite:{tmp_path / 'records.sqlite'}"))
    assert threads is not None
    assert records is not None
    for turn in turns(PROXY, *others(30)):
        records.append("t", turn)
    assert threads.recall("t").turns[0].question == PROXY[0]
