from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.calibration import WeightedQuestion
from chapterverse.errors import ConfigurationError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse.text import lexical
from chapterverse_api import phrases
from chapterverse_api.draft.draft import Draft
from chapterverse_api.draft.extractive import MAX_ANSWER_WORDS, MAX_QUOTED_SECTIONS, Extractive
from chapterverse_api.draft.quoting.answer_scores import MAX_PASSAGES, PartFeatures, load_weights, score_parts
from chapterverse_api.draft.quoting.quote import (
    CUT_CODE_LINES,
    MAX_PART_CHARS,
    MAX_WHOLE_CODE_LINES,
    MAX_WHOLE_WORDS,
)
from chapterverse_api.draft.requests import GenerationRequest, Passage, Subsection
from chapterverse_api.ext.check.verifier import is_verbatim
from chapterverse_api.ext.evaluation.quoting import cut_in_silence

URL = "https://docs.example/guide/#part"


def passage(
    text: str,
    number: str = "1",
    path: Sequence[str] = ("Guide", "Part"),
    score: float = 0.9,
    *,
    is_whole_section: bool = True,
) -> Passage:
    return Passage(number, tuple(path), text, text, frozenset(), score, score, URL, None, is_whole_section)


def make_request(
    question: str,
    *passages: Passage,
    language: str = "en",
    selection: str = "",
) -> GenerationRequest:
    words = tuple((w.terms,) for w in lexical.words(question, language))
    asked = WeightedQuestion(words, (1.0,) * len(words))
    return GenerationRequest(question, asked, passages, language, selection=selection)


def draft(request: GenerationRequest) -> Draft:
    spans = tuple(Extractive().generate(request))
    for span in spans:
        assert span.kind in ("quote", "framing")
        assert span.mark is None or span.mark in span.text
        if span.kind == "quote":
            assert is_verbatim(span, request.passages), span.text
    return spans


def answer(question: str, *passages: Passage) -> str:
    return "".join(s.text for s in draft(make_request(question, *passages)))


def quoted(question: str, *passages: Passage) -> list[str]:
    return [s.text for s in draft(make_request(question, *passages)) if s.kind == "quote"]


def marked(question: str, *passages: Passage) -> str | None:
    return next(s.mark for s in draft(make_request(question, *passages)) if s.kind == "quote")


def prose(word: str, count: int) -> str:
    return " ".join(f"Sentence {i} of nine words is about the {word}." for i in range(count))


def test_a_short_section_is_quoted_whole_under_its_headings() -> None:
    spans = draft(make_request("How do teapots sing?", passage("Teapots sing when hot.\n\nTeapots stop when cold.")))
    assert [(s.text, s.kind, s.citations) for s in spans] == [
        ("**Guide › Part**\n\n", "framing", ()),
        ("Teapots sing when hot.\n\nTeapots stop when cold.", "quote", ("1",)),
    ]
    assert spans[1].mark == "Teapots sing when hot."


def test_the_paragraph_that_speaks_of_the_question_is_quoted_whole() -> None:
    text = f"{prose('kettle', 8)}\n\n{prose('teapot', 8)}\n\n{prose('cup', 8)}"
    assert quoted("Where is the teapot?", passage(text)) == [prose("teapot", 8)]


def test_a_long_paragraph_is_quoted_from_where_it_speaks_of_the_question_and_says_so() -> None:
    text = f"{prose('kettle', 12)} The teapot hides here. {prose('cup', 12)}"
    (found,) = quoted("Where is the teapot?", passage(text))
    assert found.startswith("The teapot hides here. Sentence 0 of nine words is about the cup.")
    assert found.endswith(f"\n\n… [Part]({URL})")


def test_code_comes_with_what_introduces_it_and_the_other_way_round() -> None:
    text = "Cups break.\n\nTo make it sing, run:\n\n```sh\nteapot --sing\n```\n\nThat is all about cups and lids."
    for question in ("teapot", "make sing"):
        assert "To make it sing, run:\n\n```sh\nteapot --sing\n```" in quoted(question, passage(text))[0]


def test_a_comparison_quotes_the_opening_of_each_side() -> None:
    teapot = passage(f"A teapot brews. Lids fit. Cups too.\n\n{prose('kettle', 9)}", "1", ("Guide", "Teapot"))
    kettle = passage(f"It boils water. Cords fit. Plugs too.\n\n{prose('teapot', 9)}", "2", ("Guide", "Kettle"))
    asked = make_request("teapot vs kettle", teapot, kettle)
    spans = [span for span in draft(replace(asked, sides=("1", "2"))) if span.kind == "quote"]
    assert [span.citations for span in spans] == [("1",), ("2",)]
    assert spans[0].text.startswith("A teapot brews.")
    assert spans[1].text.startswith("It boils water.")


