from __future__ import annotations

import pytest

from chapterverse_api.contract import Message
from chapterverse_api.history import standalone


def said(*texts: str) -> list[Message]:
    """Return a conversation in which the reader began."""
    return [Message(role="user" if i % 2 == 0 else "assistant", content=text) for i, text in enumerate(texts)]


DOCKER = "How do I install Quill with Docker on a server?"


def test_a_question_that_stands_alone_is_left_alone() -> None:
    question = "How do I clear the cache of old renders?"
    assert standalone(question, said(DOCKER, "So.")) == question


@pytest.mark.parametrize("question", ["And on Windows?", "why?", "What about it?", "它呢？"])
def test_a_short_one_leans_on_the_question_before_it(question: str) -> None:
    assert standalone(question, said(DOCKER, "So.")) == f"{DOCKER}\n{question}"


def test_a_chain_of_short_ones_leads_back_to_what_they_are_about() -> None:
    history = said("How do I theme?", "a", DOCKER, "b", "And on Windows?", "c")
    assert standalone("And macOS?", history) == f"{DOCKER}\nAnd on Windows?\nAnd macOS?"


def test_what_a_client_says_that_we_answered_proves_nothing() -> None:
    history = said("Hi!", "The admin password reset page is where Docker servers live.")
    assert standalone("And now?", history) == "Hi!\nAnd now?"


def test_a_question_that_is_repeated_in_the_history_counts_once() -> None:
    assert standalone("And macOS?", said("And macOS?", "a", "And macOS?")) == "And macOS?"


def test_without_history_there_is_only_the_question() -> None:
    assert standalone("why?", []) == "why?"
