from __future__ import annotations

import time

import pytest

from chapterverse_api.search.question import QuestionFrame, lower_kinds, read_frame


@pytest.mark.parametrize(
    ("language", "question", "subject"),
    [
        ("en", "What is a leaf bundle?", "leaf bundle"),
        ("en", "whats mpa mode for", "mpa mode"),
        ("en", "what does route data mean", "route data"),
        ("en", 'what is "route data"', '"route data"'),
        ("de", "Was ist ein Archetyp?", "Archetyp"),
        ("fr", "qu'est-ce que le cache ?", "cache"),
        ("es", "¿qué es el caché?", "caché"),
        ("es", "qué es un índice", "índice"),
        ("pt", "o que é um plugin?", "plugin"),
        ("it", "cos'è un plugin?", "plugin"),
        ("zh", "什么是插件？", "插件"),
        ("ja", "プラグインとは何ですか", "プラグイン"),
    ],
)
def test_a_definition_is_searched_by_its_subject(language: str, question: str, subject: str) -> None:
    frame = read_frame(question, [language])
    assert frame == QuestionFrame("definition", (subject,))


@pytest.mark.parametrize(
    ("language", "question", "sides"),
    [
        ("en", "What's the difference between slug and url?", ("slug", "url")),
        ("en", "hydrate vs. prerender", ("hydrate", "prerender")),
        ("en", "local search or algolia, whats the difference", ("local search", "algolia")),
        ("de", "Was ist der Unterschied zwischen Edge und S3?", ("Edge", "S3")),
        ("fr", "différence entre slug et url", ("slug", "url")),
        ("zh", "缓存和索引有什么区别", ("缓存", "索引")),
        ("ja", "キャッシュと索引の違いは何ですか", ("キャッシュ", "索引")),
    ],
)
def test_a_comparison_has_two_sides(language: str, question: str, sides: tuple[str, str]) -> None:
    assert read_frame(question, [language]) == QuestionFrame("comparison", sides)


@pytest.mark.parametrize(
    ("language", "question", "name"),
    [
        ("en", "BalancedPool?", "BalancedPool"),
        ("en", "`timeouts`", "timeouts"),
        ("en", "magic trailing comma?", "magic trailing comma"),
        ("de", "Zeitlimits?", "Zeitlimits"),
        ("fr", "délais ?", "délais"),
        ("es", "¿tiempos límite?", "tiempos límite"),
        ("zh", "插件？", "插件"),
    ],
)
def test_a_question_of_names_alone_wants_what_has_that_name(language: str, question: str, name: str) -> None:
    assert read_frame(question, [language]) == QuestionFrame("name", (name,))


@pytest.mark.parametrize(
    "question", ["", "?", "what is", "how long", "clear the cache", "How do I clear the cache?", "a\nb vs c"]
)
def test_other_questions_have_none(question: str) -> None:
    assert read_frame(question, ["en"]) is None


@pytest.mark.parametrize("question", ["what is " * 19, "a or " * 32, "a vs " * 32, "difference between " * 8])
def test_no_question_takes_long(question: str) -> None:
    started = time.process_time()
    read_frame(question, ["en", "de", "fr", "es", "pt", "it", "zh", "ja"])
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("question", "lower"),
    [
        ("how do I clear the cache", {"news", "api"}),
        ("what changed in the cache", {"api"}),
        ("cache in 2.1", {"api"}),
        ("Was ist neu in der Suche", {"api"}),
        ("quill.Cache", {"news"}),
        ("how do I reindex only changed pages?", {"news", "api"}),
        ("apply changes without a restart", {"news", "api"}),
        ("what changed in the search?", {"api"}),
        ("breaking changes", {"api"}),
    ],
)
def test_news_and_stubs_rank_lower_unless_they_are_asked_for(question: str, lower: set[str]) -> None:
    assert lower_kinds(question, ["en", "de"]) == lower