def test_a_comparison_quotes_another_section_sooner_than_other_questions_do() -> None:
    teapot = passage("A teapot brews tea.", "1", ("Guide", "Teapot"))
    # A paragraph of thirty words, of which one is the other side.
    kettle = passage(f"{prose('lid', 3)} The kettle boils water.", "2", ("Guide", "Cords"), 0.7)
    asked = make_request("teapot vs kettle", teapot, kettle)
    found = [
        [span.citations for span in draft(t) if span.kind == "quote"] for t in (asked, replace(asked, compares=True))
    ]
    assert found == [[("1",)], [("1",), ("2",)]]


def test_a_label_comes_with_its_tab_or_not_at_all() -> None:
    filling = prose("lid", 14)
    assert (
        "**macOS**\n\nBoil the teapot." in quoted("teapot", passage(f"{filling}\n\n**macOS**\n\nBoil the teapot."))[0]
    )
    assert "**macOS**" not in quoted("teapot", passage(f"{prose('teapot', 9)}\n\n**macOS**\n\n{prose('cup', 9)}"))[0]


def test_a_heading_is_no_answer_to_itself() -> None:
    reduce = passage("How to reduce latency\n\nSet `cache` to true.", path=("Guide", "How to reduce latency"))
    assert marked("How to reduce latency", reduce) == "Set `cache` to true."


def test_a_row_stands_under_its_header_and_the_rest_is_stated() -> None:
    rows = [f"| `option_{i}` | Sets thing {i} of the teapot to another value. |" for i in range(20)]
    head = "| option | meaning |\n| --- | --- |"
    (found,) = quoted("option_7", passage("\n".join((head, *rows))))
    assert found == f"{head}\n{rows[7]}\n\n… 19 more in [Part]({URL})"
    assert marked("option_7", passage("\n".join((head, *rows)))) == rows[7]


def test_an_entry_is_quoted_without_the_others() -> None:
    entries = [f"**`option{i}`**\n: Sets thing {i} of the teapot to another value that fits." for i in range(12)]
    (found,) = quoted("option3", passage("\n\n".join(entries)))
    assert found == f"{entries[3]}\n\n… 11 more in [Part]({URL})"
    assert marked("option3", passage("\n\n".join(entries))) == "Sets thing 3 of the teapot to another value that fits."


def test_a_nested_item_comes_with_those_that_it_stands_in() -> None:
    items = [f"- Thing {i} of the kettle is described in these words.\n  - Part {i} has a lid." for i in range(20)]
    items[9] = "- Thing of the cup.\n  - The teapot whistles."
    (found,) = quoted("teapot whistles", passage("\n".join(items)))
    assert "- Thing of the cup.\n  - The teapot whistles." in found
    assert f"more in [Part]({URL})" in found
    assert not cut_in_silence(found, "\n".join(items))


def test_steps_are_quoted_from_the_first() -> None:
    items = [f"{i}. Do step {i} of the teapot with eleven careful words in it." for i in range(1, 12)]
    (found,) = quoted("teapot steps", passage("\n".join(items)))
    lines, cut = found.split("\n\n")
    shown = lines.split("\n")
    assert shown == items[: len(shown)]
    assert cut == f"… {11 - len(shown)} more in [Part]({URL})"


def test_of_a_section_that_is_not_all_here_the_rest_is_stated_without_a_number() -> None:
    (found,) = quoted("teapot", passage("Intro of it.\n\n- A teapot.\n- A cup.", is_whole_section=False))
    assert found.endswith(f"- A cup.\n\n… [Part]({URL})")


def test_a_listing_is_shown_in_part_around_the_line_that_answers() -> None:
    lines = [f"kettle_{i} = {i}" for i in range(60)]
    lines[40] = "teapot = sings"
    (found,) = quoted("teapot sings", passage("```py\n" + "\n".join(lines) + "\n```"))
    code, cut = found.split("\n\n")
    assert "teapot = sings" in code
    # Both ends say that more is there.
    assert code.startswith("```py\n…\nkettle_32")
    assert code.endswith("\n```")
    assert code.count("\n") == CUT_CODE_LINES + 2
    assert cut == f"… {60 - CUT_CODE_LINES} more in [Part]({URL})"
    whole = "```py\n" + "teapot\n" * MAX_WHOLE_CODE_LINES + "```"
    assert quoted("teapot", passage(whole)) == [whole]


