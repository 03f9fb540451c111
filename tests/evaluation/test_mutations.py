from __future__ import annotations

import re

import pytest

from chapterverse_api.ext.evaluation.measuring import mutations, negate
from chapterverse_api.ext.evaluation.session import CitedClaim


def claim(text: str, page: str = "brew/", section: str = "#a") -> CitedClaim:
    return {"text": text, "url": f"https://tea.example/{page}{section}", "chunk_id": text[:4]}


CLAIMS = [
    claim("Green tea is brewed at 80 degrees for 2 minutes."),
    claim("Black tea takes boiling water.", section="#b"),
    claim("Vinegar dissolves lime.", "clean/"),
    claim("Rinse the pot 3 times.", "clean/"),
]


def test_a_foreign_sentence_is_another_pages_under_this_citation() -> None:
    made = [c for kind, c in mutations(CLAIMS) if kind == "foreign"]
    assert [(c["url"], c["chunk_id"]) for c in made] == [(c["url"], c["chunk_id"]) for c in CLAIMS]
    page_of = {c["text"]: c["url"].partition("#")[0] for c in CLAIMS}
    assert all(page_of[c["text"]] != c["url"].partition("#")[0] for c in made)


def test_one_page_has_nothing_foreign() -> None:
    assert "foreign" not in [kind for kind, _ in mutations(CLAIMS[:2])]
    # What both pages say is no stranger to either.
    assert "foreign" not in [kind for kind, _ in mutations([claim("Same."), claim("Same.", "clean/")])]


def test_one_number_changes_and_nothing_else() -> None:
    made = {c["chunk_id"]: c["text"] for kind, c in mutations(CLAIMS) if kind == "number"}
    assert set(made) == {"Gree", "Rins"}
    numbers = list(map(int, re.findall(r"\d+", made["Gree"])))
    assert sorted([numbers[0] != 80, numbers[1] != 2]) == [False, True]
    assert re.sub(r"\d+", "N", made["Gree"]) == "Green tea is brewed at N degrees for N minutes."


@pytest.mark.parametrize(
    "text", ["Take 1,024 tokens.", "At 10:30 sharp.", "See v2.0 there.", "2. Pour the water.", "None."]
)
def test_what_is_no_number_of_its_own_stays(text: str) -> None:
    assert "number" not in [kind for kind, _ in mutations([claim(text)])]


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Tea is hot.", "Tea is not hot."),
        ("Tea is not cold.", "Tea is cold."),
        ("You cannot boil it.", "You can boil it."),
        ("You can't boil it.", "You can boil it."),
        ("It isn't hot.", "It is hot."),
        ("Tee ist heiß.", "Tee ist nicht heiß."),
        ("Tee ist nicht kalt.", "Tee ist kalt."),
        ("Pour the water.", None),
        ("There is no water.", None),
        ("It is never hot.", None),
        ("It is not hot and not cold.", None),
        ("| tea | is hot |", None),
    ],
)
def test_a_denial_is_put_in_or_taken_out(text: str, wrong: str | None) -> None:
    assert negate(text) == wrong


def test_the_same_sentences_are_made_wrong_in_the_same_way() -> None:
    many = [claim(f"Tea {i} is brewed for {i} minutes.", f"p{i % 7}/") for i in range(2000)]
    assert list(mutations(many)) == list(mutations(many))
    kinds = [kind for kind, _ in mutations(many)]
    assert kinds.count("foreign") == kinds.count("number") == kinds.count("negation") == 400
