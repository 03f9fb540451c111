"""What is measured of a sentence beside its sources, word by word; every word is as rare as any other here."""

from __future__ import annotations

import pytest

from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence, AnalyzedText
from chapterverse_api.ext.check.features import measure_support
from ext.check.passages import passage

BUILD = "A build reads the cache before it renders a page."
EVERY = "Every build reads the cache before it renders a page."
WAIT = "The server waits for three workers, and the client stops after 30 s."
LIMITS = "| Name | Default |\n| --- | --- |\n| port | 8080 |\n| token | not set |\n"


def measured(said: str, *texts: str, rival: str = "", language: str = "en") -> dict[str, float]:
    """Return the features of a sentence that are not 0."""
    sources = [AnalyzedPassage(passage(f"{n}", text), language) for n, text in enumerate(texts)]
    rivals = [AnalyzedPassage(passage("r", rival), language)] if rival else []
    sentence = AnalyzedSentence(said, "prose", language, {})
    values = measure_support(sentence, sources, rivals, lambda _: 1.0)
    return {name: round(value, 3) for name, value in values.items() if value}


def lacking(missing: int, of: int, **more: float) -> dict[str, float]:
    """Return the features of a clause that lacks so many words in a row, which nothing aligned has either."""
    share = round(missing / of, 3)
    shares = {"unaligned_share": share, "missing_share": share, "clause_missing_share": share}
    return {**shares, "missing_run": missing, "missing_rarity": missing, **more}


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (BUILD, {}),
        ("A build reads the caching of a page.", {}),
        ("Penguins read the cache.", lacking(1, 3)),
        ("Penguins, turtles and a build.", {**lacking(2, 3), "clause_missing_share": 2 / 3}),
        # What begins like a word of a source is not rare.
        ("A build reads the rendezvous of a page.", {**lacking(1, 4), "missing_rarity": 0.0}),
        # A clause of two words is too short to be counted apart.
        (
            "A build reads the cache, turtles eat.",
            {**lacking(2, 5), "clause_missing_share": 0.0},
        ),
        ("A build reads the cache, turtles eat green leaves.", {**lacking(4, 7), "clause_missing_share": 1.0}),
        ("A turtle build reads turtle pages.", {**lacking(2, 5), "missing_run": 1, "missing_rarity": 1}),
    ],
)
def test_words_that_no_source_has_are_counted(said: str, expected: dict[str, float]) -> None:
    assert measured(said, BUILD) == {name: round(value, 3) for name, value in expected.items() if value}


def test_a_missing_word_may_be_in_another_passage() -> None:
    said = "A build reads the cache of penguins and turtles."
    assert measured(said, BUILD) == lacking(2, 5)
    assert measured(said, BUILD, rival="Penguins eat fish.") == lacking(2, 5, elsewhere_rarity=1)


@pytest.mark.parametrize(
    ("said", "source", "expected"),
    [
        (EVERY, BUILD, lacking(1, 7, added_all_cues=1)),
        ("A build must read the cache before it renders a page.", BUILD, {"added_must_cues": 1}),
        (BUILD.replace("reads", "reads only"), BUILD, lacking(1, 7, added_only_cues=1)),
        # At another word.
        (BUILD.replace("a page", "every page"), EVERY, {"added_all_cues": 0.6}),
        # The source says it too, or says nothing of what is around it.
        (EVERY, EVERY, {}),
        (EVERY, "Each build reads the cache before it renders a page.", lacking(1, 7)),
        (BUILD, EVERY, {}),
        ("Every turtle swims: a build reads the cache.", BUILD, lacking(3, 6, clause_missing_share=1)),
        # Two fifths of what is around it are enough, and a third is not.
        ("Build pages every autumn with penguins.", BUILD, {**lacking(3, 5), "added_all_cues": 0.5}),
        ("Build leaves every autumn with penguins.", BUILD, lacking(4, 5)),
    ],
)
def test_cues_that_only_the_sentence_has_count_by_their_surroundings(
    said: str, source: str, expected: dict[str, float]
) -> None:
    assert measured(said, source) == expected


@pytest.mark.parametrize(
    ("said", "source", "expected"),
    [
        ("The server waits for two workers.", WAIT, {"contradictions", "missing_digits"}),
        ("The server waits for 3 workers.", WAIT, set()),
        ("The client stops after 30 minutes.", WAIT, {"contradictions"}),
        ("The client stops after 30 seconds.", WAIT, set()),
        ("The client stops after 30.", WAIT, set()),
        ("`client` stops after 30 seconds.", WAIT, set()),
        ("`clients` stop after 30 seconds.", WAIT, {"missing_names"}),
        ("`{ client, server }` stop after 30 seconds.", WAIT, set()),
        ("`{ client, queue }` stop after 30 seconds.", WAIT, {"missing_names"}),
        ("The client stops before 30 seconds.", WAIT, {"contradictions"}),
        ("The workers wait for three servers.", WAIT, {"contradictions"}),
        ("The default port is 8080.", LIMITS, set()),
        ("The default port is not 8080.", LIMITS, {"contradictions", "clause_negation_mismatch"}),
        ("The default token is set.", LIMITS, {"contradictions", "clause_negation_mismatch"}),
        ("The default token is not set.", LIMITS, set()),
        ("It is set.", LIMITS, {"contradictions", "clause_negation_mismatch"}),
    ],
)
def test_what_differs_from_the_source_is_told_by_its_kind(said: str, source: str, expected: set[str]) -> None:
    kinds = {"contradictions", "missing_digits", "missing_names", "clause_negation_mismatch"}
    assert measured(said, source).keys() & kinds == expected