def test_of_a_diff_the_removed_lines_are_not_offered_to_be_written() -> None:
    code = ["```diff", " export default {", "-  kettle: 80", "+  kettle: 81", "+  spout: 2", " }", "```"]
    found = answer("How do I set the port of the kettle?", passage("Set the port:\n\n" + "\n".join(code)))
    assert "-  kettle" not in found
    assert " export default {\n+  kettle: 81\n+  spout: 2\n }\n```" in found
    assert "1 more" in found or "…" in found
    only_removed = passage("Remove the port of the kettle:\n\n```diff\n-  kettle: 80\n```")
    assert "-  kettle: 80" in answer("How do I remove the port of the kettle?", only_removed)
    listed = passage("Options of the kettle:\n\n```sh\n-k kettle\n-s spout\n```")
    assert "-k kettle\n-s spout" in answer("Which options has the kettle?", listed)


def test_one_quote_where_one_answers() -> None:
    one, two = passage("Teapots sing when hot.", "1"), passage("Cups break.", "2", ("Other",), 0.2)
    assert len(quoted("Why do teapots sing?", one, two)) == 1


def test_a_section_whose_heading_is_the_question_is_quoted_with_the_remedy() -> None:
    cause = f"The lid is stuck because steam presses on it. {prose('steam', 4)}"
    remedy = f"Wait a minute and pull gently. {prose('towel', 4)}"
    stuck, other = [passage(f"{cause}\n\n{remedy}", path=("Guide", name)) for name in ("The lid is stuck", "Steam")]
    assert quoted("lid is stuck", stuck) == [f"{cause}\n\n{remedy}"]
    assert quoted("lid is stuck", other) == [cause]


def test_a_second_section_is_quoted_that_speaks_as_clearly() -> None:
    one = passage("A teapot brews tea and sings.", "1", ("Teapots",))
    two = passage("A kettle boils water and whistles.", "2", ("Kettles",), 0.8)
    spans = draft(make_request("teapot kettle", one, two))
    assert sorted(s.citations for s in spans if s.kind == "quote") == [("1",), ("2",)]


def test_a_second_section_without_another_word_of_the_question_is_not_quoted() -> None:
    one, two = passage("A teapot brews tea.", "1", ("Teapots",)), passage("A teapot is hot.", "2", ("Teapots",))
    assert quoted("teapot", one, two) == ["A teapot brews tea."]
    assert quoted("teapot tea hot", one, two) == ["A teapot brews tea.", "A teapot is hot."]


def test_the_section_is_quoted_first_whose_parts_together_answer_more_likely() -> None:
    one = passage("A teapot sings and boils.\n\nCups break.", "1", ("Guide", "One"))
    three = passage(
        "A teapot sings and boils water.\n\nThen the teapot boils and sings.\n\nThe teapot sings.",
        "2",
        ("Guide", "Three"),
        0.86,
    )
    request = make_request("teapot sings boils", one, three)
    best = max(score_parts(request), key=lambda part: part.score)
    spans = draft(request)
    assert best.section.passage.id == "1"
    assert [span.citations for span in spans if span.kind == "quote"] == [("2",)]


def test_the_same_words_are_not_quoted_twice() -> None:
    text = "Teapots sing when they are hot and full."
    assert len(quoted("Do teapots sing?", passage(text, "1"), passage(text, "2", ("Other",)))) == 1


def test_a_doubtful_answer_is_a_short_quote_of_each_section() -> None:
    one = passage("To hear it:\n\n- Teapots sing when hot.", "1")
    two = passage("To see it:\n\n- Teapots dance on ice.", "2", ("Other",))
    request = replace(make_request("Do teapots sing?", one, two, language="de-CH"), may_help=True)
    first, *spans = draft(request)
    assert first.text == f"{phrases.for_language('de').may_help}\n\n"
    whole, part = (span for span in spans if span.kind == "quote")
    assert (whole.citations, whole.text, whole.mark) == (("1",), one.text, "Teapots sing when hot.")
    assert (part.citations, part.text) == (("2",), "- Teapots dance on ice.")


def test_a_selection_is_not_quoted_back() -> None:
    found = draft(
        make_request("teapot", passage("The teapot sings. It is hot."), selection="teapot: The teapot\nsings.")
    )
    assert found[-1].mark == "It is hot."


def test_a_heading_cannot_break_out_of_its_line() -> None:
    said = answer("teapot", passage("A teapot.", path=("run(*args)", "d\ne [f](g)", "__init__ of max_size")))
    assert said == r"**run(\*args) › d e [f] (g) › \_\_init\_\_ of max_size**" + "\n\nA teapot."
    items = "\n".join(f"- Item {i} is a teapot of its own in many words." for i in range(30))
    found = quoted("teapot", passage(items, path=("A [b](c)\nd",)))[0]
    assert found.endswith(rf" more in [A \[b\] (c) d]({URL})")


