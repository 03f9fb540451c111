from __future__ import annotations

import re
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.calibration import Question
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings
from chapterverse.text import lexical
from chapterverse_api.generation import Draft, GenerationRequest, Passage, Span, open_generator
from chapterverse_api.generation.blocks import split
from chapterverse_api.generation.extractive import ANNOUNCED, WINDOW_WORDS, Extractive


def passage(text: str, number: str = "1", path: Sequence[str] = ("Guide", "Part"), score: float = 0.9) -> Passage:
    return Passage(number, tuple(path), text, text, frozenset(), score, score, None, None)


def task(question: str, *passages: Passage, language: str = "en") -> GenerationRequest:
    words = tuple((w.terms,) for w in lexical.words(question, language))
    return GenerationRequest(question, Question(words, (1.0,) * len(words)), passages, language)


def draft(question: str, *passages: Passage) -> Draft:
    return tuple(Extractive().generate(task(question, *passages)))


def answer(question: str, *passages: Passage) -> str:
    first, *quotes = draft(question, *passages)
    assert first == Span("Quoted from the documentation:\n\n", kind="framing")
    assert all(len(q.citations) == 1 for q in quotes)
    return "".join(q.text for q in quotes)


def prose(word: str, sentences: int) -> str:
    return " ".join(f"Sentence {i} of nine words is about the {word}." for i in range(sentences))


def test_a_short_section_is_quoted_whole_under_its_headings() -> None:
    assert answer("How do teapots sing?", passage("Teapots sing when hot.\n\nThey stop when cold.")) == (
        "**Guide › Part**\n\nTeapots sing when hot.\n\nThey stop when cold."
    )


def test_the_window_that_speaks_of_the_question_is_chosen() -> None:
    text = f"{prose('kettle', 8)}\n\n{prose('teapot', 8)}\n\n{prose('cup', 8)}"
    assert (
        "Sentence 0 of nine words is about the teapot."
        in answer("Where is the teapot?", passage(text)).split("\n\n")[1]
    )


def test_a_long_paragraph_is_quoted_from_where_it_speaks_of_the_question() -> None:
    text = f"{prose('kettle', 12)} The teapot hides here. {prose('kettle', 12)}"
    assert "The teapot hides here." in answer("Where is the teapot?", passage(text))


def test_two_passages_are_quoted_each_with_its_own_citation() -> None:
    one, two = passage("Teapots sing.", "1"), passage("Teapots dance on ice.", "2", ("Other",))
    spans = draft("Do teapots sing?", one, two)
    assert [s.citations for s in spans] == [(), ("1",), ("2",)]


def test_quotes_stand_in_the_order_of_the_sources_and_what_does_not_speak_of_the_question_is_left_out() -> None:
    one, two = passage("Kettles sing.", "1"), passage("Teapots dance on ice.", "2", ("Teapots",))
    assert [s.citations for s in draft("Do teapots dance?", one, two)] == [(), ("2",)]
    three = passage("Teapots sing.", "3")
    assert [s.citations for s in draft("Do teapots dance?", three, two)] == [(), ("3",), ("2",)]


def test_the_same_words_are_not_quoted_twice() -> None:
    spans = draft("Do teapots sing?", passage("Teapots sing.", "1"), passage("Teapots sing.", "2", ("Other",)))
    assert [s.citations for s in spans] == [(), ("1",)]


def test_under_one_heading_it_stands_once() -> None:
    text = f"{prose('teapot lid', 7)}\n\n{prose('teapot handle', 7)}"
    found = answer("teapot lid handle", passage(text))
    assert found.count("**Guide › Part**") == 1
    assert found.index("lid") < found.index("handle")


def test_code_comes_with_what_announces_it() -> None:
    text = "Teapots sing.\n\nTo make one sing, run:\n\n```sh\nteapot --sing\n```\n\nThat is all."
    assert answer("teapots sing", passage(text)).endswith(text)


def test_a_quote_does_not_begin_with_what_was_announced_before_it() -> None:
    text = f"{prose('kettle', 7)}\n\nTo make a kettle whistle, run:\n\n```sh\nteapot spout\n```\n\nDone."
    found = answer("teapot spout", passage(text))
    assert "run:\n\n```sh\nteapot spout\n```" in found


def test_a_label_comes_with_its_tab_or_not_at_all() -> None:
    filling = prose("teapot", 6)
    assert "**macOS**" not in answer("teapot", passage(f"{filling}\n\n**macOS**\n\n{'boil ' * 200}it."))
    assert answer("teapot", passage(f"{filling}\n\n**macOS**\n\nBoil it.")).endswith("**macOS**\n\nBoil it.")


def test_nothing_but_an_announcement_is_better_than_silence() -> None:
    assert answer("teapot", passage("The teapot:")).endswith("The teapot:")
    assert answer("teapot", passage("Kettle:"), passage("A teapot sings.", "2")).endswith("A teapot sings.")


