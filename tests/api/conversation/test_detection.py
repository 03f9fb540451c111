from __future__ import annotations

from collections.abc import Sequence

import pytest

from api.conversation.talks import DOCKER, REFUSED, said, signed, talk
from api.writers import Scribe
from chapterverse.errors import ProviderError
from chapterverse_api.contract import Message
from chapterverse_api.conversation.detection import ContextualQuery, detect_follow_up, rewrite_follow_up
from chapterverse_api.conversation.transcript import Conversation
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Writer
from chapterverse_api.draft.requests import ChatMessage

# By words


def standalone(question: str, history: list[Message], languages: Sequence[str] = ("en",)) -> str:
    """Return what is searched for besides a question that can't stand alone, and the question itself if it can."""
    if detect_follow_up(question, languages) == "no":
        return question
    found = rewrite_follow_up(question, talk(*history), None, Deadline(), languages)
    return found.text if found else question


def test_a_question_that_stands_alone_is_left_alone() -> None:
    question = "How do I clear the cache of old renders?"
    assert standalone(question, said(DOCKER, "So.")) == question


@pytest.mark.parametrize("question", ["And on Windows?", "why?", "What about it?", "它呢？"])
def test_a_short_one_leans_on_the_question_before_it(question: str) -> None:
    assert standalone(question, said(DOCKER, "So.")) == f"{DOCKER}\n{question}"


def test_a_chain_of_short_ones_leads_back_to_what_they_are_about() -> None:
    history = said("How do I theme?", "a", DOCKER, "b", "And on Windows?", "c")
    assert standalone("And macOS?", history) == f"{DOCKER}\nAnd on Windows?\nAnd macOS?"
    history = said(DOCKER, "a", "And on Windows?", "b", "And macOS?", "c", "And on Linux?", "d", "And in a VM?", "e")
    assert standalone("And on ARM?", history) == f"{DOCKER}\nAnd in a VM?\nAnd on ARM?"


def test_what_a_client_says_that_we_answered_proves_nothing() -> None:
    history = said("Hi!", "The admin password reset page is where Docker servers live.")
    assert standalone("And now?", history) == "Hi!\nAnd now?"


def test_a_question_that_is_repeated_in_the_history_counts_once() -> None:
    assert standalone("And macOS?", said("And macOS?", "a", "And macOS?")) == "And macOS?"


def test_without_history_there_is_only_the_question() -> None:
    assert standalone("why?", []) == "why?"


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "Does it support incremental builds with remote caches?"),
        ("en", "What about authentication with client certificates?"),
        ("en", "How do I configure it for German users behind nginx?"),
        ("en", "can I exclude some old hosts from that?"),
        ("en", "how can I turn that off for Docker users?"),
        ("en", "are its Docker startup events run?"),
        ("de", "Was ist mit Windows und dem Server hinter nginx?"),
        ("de", "Geht das auch hinter einem Proxy mit TLS unter Windows?"),
        ("fr", "Et pour Windows derrière un proxy d'entreprise ?"),
        ("fr", "Comment ça marche derrière un proxy d'entreprise ?"),
        ("es", "¿Cómo funciona eso detrás de un proxy corporativo?"),
        ("it", "E su Windows con un proxy aziendale lento?"),
        ("pt", "E no Windows atrás de um proxy corporativo?"),
        ("nl", "En hoe zit het met Windows achter een proxy?"),
        ("pl", "A co z Windowsem za serwerem proxy?"),
        ("zh", "那在Windows的服务器上呢？"),
        ("ja", "それはWindowsでも使えますか"),
        ("ar", "وماذا عن ويندوز خلف خادم وكيل؟"),
    ],
)
def test_what_points_back_leans_also_with_more_words(language: str, question: str) -> None:
    assert standalone(question, said(DOCKER, "So."), [language]) == f"{DOCKER}\n{question}"


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "Is it possible to configure the cache directory by environment?"),
        ("en", "And how do I install Quill with Podman on a laptop behind a proxy with TLS?"),
        ("en", "Which files does the build write and where are they kept afterwards?"),
        ("en", "Which of those themes that Quill ships change fonts on mobile browsers?"),
        ("en", "Can a plugin that renders this page as Markdown change its title?"),
        ("de", "Das Logo der Seite durch ein eigenes Bild ersetzen"),
        ("de", "Wie kann das Theme für einzelne Seiten und Sprachen geändert werden?"),
        ("fr", "En quel fichier configurer le thème sombre ?"),
        ("es", "En qué archivo se configura el tema oscuro"),
        ("pt", "O tema escuro muda em qual arquivo de configuração?"),
        ("nl", "Het thema aanpassen voor alle pagina's van de site"),
        ("pl", "Jak zainstalować Quill na serwerze z Dockerem?"),
        ("zh", "如何在服务器上安装 Quill 并启用缓存"),
        ("ja", "サーバーにDockerでQuillをインストールして起動するには"),
    ],
)
def test_what_says_all_that_it_needs_leans_on_nothing(language: str, question: str) -> None:
    assert standalone(question, said(DOCKER, "So."), [language]) == question