def test_a_long_signature_is_a_heading_without_its_parameters() -> None:
    signature = f"class pots.Teapot({', '.join(f'lid_{i}=None' for i in range(9))}) → Tea"
    paths = [("Guide", name) for name in (signature, "pots.pour(*cups)", f"Why {'so ' * 30}long, function(s) or not")]
    shown = [draft(make_request("teapot", passage("Teapots sing.", path=path)))[0].text for path in paths]
    assert shown == [
        "**Guide › class pots.Teapot(…)**\n\n",
        r"**Guide › pots.pour(\*cups)**" + "\n\n",
        f"**Guide › Why {'so ' * 30}long, function(s) or not**\n\n",
    ]


@pytest.mark.parametrize("url", ["https://docs.example/#a)[b](https://evil.example", "https://docs.example/#a b", None])
def test_an_address_that_would_end_a_link_is_left_out(url: str | None) -> None:
    items = "\n".join(f"- Item {i} is a teapot of its own in many words." for i in range(30))
    assert quoted("teapot", replace(passage(items), url=url))[0].endswith(" more in *Part*")


def test_there_may_be_nothing_to_quote() -> None:
    for passages in ((), (passage(" \n\n"),), (passage("# Part"),)):
        assert [*Extractive().generate(make_request("teapot", *passages))] == []


@pytest.mark.parametrize(
    "text", ["**Deprecated since 2.0**", "> [!WARNING] Deprecated", "| Name | Value |\n| --- | --- |"]
)
def test_a_section_of_which_no_part_answers_is_quoted_from_its_beginning(text: str) -> None:
    assert quoted("deprecated teapot", passage("# Part", "1"), passage(text, "2")) == [text]


def test_a_selection_that_is_all_of_its_section_is_quoted() -> None:
    (found,) = draft(make_request("teapot", passage("The teapot sings."), selection="The teapot sings."))[1:]
    assert (found.text, found.mark) == ("The teapot sings.", None)


def test_what_is_left_out_between_two_blocks_is_stated() -> None:
    text = f"Teapots sing when hot.\n\n{prose('cup', 12)}\n\nTeapots stop to sing when cold."
    (found,) = quoted("when do teapots sing", passage(text))
    assert found == "Teapots sing when hot.\n\n…\n\nTeapots stop to sing when cold."


def test_code_that_goes_on_in_the_next_chunk_is_cut_without_a_number() -> None:
    halves = ["```py\n" + "\n".join(f"kettle_{i} = {i}" for i in range(a, a + 40)) + "\n```" for a in (0, 40)]
    (found,) = quoted("kettle_5", passage("\n\n".join(halves)))
    assert found.endswith(f"… [Part]({URL})")


def test_every_feature_has_a_weight_and_only_the_first_passages_are_read() -> None:
    assert {len(load_weights(read=read)) for read in (False, True)} == {len(PartFeatures._fields)}
    passages = [passage(f"Teapot {i} sings.", str(i), (f"Part {i}",)) for i in range(9)]
    assert {part.section.passage.id for part in score_parts(make_request("teapot", *passages))} == set(
        map(str, range(MAX_PASSAGES))
    )


SENTENCES = st.sampled_from(["The teapot sings.", "A kettle whistles:", "**Note**", "Cups break. Lids fall."])
BLOCKS = st.one_of(
    SENTENCES,
    st.just("```sh\nteapot --sing\n\nkettle\n```"),
    st.integers(1, 40).map(lambda n: "\n".join(f"- item {i} of a teapot in words" for i in range(n))),
    st.integers(1, 40).map(lambda n: "| a | b |\n| --- | --- |\n" + "\n".join(f"| teapot {i} | B |" for i in range(n))),
    st.integers(1, 40).map(lambda n: "```py\n" + "\n".join(f"kettle({i})" for i in range(n)) + "\n```"),
    st.integers(1, 30).map(lambda n: prose("lid", n)),
)
DOCUMENTS = st.lists(BLOCKS, min_size=1, max_size=8).map("\n\n".join)


@settings(deadline=None)
@given(st.lists(DOCUMENTS, min_size=1, max_size=4), st.sampled_from(["teapot", "kettle lid", "", "zebra"]))
def test_no_quote_cuts_a_list_a_table_or_code_in_silence(documents: list[str], question: str) -> None:
    passages = [passage(text, str(i), ("Guide", f"Part {i}")) for i, text in enumerate(documents)]
    spans = [s for s in draft(make_request(question, *passages)) if s.kind == "quote"]
    assert len(spans) <= MAX_QUOTED_SECTIONS
    for span in spans:
        assert not cut_in_silence(span.text, documents[int(span.citations[0])])
        assert span.text != "**Note**"