def test_the_nearest_code_follows_with_its_announcement() -> None:
    text = f"{prose('teapot', 6)}\n\nMake tea:\n\n```sh\ntea\n```\n\nOr else:\n\n```sh\nteapot --whistle\n```"
    found = answer("nine words whistle", passage(text))
    assert found.endswith("teapot.\n\nOr else:\n\n```sh\nteapot --whistle\n```")


def test_code_is_shown_once() -> None:
    code = "```sh\nteapot --sing\n```"
    one = passage(f"Teapots sing when hot.\n\n{code}", "1")
    two = passage(f"{prose('teapot dance', 7)}\n\n{code}", "2", ("Other",))
    found = answer("teapot sing dance", one, two)
    assert "dance" in found
    assert found.count(code) == 1


def test_a_listing_is_left_where_it_stands() -> None:
    listing = "```\n" + "teapot\n" * 30 + "```"
    assert "teapot\nteapot" not in answer("teapot", passage(f"A teapot sings. See:\n\n{listing}\n\nAfter."))
    assert listing in answer("teapot", passage(listing))


def test_lists_are_quoted_from_their_beginning_in_whole_items() -> None:
    items = [f"{i}. Do step {i} of the teapot with eleven careful words in it." for i in range(1, 12)]
    _, *found = filter(None, answer("teapot step", passage("\n".join(items))).split("\n"))
    assert found == items[: len(found)]
    assert 3 <= len(found) < 11


def test_without_a_question_the_beginning_is_quoted() -> None:
    text = f"{prose('teapot', 7)}\n\n{prose('kettle', 7)}"
    assert answer("", passage(text)).startswith("**Guide › Part**\n\nSentence 0 of nine words is about the teapot.")


def test_a_heading_cannot_break_out_of_its_line() -> None:
    found = answer("teapot", passage("A teapot.", path=("A *b* **c**", "d\ne")))
    assert found == "**A b c › d e**\n\nA teapot."


def test_the_first_words_are_in_the_language_of_the_answer() -> None:
    spans = list(Extractive().generate(task("Kannen", passage("Kannen singen."), language="de-CH")))
    assert spans[0].text == "Aus der Dokumentation zitiert:\n\n"


def test_no_passages_no_quotes() -> None:
    assert draft("teapot") == (Span("Quoted from the documentation:\n\n", kind="framing"),)
    assert len(draft("teapot", passage(" \n\n"))) == 1


SENTENCES = st.sampled_from(["The teapot sings.", "A kettle whistles:", "**Note**", "Cups break. Lids fall."])
BLOCKS = st.one_of(
    SENTENCES,
    st.just("```sh\nteapot --sing\n\nkettle\n```"),
    st.just("| teapot | kettle |\n| --- | --- |\n| 1. A | 2. B |"),
    st.lists(SENTENCES, min_size=1, max_size=5).map(lambda items: "\n".join(f"- {item}" for item in items)),
    st.integers(1, 30).map(lambda n: prose("lid", n)),
)
SECTIONS = st.lists(BLOCKS, min_size=1, max_size=8).map("\n\n".join)


@given(st.lists(SECTIONS, min_size=1, max_size=4), st.sampled_from(["teapot", "kettle lid", "", "zebra"]))
def test_every_quote_is_made_of_whole_units_that_never_overlap(sections: list[str], question: str) -> None:
    passages = [passage(text, str(i), ("Guide", f"Part {i}")) for i, text in enumerate(sections)]
    _, *quotes = draft(question, *passages)
    assert quotes
    for quote in quotes:
        section = sections[int(quote.citations[0])]
        units = [u.text for u in split(section, "en")]
        body = re.sub(r"^\*\*Guide › Part \d\*\*\n\n", "", quote.text.rstrip())
        quoted = [u.text for u in split(body, "en")]
        assert all(text in units for text in quoted)
        words = sum(len(text.split()) for text in quoted)
        assert words <= WINDOW_WORDS * ANNOUNCED * 2 or len(quoted) == 1
        if any(not u.announces for u in split(section, "en")):
            last = list(split(body, "en"))[-1]
            assert not last.announces or section.rstrip().endswith(last.text)


@pytest.mark.parametrize("unit", ["- a\n", "```\n", "a:\n\n", "**a**\n\n", "a. ", "1. a\n\n"])
def test_a_hostile_selection_is_answered_in_time(unit: str) -> None:
    started = time.process_time()
    draft("a b c", passage(unit * (5000 // len(unit))))
    assert time.process_time() - started < 5


def test_generators_are_opened_by_name() -> None:
    assert open_generator(Settings()).name == "extractive"
    with pytest.raises(ConfigurationError, match="'gpt': use extractive"):
        open_generator(Settings(generator="gpt"))