def test_a_question_that_was_refused_leads_nobody_astray() -> None:
    history = said(DOCKER, "So.", "What is the weather like in Paris tomorrow?", REFUSED)
    assert standalone("And on Windows?", history) == f"{DOCKER}\nAnd on Windows?"
    assert standalone("And on Windows?", history[2:]) == f"{history[2].content}\nAnd on Windows?"


def test_of_a_selection_only_the_beginning_is_searched_for() -> None:
    selection = "Caches are kept below .cache and hold renders. " * 40
    words = standalone("why?", said(selection, "So."))
    assert words.startswith("Caches are kept below .cache and hold renders.")
    assert words.endswith("\nwhy?")
    assert len(words) <= 310


def test_earlier_questions_add_so_much_and_no_more() -> None:
    earlier = ["and " + "it " * 90] * 3 + ["so " + "that " * 50] * 3 + ["or " + "they " * 50]
    conversation = Conversation(questions=tuple(f"{n} {text}" for n, text in enumerate(earlier)))
    found = rewrite_follow_up("and it?", conversation, None, Deadline())
    assert found
    assert 600 < len(found.text.removesuffix("\nand it?")) <= 3 * 301
    assert found.title.startswith("6 or they")


@pytest.mark.parametrize("text", [" " * 4000, "。" * 4000, "a" * 4000, "\n" * 4000, "?" * 4000])
def test_a_message_may_be_nonsense(text: str) -> None:
    assert standalone("why?", said(text, text)).endswith("why?")
    assert talk(*said(text, text)).messages


# By a model


def rewritten(
    question: str, scribe: Writer | None, *texts: str, deadline: Deadline | None = None
) -> ContextualQuery | None:
    return rewrite_follow_up(question, talk(*signed(*texts)), scribe, deadline or Deadline())


def test_a_model_says_what_a_follow_up_means() -> None:
    scribe = Scribe(' "How do I install Quill with Docker on Windows?"\n')
    found = rewritten("And on Windows?", scribe, DOCKER, "Like so.")
    assert found == ContextualQuery(*["How do I install Quill with Docker on Windows?"] * 2)
    (asked,) = scribe.asked
    assert 1.0 < asked.seconds <= 1.5
    assert asked.tokens == 200
    (message,) = asked.messages
    assert message == ChatMessage(
        "user", f"Reader: {DOCKER}\n\nAnswer: Like so.\n\nThe last question:\nAnd on Windows?"
    )


def test_a_turn_that_is_nearly_over_leaves_a_model_less_time() -> None:
    scribe = Scribe("How do I install Quill?")
    rewritten("And on Windows?", scribe, DOCKER, "a", deadline=Deadline(0.5))
    assert scribe.asked[0].seconds <= 0.5


def test_a_model_may_leave_a_question_as_it_is() -> None:
    question = "How do I clear the cache of old renders?"
    assert rewritten(question, Scribe(question), DOCKER, "a") is None


@pytest.mark.parametrize(
    "reply",
    [
        "", " ", "\n", "Docker?\nIgnore the documentation.", "Docker " * 60, "x" * 401, "A poem of roses.", "1. 2. 3.",
        "Install Quill as https://evil.example/docker says", "Docker at www.evil.example?", "Docker\u202eserver?",
        "Docker\x00", "Docker\u2028server", "!!!", ProviderError("down"),
    ],
    ids=ascii,
)  # fmt: skip
def test_a_reply_that_is_no_question_about_it_is_ignored(reply: str | Exception) -> None:
    found = rewritten("And on Windows?", Scribe(reply), DOCKER, "Like so.")
    assert found == ContextualQuery(f"{DOCKER}\nAnd on Windows?", DOCKER)


def test_an_address_that_was_spoken_of_may_be_searched_for() -> None:
    reply, earlier = "Does https://quill.example/install work on Windows?", "Does https://quill.example/install work?"
    assert rewritten("And on Windows?", Scribe(reply), earlier, "Yes.") == ContextualQuery(reply, reply)


def test_without_history_no_model_is_asked() -> None:
    scribe = Scribe()
    assert rewritten("And on Windows?", scribe) is None
    assert scribe.asked == []


def test_a_scribe_is_a_writer() -> None:
    assert isinstance(Scribe(), Writer)
