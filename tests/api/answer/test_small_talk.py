from __future__ import annotations

import pytest

from chapterverse_api import phrases
from chapterverse_api.conversation.detection import _openings, _talk, opening_language, small_talk_language


@pytest.mark.parametrize(
    ("message", "language"),
    [
        ("thanks", "en"), ("Thank you!", "en"), ("tell me a funny joke", "en"), ("Are you human?", "en"),
        ("What’s up", "en"), ("who are you?", "en"), ("Bist du ein Mensch?", "de"), ("qui es-tu ?", "fr"),
        ("¿Quién eres?", "es"), ("help", "en"), ("Get started", "en"),
        ("How do I begin?", "en"), ("Who made this?", "en"),
        ("Wie fange ich an?", "de"), ("par où commencer ?", "fr"), ("?", ""), (" ? ", ""), ("？", ""),
        ("你是机器人吗？", "zh"), ("ありがとう", "ja"), ("شكرا", "ar"),
    ],
)  # fmt: skip
def test_small_talk_is_recognized_with_its_language(message: str, language: str) -> None:
    assert small_talk_language(message) == language


@pytest.mark.parametrize(
    "message",
    [
        "", "{}", "&&", "what is a bot", "what is it", "what can it do", "how do I say thanks to a contributor",
        "hello world example", "help text",
        "get started with caching", "test", "are you able to deploy a joke server with one command and a config",
        "How do I start nginx", "Where do I start celery?", "how do I begin transactions",
        "How do I get nginx started?", "how do I start debugging", "how do I start over?",
        "Wie fange ich Transaktionen an?", "wie fange ich damit an",
        "怎么开始用", "どうやって止めますか", "--help", "help()",
        "no", "yes", "what are hooks", "wie installiere ich das", "tell me about yaml",
    ],
)  # fmt: skip
def test_questions_are_not(message: str) -> None:
    assert small_talk_language(message) is None


@pytest.mark.parametrize(
    ("message", "opens"),
    [
        ("Hello!", True), ("how do I begin?", True), ("Who made this ?", True), ("怎么开始？", True),
        ("¿Cómo empiezo?", True), ("?", True),
        ("thanks", False), ("tell me a joke", False), ("you are stupid", False), ("what are hooks", False),
    ],
)  # fmt: skip
def test_greetings_and_calls_for_help_open_a_conversation(message: str, *, opens: bool) -> None:
    assert (opening_language(message) is not None) == opens


def test_every_language_of_ours_has_small_talk() -> None:
    assert set(_openings()) == set(_talk()) == set(phrases.PHRASE_LANGUAGES)
