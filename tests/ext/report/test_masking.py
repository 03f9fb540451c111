"""What a report hides of a question, and what it keeps."""

from __future__ import annotations

import pytest

from chapterverse.ext.report.masking import MAX_SHOWN_CHARS, mask, show


@pytest.mark.parametrize(
    ("question", "hidden"),
    [
        ("mail jane.doe@corp.example why", ("jane", "doe", "corp.example")),
        ("JANE here, reply to jane.doe@corp.example", ("JANE", "jane")),
        ("Hi, my name is Jane Doe and my build fails", ("Jane", "Doe")),
        ("Ich heiße Jürgen Groß, der Build bricht ab", ("Jürgen", "Groß")),
        ("je m'appelle Amélie, le site est vide", ("Amélie",)),
        ("me llamo José Ruiz y no funciona", ("José", "Ruiz")),
        ("меня зовут Иван, сборка не идёт", ("Иван",)),
        ("我叫王小明，怎么部署", ("王小明",)),
        ("my boss Dr. Strangelove asks for the port", ("Strangelove",)),
        ("why is /home/jdoe/docs empty", ("jdoe",)),
        (r"why is C:\Users\jdoe\docs empty", ("jdoe",)),
        ("key sk-proj-abcd1234EFGH5678ijkl is refused", ("abcd1234EFGH5678ijkl",)),
        ("password=hunter2hunter fails", ("hunter2hunter",)),
        ("https://me:s3cret9@host.example/ fails", ("s3cret9",)),
        ("my name is jane roe, and it fails", ("jane", "roe")),
        ("Thanks Jane", ("Jane",)),
        ("I am Jane Roe and it fails", ("Jane", "Roe")),
        ("I'm Jane, it fails", ("Jane",)),
        ("password: correcthorsebattery", ("horse",)),
        ("password=SuperSecret!pass fails", ("SuperSecret", "!pass")),
        ("the password is hunter2hunter", ("hunter2",)),
        ("DB_PASS=hunter2hunter", ("hunter2",)),
        ("ssh jane@localhost fails", ("jane",)),
        ("why is C:\\Users\\Jane Roe\\docs empty", ("Jane", "Roe")),
        ("call me at +49 170 1234567", ("1234567",)),
    ],
)  # fmt: skip
def test_what_says_something_of_a_person_is_hidden(question: str, hidden: tuple[str, ...]) -> None:
    masked = mask(question)
    assert "…" in masked
    assert not [part for part in hidden if part in masked]


@pytest.mark.parametrize(
    "question",
    [
        "How do I use Google Cloud with @app.route and @types/node?",
        "Is Python 3.11.7 enough for pydantic_core_schema_generator?",
        "what does --no-directory-urls do in 2026-11-29",
        "this is Docker, and I am Docker user",
        "the token is invalid and a password is required",
        "pass python3.11 to it",
        "I am using the C:\\Users folder",
        "port 8765 or 127.0.0.1:8765 is taken",
    ],
)
def test_what_says_nothing_of_a_person_stays(question: str) -> None:
    assert mask(question) == question


def test_a_question_is_shown_on_one_short_line_without_what_turns_text_around() -> None:
    text = show("first\n\tline \u202e\u200b\x1b[2J\ud800" + " word" * 2000)
    assert text.startswith("first line [2J")
    assert len(text) == MAX_SHOWN_CHARS
    assert text.isprintable()
