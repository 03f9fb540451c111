"""The marker of a refusal is recognized, and never shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from api.draft.drafts import passage
from chapterverse.errors import ProviderError
from chapterverse_api.draft.draft import Span
from chapterverse_api.ext.models.draft_reader import DraftReader
from chapterverse_api.ext.models.prompts import REFUSAL
from chapterverse_api.ext.models.reasoning import refuses
from growth import assert_linear


def shown(pieces: Sequence[str]) -> str | None:
    """Return what a reader sees of a draft; None of one that is refused from the beginning."""
    reader = DraftReader([passage("1", "Status", text="Press a key.")])
    try:
        sentences = [one for piece in pieces for one in reader.read(Span(piece))]
        sentences += reader.end()
    except ProviderError:
        return ""
    text = "".join(one.span.text for one in sentences)
    return None if reader.refused and not text else text


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
    (r"The word NOT\_IN\_DOCS ends it.", "The word not in these docs ends it."),
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
        assert shown(pieces) is None


@pytest.mark.parametrize(("text", "plain"), ANSWERS)
def test_a_mention_is_one_in_plain_words(text: str, plain: str) -> None:
    for pieces in ([text], list(text), [text[:5], text[5:]]):
        assert shown(pieces) == plain


def test_a_refusal_behind_an_answer_ends_it() -> None:
    for late in (REFUSAL, f"{REFUSAL}.", r"NOT\_IN\_DOCS", f"**{REFUSAL}**", f"{REFUSAL}: no source says so"):
        reader = DraftReader([])
        sentences = list(reader.read(Span(f"It is so.\n\n{late}\n\nAnd so.")))
        assert [one.span.text for one in sentences] == ["It is so.\n\n"]
        assert reader.is_over
    for words in ("Not in docs.", "not_in_docs", f"{REFUSAL} is a word."):
        reader = DraftReader([])
        list(reader.read(Span(f"It is so.\n\n{words}\n\nAnd so.")))
        assert not reader.refused


@pytest.mark.parametrize("unit", ["> ", "[1]", "[1", "【1】,", f"{REFUSAL} ", f"{REFUSAL} [1", "[1] [", "NOT_"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    assert_linear(lambda size: refuses(unit * (size // len(unit)), first=True), 5_000, 50_000)