TABLE = "| a | b |\n| --- | --- |\n" + "\n".join(f"| teapot {i} | sets thing {i} |" for i in range(5000))
LEVELS = "\n".join(f"{'  ' * (i % 5)}- teapot {i} of four hundred" for i in range(400))
BAD = {
    "a table of 5,000 rows": TABLE,
    "a list of 400 items in five levels": LEVELS,
    "only code": "```\n" + "teapot()\n" * 400 + "```",
    "no sentence": "teapot " * 900,
    "right to left": "إبريق الشاي يغني teapot عندما يكون ساخنا. " * 40,
    "a paragraph of 3,000 words": prose("teapot", 333),
    "a fence that is not closed": "Run:\n\n```sh\nteapot --sing\n- x",
    "a fence that an item leaves open": "- Run the teapot:\n  ```sh\n  teapot\n- more",
    "announcements of announcements": "A teapot:\n\n" * 300,
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_quoted_in_bounds_and_in_time(name: str) -> None:
    started = time.process_time()
    (found,) = quoted("teapot 7", passage(BAD[name]))
    assert time.process_time() - started < 2
    assert len(found) < MAX_PART_CHARS + 400
    assert len(found.split()) <= max(MAX_ANSWER_WORDS, MAX_WHOLE_WORDS) + 40
    assert found.count("```") % 2 == 0
    if len(found) + 50 < len(BAD[name]):
        assert f"[Part]({URL})" in found
    assert not cut_in_silence(found, BAD[name])


@pytest.mark.parametrize("unit", ["- a\n", "```\n", "a:\n\n", "**a**\n\n", "a. ", "1. a\n\n", "| a\nb\n"])
def test_a_hostile_selection_is_answered_in_time(unit: str) -> None:
    started = time.process_time()
    draft(make_request("a b c", passage(unit * (5000 // len(unit)))))
    assert time.process_time() - started < 2


def test_generators_are_opened_by_name() -> None:
    assert open_offer("generator", Settings()).name == "extractive"
    with pytest.raises(ConfigurationError, match="'gpt': use extractive"):
        open_offer("generator", Settings(generator="gpt"))


def test_an_announcement_at_the_end_of_what_is_here_says_that_more_follows() -> None:
    text = "There are two kinds of teapot, which differ as follows:"
    assert quoted("teapot", passage(text)) == [text]
    assert quoted("teapot", passage(text, is_whole_section=False)) == [f"{text}\n\n… [Part]({URL})"]


def test_an_announcement_at_the_end_of_a_section_is_followed_by_the_names_of_its_subsections() -> None:
    below = tuple(Subsection(f"Tea {n}", f"https://docs.example/tea/#{n}" if n != 1 else "") for n in range(14))
    listed = replace(passage("There are many kinds of tea:"), subsections=below)
    (text,) = quoted("which kinds of tea are there", listed)
    line = text.split("\n\n")[-1]
    assert line.startswith("… [Tea 0](https://docs.example/tea/#0), *Tea 1*, [Tea 2](https://docs.example/tea/#2), ")
    assert line.endswith(f"#11) … 2 more in [Part]({URL})")
    (text,) = quoted("which kinds of tea are there", replace(listed, subsections=below[:1]))
    assert text.endswith("tea:\n\n… [Tea 0](https://docs.example/tea/#0)")


def test_subsections_are_not_named_where_nothing_announces_them_or_more_of_the_section_follows() -> None:
    below = (Subsection("Green", f"{URL}-green"),)
    said = replace(passage("There are many kinds of tea."), subsections=below)
    assert quoted("which kinds of tea are there", said) == ["There are many kinds of tea."]
    cut = replace(passage("The kinds of tea:", is_whole_section=False), subsections=below)
    (text,) = quoted("which kinds of tea are there", cut)
    assert text.endswith(f"… [Part]({URL})")


def test_a_list_in_a_note_is_a_list() -> None:
    items = [f"> - Lamp {n} stands above table number {n} in the hall of many lamps." for n in range(12)]
    note = "> [!NOTE]\n> These lamps are sold:\n" + "\n".join(items)
    (found,) = quoted("lamp 7 above table 7", passage(note))
    assert found.startswith("> [!NOTE]\n> These lamps are sold:\n")
    assert items[7] in found
    assert found.split("\n\n")[-1].startswith("… ")
    assert not cut_in_silence(found, note)