@pytest.mark.parametrize(
    ("language", "said", "source", "differs"),
    [
        ("en", "A build never reads no cache of a page.", "A build reads the cache of a page.", False),
        ("es", "La caché no guarda nunca páginas del sitio.", "La caché guarda páginas del sitio.", True),
        ("es", "La caché no guarda nunca páginas del sitio.", "La caché no guarda páginas del sitio.", False),
        ("fr", "Le cache ne garde pas les pages du site.", "Le cache garde les pages du site.", True),
    ],
)
def test_two_denials_are_none_but_where_they_are_one(language: str, said: str, source: str, differs: bool) -> None:
    assert ("clause_negation_mismatch" in measured(said, source, language=language)) is differs


TABLE = (
    "# Ports\n\nServers of the site:\n\n| Name | Default |\n| --- | --- |\n| web | 80 |\n\nGateways follow.\n\n"
    "Clients of the site:\n\n- browser\n- robot\n\nOther words.\n\n- crawler\n\n# Hosts\n\n- router\n"
)


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        # A row has its head, a list its introduction, and both their heading.
        ("Default web", 0.0),
        ("Default gateways", 0.5),
        ("Servers web", 0.0),
        ("Clients robot", 0.0),
        ("Clients crawler", 0.5),
        ("Ports web", 0.0),
        ("Ports robot", 0.0),
        ("Ports router", 0.5),
        ("Hosts router", 0.0),
        ("Clients router", 0.5),
    ],
)
def test_an_excerpt_is_read_with_its_heading_its_introduction_and_its_head(said: str, lacks: float) -> None:
    assert measured(said, TABLE).get("unaligned_share", 0.0) == lacks


@pytest.mark.parametrize(("between", "lacks"), [("*Fast* ones are first.", 0.0), ("Fast ones are first.", 0.5)])
def test_a_list_keeps_its_introduction_behind_a_paragraph_that_is_marked(between: str, lacks: float) -> None:
    text = f"Clients of the site:\n\n{between}\n\n- robot\n"
    assert measured("Clients robot", text).get("unaligned_share", 0.0) == lacks


def test_a_name_within_a_sentence_must_be_in_a_source() -> None:
    said = "A build reads the cache of Quill before it renders a page."
    assert measured(said, BUILD) == lacking(1, 7, clash_count=1)
    assert "clash_count" not in measured(said, BUILD, "Quill is a press.")


def test_code_that_says_most_of_a_sentence_is_told() -> None:
    assert measured("Quill build.", "```sh\nquill build --out x\n```") == {"in_code": 1}
    assert measured("Quill build.", "Quill build is a command.") == {}


@pytest.mark.parametrize(
    ("text", "word", "terms"),
    [
        # Two words with meaning before it, three behind it.
        ("one red fox dares never eat the big gray wolf alone", "never", "fox dares eat big gray"),
        ("fox in the of by at the never", "never", ""),
        ("fox in the of by at never", "never", "fox"),
        ("never in the of by at the of wolf", "never", ""),
        ("never in the of by at the wolf", "never", "wolf"),
        ("never", "never", ""),
        # Of its own cell alone.
        ("fox | red never wolf | gray", "never", "red wolf"),
        ("fox | never | gray", "never", ""),
    ],
)
def test_the_surroundings_of_a_word_are_the_nearest_words_with_meaning(text: str, word: str, terms: str) -> None:
    analyzed = AnalyzedText(text, "en")
    assert analyzed.nearby_terms(analyzed.surfaces.index(word)) == AnalyzedText(terms, "en").content_terms


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ("", [""]),
        ("The cache is full.", ["the cache is full ."]),
        ("Builds read caches, and servers send pages.", ["builds read caches ,", "and servers send pages ."]),
        # What has fewer than two words with meaning belongs to what is before it.
        ("Builds read caches, and stop.", ["builds read caches , and stop ."]),
        ("Then builds read caches.", ["then builds read caches ."]),
        ("Stop, builds read caches.", ["stop , builds read caches ."]),
    ],
)
def test_a_clause_ends_before_a_pause_or_a_conjunction(text: str, clauses: list[str]) -> None:
    analyzed = AnalyzedText(text, "en")
    assert [" ".join(analyzed.surfaces[start:end]) for start, end in analyzed.clauses] == clauses


@pytest.mark.parametrize(
    ("text", "word", "is_denied"),
    [
        ("It is not required.", "required", True),
        ("It isn't yet required.", "required", True),
        ("It is not in any way required.", "required", False),
        ("It is never not required.", "required", False),
        ("It is required, not optional.", "required", False),
        ("It is not only required.", "required", False),
        ("It is not optional.", "required", False),
    ],
)
def test_a_word_is_denied_by_the_three_words_before_it(text: str, word: str, is_denied: bool) -> None:
    assert AnalyzedText(text, "en").is_denied(word) is is_denied


def test_a_passage_is_read_up_to_a_bound() -> None:
    excerpts = AnalyzedPassage(passage("1", "Old words.\n\n" * 2_000, ("Title",)), "en").excerpts
    assert [excerpt.kind for excerpt in excerpts[-2:]] == ["prose", "heading"]
    assert len(excerpts) == 1_502


def test_a_text_is_read_up_to_a_bound() -> None:
    analyzed = AnalyzedText(" ".join(["cache", "`x1`"] * 300), "en")
    assert (len(analyzed.surfaces), len(analyzed.literals)) == (400, 60)
    assert len(AnalyzedText(f"cache {'x' * 65}", "en").content_terms) == 1
    assert len(AnalyzedText(f"cache {'x' * 64}", "en").content_terms) == 2
