"""The marker of a refusal is recognized, and never shown."""

from __future__ import annotations

import random
import re
from collections.abc import Generator as Steps
from collections.abc import Sequence
from contextlib import suppress

import pytest

from chapterverse_api.generation import Draft, Span
from chapterverse_api.generation.prompts import REFUSAL
from chapterverse_api.generation.refusal_filter import NotInDocs, refusable
from growth import assert_linear


def written(pieces: Sequence[str], draft: Draft | None = None) -> Steps[str, None, Draft]:
    yield from pieces
    return tuple(map(Span, pieces)) if draft is None else draft


def shown(pieces: Sequence[str], draft: Draft | None = None) -> tuple[list[str], Draft]:
    steps, texts = refusable(written(pieces, draft)), list[str]()
    while True:
        try:
            texts.append(next(steps))
        except StopIteration as end:
            spans: Draft = end.value
            assert "".join(texts) == "".join(span.text for span in spans)
            return texts, spans


REFUSALS = [
    REFUSAL,
    f"{REFUSAL}.",
    f"  **{REFUSAL}**\n",
    f"`{REFUSAL}`",
    f"“{REFUSAL}!”",
    f"> *{REFUSAL}*",
    f"({REFUSAL})",
    f"# {REFUSAL}",
    f"{REFUSAL} [1][2]",
    f"[1] {REFUSAL}",
    r"NOT\_IN\_DOCS",
    "not_in_docs",
    "Not in docs.",
    f"{REFUSAL}\nThe sources say nothing of it.",
    f"**{REFUSAL}**\n\nThe sources say nothing of it.",
    f"{REFUSAL}. The sources say nothing of it.",
    f"{REFUSAL}: no source says so",
    f"{REFUSAL}, sorry",
    f"{REFUSAL} – sorry",
    f"{REFUSAL} (no source)",
    f"{REFUSAL}。没有",
    "NOT_IN_DO",
]

ANSWERS = [
    (f"{REFUSAL} is what the model says.", "not in these docs is what the model says."),
    (f"`{REFUSAL}` is a word.", "`not in these docs` is a word."),
    (f"The word {REFUSAL} ends it. {REFUSAL}!", "The word not in these docs ends it. not in these docs!"),
    (r"The word NOT\_IN\_DOCS ends it.", "The word not in these docs ends it."),
    (f"It is so.\n\n{REFUSAL}", "It is so.\n\n"),
    (f"It is so.\n{REFUSAL}.\nAnd so.", "It is so.\n\nAnd so."),
    ("- `not_in_docs`: a state", "- `not_in_docs`: a state"),
    ("not_in_docs: a state", "not_in_docs: a state"),
    ("Not in the docs folder, but here", "Not in the docs folder, but here"),
    ("STATUS_NOT_IN_DOCS stays", "STATUS_NOT_IN_DOCS stays"),
    ("NOT_IN_DOCSX stays", "NOT_IN_DOCSX stays"),
    ("No.", "No."),
    ("N", "N"),
    ("Here NOT_IN_DOC", "Here NOT_IN_DOC"),
    ("", ""),
]


@pytest.mark.parametrize("text", REFUSALS)
def test_a_refusal_is_no_answer(text: str) -> None:
    for pieces in ([text], list(text), [text[:5], text[5:]]):
        steps = refusable(written(pieces))
        with pytest.raises(NotInDocs):
            list(steps)


@pytest.mark.parametrize(("text", "plain"), ANSWERS)
def test_a_mention_is_one_in_plain_words(text: str, plain: str) -> None:
    for pieces in ([text], list(text), [text[:5], text[5:]]):
        assert "".join(shown(pieces)[0]) == plain


def test_nothing_of_a_refusal_is_shown() -> None:
    for text in REFUSALS:
        with pytest.raises(NotInDocs):
            next(refusable(written(list(text))))


def test_an_answer_is_not_held_back() -> None:
    given = ["Set", " it", " now", "."]
    assert shown(given)[0] == given
    assert shown(["Now", " set it"])[0] == ["Now", " set it"]
    assert shown(["Press a BUTTON", " now"])[0] == ["Press a BUTTON", " now"]
    steps = refusable(written(["NO", " wait", " N", "ow"]))
    assert [next(steps), next(steps), next(steps)] == ["NO wait", " ", "Now"]


def test_a_refusal_ends_the_model_s_work_at_once() -> None:
    ended = []

    def endless() -> Steps[str, None, Draft]:
        try:
            yield f"{REFUSAL}\n"
            while True:
                yield "word "
        finally:
            ended.append(True)

    refused = endless()
    with pytest.raises(NotInDocs):
        next(refusable(refused))
    assert ended == [True]


def test_a_reader_who_leaves_ends_the_model_s_work() -> None:
    ended = []

    def answer() -> Steps[str, None, Draft]:
        try:
            yield "A key"
            yield " opens it."
        finally:
            ended.append(True)
        return ()

    left = answer()
    steps = refusable(left)
    next(steps)
    steps.close()
    assert ended == [True]


def test_citations_stay_with_their_spans() -> None:
    draft = (
        Span("Say NOT_", ("1",)),
        Span("IN_", ("2",)),
        Span("DOCS now.", ("3",)),
        Span("\nNOT_IN_DOCS", (), cut=True),
    )
    assert shown(["Say NOT_IN", "_DOCS now.\nNOT_IN_DOCS"], draft)[1] == (
        Span("Say not in these docs", ("1",)),
        Span(" now.", ("3",)),
        Span("\n", (), cut=True),
    )


@pytest.mark.parametrize("unit", ["> ", "[1]", "[1", "【1】,", f"{REFUSAL} ", f"{REFUSAL} [1", "[1] [", "NOT_"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        with suppress(NotInDocs):
            shown([unit * (size // len(unit))])

    assert_linear(work, 5_000, 50_000)


def test_pieces_make_no_difference_and_the_word_never_passes() -> None:
    chance = random.Random(3)
    parts = [
        REFUSAL,
        "NOT\\_IN",
        "_DOCS",
        "N",
        "O",
        " ",
        "\n",
        ".",
        "x",
        "NOT",
        "_",
        "\\",
        "*",
        "IN_",
        "DOCS",
        "!",
        "[1",
    ]

    def outcome(pieces: Sequence[str]) -> str | None:
        try:
            return "".join(shown(pieces)[0])
        except NotInDocs:
            return None

    for _ in range(5000):
        text = "".join(chance.choice(parts) for _ in range(chance.randint(1, 12)))
        size = chance.randint(1, 6)
        whole = outcome([text])
        assert whole == outcome([text[i : i + size] for i in range(0, len(text), size)]), text
        assert whole is None or not re.search(rf"(?<!\w){REFUSAL}(?!\w)", whole), text
