"""What becomes of a draft: its text, its citations, its confidence; and how long hostile text takes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.calibration import Synonym, WeightedQuestion
from chapterverse.text import lexical
from chapterverse.text.sentences import split
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.check.results import VerifiedDraft
from chapterverse_api.ext.check.verifier import Verifier, is_verbatim, sentences_with_ids, verify
from chapterverse_api.ext.models.segments import Segments
from ext.check.passages import equal_weights, passage
from growth import assert_linear

ALPHA = "Alpha beta gamma delta."
PORTS = "The server listens on port 8080 unless `QUILL_PORT` names another number."
SECTION = "Teapots sing when hot. They stop.\n\n- One.\n- Two.\n- Three.\n\n```sh\nrun\nstop\n```"
PASSAGE = passage("1", SECTION, ("Tea",))


def confidence(text: str, *sources: str) -> float:
    passages = [passage(str(i), source) for i, source in enumerate(sources, 1)]
    return verify((Span(text, ("1",)),), passages, "en", equal_weights).confidence


def test_a_quote_is_certain_wherever_it_stands() -> None:
    assert confidence("Alpha beta gamma delta", f"Before. {ALPHA} After.") > 0.99
    assert confidence("Alpha beta gamma delta", ALPHA) > 0.99


def test_what_was_damaged_on_its_way_is_unconfirmed_though_it_claims_nothing() -> None:
    for text, source in (("# The v\ufffdult\n", ALPHA), (ALPHA.replace("e", "\ufffd"), ALPHA)):
        found = verify((Span(text, ("1",)),), [passage("1", source)], "en", equal_weights)
        assert [(s.citations, s.check) for s in found.spans] == [((), "unconfirmed")]
    # A source may hold the character itself.
    whole = "Alpha b\ufffdta gamma delta."
    assert verify((Span(whole, ("1",)),), [passage("1", whole)], "en", equal_weights).spans[0].check == "confirmed"


@pytest.mark.parametrize(
    ("text", "outcome", "decides"),
    [
        (PORTS, "supports", "1"),
        (PORTS.replace("8080", "9090"), "contradicts", "1"),
        ("Every penguin inherits golden bicycles from the ministry.", "silent", None),
    ],
)
def test_a_verdict_names_the_passage_that_decides(text: str, outcome: str, decides: str | None) -> None:
    verifier = Verifier([passage("1", PORTS), passage("2", ALPHA)], "en", equal_weights)
    (sentence,) = split(text)
    verdict = verifier.verdict(verifier.check(sentence, ("1", "2")))
    assert (verdict.outcome, verdict.id, verdict.is_claim) == (outcome, decides, True)
    assert verdict.quote == (PORTS if decides else "")


def test_a_sentence_has_the_citations_of_its_words_and_not_of_the_space_between_them() -> None:
    spans = [Span("Alpha beta", ("1",)), Span(" ", ("2",)), Span("gamma.", ("3",)), Span(" Delta.", ("4",))]
    cited = [(sentence.plain_text, ids) for sentence, ids in sentences_with_ids(spans)]
    assert cited == [("Alpha beta gamma.", ("1", "3")), ("Delta.", ("4",))]


def test_confidence_is_the_mean_over_what_claims_something() -> None:
    quote, lie = "Alpha beta gamma delta.", "Every penguin inherits golden bicycles from the ministry."
    one, other = confidence(quote, ALPHA), confidence(lie, ALPHA)
    assert other < 0.4 < one
    assert confidence(f"{quote} {lie}", ALPHA) == pytest.approx((one + other) / 2)
    assert confidence(f"Here are the steps:\n\n{quote}", ALPHA) == pytest.approx(one)


@pytest.mark.parametrize("text", ["", "Yes.", "Of the and.", "\n\n**"])
def test_what_says_nothing_has_no_confidence(text: str) -> None:
    assert confidence(text, ALPHA) == 0.0


def test_headings_and_marks_around_a_sentence_do_not_count_against_it() -> None:
    source = passage("1", "- Set the port.\n\n## Why it matters", ("Server", "Port of call"))
    span = Span("**Server › Port of call**\n\n> - Set the port.", ("1",))
    assert verify((span,), [source], "en", equal_weights).confidence > 0.95


@pytest.mark.parametrize(
    ("mutated", "cited"),
    [
        (PORTS, True),
        ("On port 8080 the server listens, unless `QUILL_PORT` names another.", True),
        (PORTS.replace("8080", "9090"), False),
        (PORTS.replace("8080", "80"), False),
        (PORTS.replace("QUILL_PORT", "QUILL_HOST"), False),
        ("Seven golden bicycles await every penguin.", False),
    ],
)
def test_a_mutation_loses_the_citation_and_confidence(mutated: str, cited: bool) -> None:
    sources = [passage("1", PORTS)]
    found = verify((Span(mutated, ("1",)),), sources, "en", equal_weights)
    assert (found.spans[0].citations, found.dropped) == ((("1",), 0) if cited else ((), 1))
    true = verify((Span(PORTS, ("1",)),), sources, "en", equal_weights)
    assert mutated == PORTS or found.confidence < true.confidence


def test_a_sentence_too_short_to_weigh_is_cited_only_to_the_letter() -> None:
    sources = [passage("1", f"{ALPHA} Yes, always.")]
    found = verify((Span("Certainly! ", ("1",)), Span("Yes, always.", ("1", "2"))), sources, "en", equal_weights)
    assert [(s.text, s.citations) for s in found.spans] == [("Certainly! ", ()), ("Yes, always.", ("1",))]
    assert (found.dropped, found.unsupported_count) == (2, 0)


def test_a_citation_is_kept_once() -> None:
    found = verify((Span(ALPHA, ("1", "1")),), [passage("1", ALPHA)], "en", equal_weights)
    assert found.spans[0].citations == ("1",)


def test_a_citation_moves_to_the_best_passage_that_holds() -> None:
    sources = [passage("1", "Nothing of the kind."), passage("2", ALPHA), passage("3", ALPHA)]
    found = verify((Span(ALPHA, ("1",)),), sources, "en", equal_weights)
    assert (found.spans[0].citations, found.dropped) == (("2",), 1)


def test_uncited_text_is_measured_and_our_own_framing_is_not() -> None:
    sources = [passage("1", ALPHA)]
    lie = "Several golden bicycles await every penguin. "
    prose = verify((Span(lie), Span(ALPHA, ("1",))), sources, "en", equal_weights)
    framed = verify((Span(lie, kind="framing"), Span(ALPHA, ("1",))), sources, "en", equal_weights)
    assert prose.confidence < 0.75 < 0.99 < framed.confidence


def test_the_text_of_a_draft_is_never_changed() -> None:
    draft = (Span(" a\n"), Span(ALPHA, ("9",)), Span("\t"))
    found = verify(draft, [passage("1", ALPHA)], "en", equal_weights)
    assert "".join(s.text for s in found.spans) == "".join(s.text for s in draft)


@given(st.lists(st.tuples(st.text("aB.!?\n `|-*#1", max_size=12), st.booleans(), st.booleans()), max_size=8))
def test_texts_stay_whatever_they_hold(pieces: list[tuple[str, bool, bool]]) -> None:
    draft = tuple(
        Span(text, ("1",) if cited else (), kind="framing" if framing else "prose") for text, cited, framing in pieces
    )
    found = verify(draft, [passage("1", ALPHA)], "en", equal_weights)
    assert "".join(s.text for s in found.spans) == "".join(s.text for s in draft)
    assert "".join(s.text for s in found.spans if s.kind == "framing") == "".join(
        s.text for s in draft if s.kind == "framing"
    )


def test_a_part_of_a_word_is_no_quote() -> None:
    assert confidence("able runners win", "Enable runners winning races.") < 0.99


CACHE = "The cache lives in `.quill/cache`. Clearing it while a build runs makes that build fail."
PLUGIN = "A plugin gets the page as JSON and must answer within five seconds. It may use 200 MB."


def checked(*spans: Span, sources: tuple[str, ...] = (CACHE, PLUGIN), language: str = "en") -> VerifiedDraft:
    return verify(spans, [passage(str(i), text) for i, text in enumerate(sources, 1)], language, equal_weights)


def cites(text: str, *cited: str, sources: tuple[str, ...] = (CACHE, PLUGIN), language: str = "en") -> list[str]:
    return [i for s in checked(Span(text, cited), sources=sources, language=language).spans for i in s.citations]


@pytest.mark.parametrize(
    ("text", "source"), [("Good luck!", "Good luck!"), ("---", "--- and more"), ("Of the.", "Of the.")]
)
def test_what_says_nothing_has_no_source_though_one_holds_it(text: str, source: str) -> None:
    (found,) = checked(Span(text, ("1",)), sources=(source,)).checks
    assert (found.citations, found.outcome, found.dropped, found.is_claim) == ((), None, 1, False)


def test_ids_are_cited_for_a_sentence_by_what_they_stand_at_but_blanks() -> None:
    spans = (
        Span("\n", ("9",)),
        Span("The cache lives. ", ("1",)),
        Span("It is", ("2", "1")),
        Span(" old", ()),
        Span(".", ("3", "2")),
        Span(" ", ("8",)),
        Span("Go.", ()),
    )
    found = [(one.plain_text, ids) for one, ids in sentences_with_ids(spans)]
    assert found == [("The cache lives.", ("1",)), ("It is old.", ("2", "1", "3")), ("Go.", ())]


WHO = "I run Quill on two old servers of the press."


@pytest.mark.parametrize(
    ("context", "said", "is_claim"),
    [
        ("", "You run Quill on two old servers.", True),
        (" ", "You run Quill on two old servers.", True),
        (WHO, "You run Quill on two old servers.", False),
        (WHO, "You run Quill on nine old servers.", True),
        ("", "X.", True),
    ],
)
def test_what_repeats_the_readers_own_words_is_no_claim(context: str, said: str, is_claim: bool) -> None:
    verifier = Verifier([passage("1", PORTS)], "en", equal_weights, context=context)
    (sentence,) = split(said)
    found = verifier.check(sentence, ())
    assert (found.is_claim, found.citations, found.is_unsupported) == (is_claim, (), is_claim)
    assert verifier.to_result([]).claim_count == int(is_claim)
    # Nor is one whose citation a second vote takes away.
    if not context:
        return
    again = Verifier([passage("1", said)], "en", equal_weights, context=context)
    found = again.check(sentence, ("1",))
    assert (found.citations, found.dropped) == (("1",), 0)
    again.reject(found)
    assert (found.check, found.dropped) == ("unconfirmed" if is_claim else "none", 1)


def test_a_sentence_is_told_with_all_that_was_found_of_it() -> None:
    verifier = Verifier([passage("1", PORTS), passage("2", ALPHA)], "en", equal_weights)
    told = []
    for text, ids in ((PORTS, ("1", "2", "9")), (PORTS.replace("8080", "9090"), ("1",)), ("Good luck!", ())):
        (sentence,) = split(text)
        told.append(verifier.check(sentence, ids))
    verdicts = [verifier.verdict(one) for one in told]
    assert [one.as_json() | {"probability": None} for one in told] == [
        {
            "text": text, "claimed": claimed, "citations": citations, "check": check, "outcome": outcome,
            "probability": None,
        }
        for text, claimed, citations, check, outcome in (
            (PORTS, ("1", "2", "9"), ("1",), "confirmed", "supports"),
            (PORTS.replace("8080", "9090"), ("1",), (), "unconfirmed", "contradicts"),
            ("Good luck!", (), (), "none", None),
        )
    ]  # fmt: skip
    assert [one.dropped for one in told] == [2, 1, 0]
    sure, unsure, none = (one.probability for one in told)
    assert sure is not None
    assert unsure is not None
    assert sure > 0.99
    assert 0 < unsure < 0.5
    assert none is None
    assert [(v.outcome, v.is_claim, v.id, v.quote) for v in verdicts] == [
        ("supports", True, "1", PORTS),
        ("contradicts", True, "1", PORTS),
        ("silent", False, None, ""),
    ]
    assert [v.probability for v in verdicts] == [sure, unsure, 0.0]
    result = verifier.to_result([])
    assert (result.dropped, result.unsupported_count, result.claim_count) == (3, 1, 2)
    assert result.confidence == pytest.approx((sure + unsure) / 2)
    assert (result.leaves_open, result.cited) == (False, False)


def test_what_claims_nothing_counts_as_a_claim_if_a_source_holds_it() -> None:
    for source, count in (("The port of the server is 8080.", 1), (ALPHA, 0)):
        found = checked(Span("## The port of the server", ("1",)), sources=(source,))
        assert ([c.is_claim for c in found.checks], found.claim_count, found.cited) == ([False], count, bool(count))
        assert (found.confidence > 0.4) is bool(count)


def test_a_result_without_a_claim_has_no_confidence() -> None:
    assert Verifier([], "en", equal_weights).to_result([]).confidence == 0.0


def test_a_sentence_over_several_spans_is_one_claim() -> None:
    spans = (Span("The cache "), Span("lives in ", ("1",)), Span("`.quill/cache`", ("1",)), Span(". "))
    found = checked(*spans, Span("A plugin gets ", ("2",)), Span("the page as JSON."))
    assert [(s.text, s.citations) for s in found.spans] == [
        ("The cache lives in `.quill/cache`. ", ("1",)),
        ("A plugin gets the page as JSON.", ("2",)),
    ]
    assert (found.dropped, found.unsupported_count) == (0, 0)


def test_a_lie_beside_the_truth_in_one_span_stands_alone() -> None:
    found = checked(Span("The cache lives in `.quill/cache`. Every penguin inherits golden bicycles.", ("1",)))
    assert [s.citations for s in found.spans] == [("1",), ()]
    assert (found.dropped, found.unsupported_count) == (1, 1)


def test_two_passages_may_carry_a_sentence_between_them_if_each_adds_to_it() -> None:
    both = "The cache lives in `.quill/cache`, and a plugin must answer within five seconds."
    assert cites(both, "1", "2") == ["1", "2"]
    assert cites(both.replace("five", "nine"), "1", "2") == []
    assert cites(both, "1") == []
    # The second says nothing that the first doesn't.
    assert cites(both, "1", "3", sources=(CACHE, PLUGIN, "A cache.")) == []


def test_a_citation_that_the_generator_does_not_give_needs_more() -> None:
    source = ("Alpha beta gamma delta epsilon zeta.",)
    assert cites("Alpha beta gamma with omega psi.", "1", sources=source) == ["1"]
    assert cites("Alpha, omega, beta, psi, gamma, chi and rho.", "1", sources=source) == ["1"]
    assert cites("Alpha, omega, beta, psi, gamma, chi and rho.", sources=source) == []
    assert cites("Alpha, omega, beta, psi, chi, rho and tau.", "1", sources=source) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Here are the steps:", 0),
        ("## Setting up a turtle farm", 0),
        ("**Turtle farms and their fences**", 0),
        ("Does your turtle farm have fences?", 0),
        ("Good luck!", 0),
        ("The documentation does not say how turtles are fed.", 0),
        ("---", 0),
        ("Turtles need fences around their farm.", 1),
        ("The port is 9999:", 1),
        ("Use `--turtle`.", 1),
        ("```sh\nturtle feed --all\n```", 1),
        ("- Turtles need fences.\n- Penguins inherit golden bicycles.", 2),
    ],
)
def test_what_claims_something_without_a_source_is_counted(text: str, count: int) -> None:
    assert checked(Span(text)).unsupported_count == count


@pytest.mark.parametrize(
    ("code", "cited"),
    [
        ("quill deploy --to 41", True),
        ("$ quill deploy --to 41", True),
        ("quill deploy --to 41\n# a comment", False),
        ("quill cache clean\nquill deploy --to 41", True),
        ("quill deploy --to 42", False),
        ("quill cache clean\nrm -rf /", False),
        ("quill deploy clean", False),
    ],
)
def test_each_line_of_code_must_stand_in_the_source(code: str, cited: bool) -> None:
    source = ("Run:\n\n```sh\nquill cache clean\n```\n\nthen `quill deploy --to 41`.",)
    assert cites(f"```sh\n{code}\n```", "1", sources=source) == (["1"] if cited else [])


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("It answers within 5 seconds.", "It answers within five seconds."),
        ("It answers within five seconds.", "It answers within 5 s."),
        ("At most 128000 tokens are read.", "It reads 128,000 tokens at most."),
        ("The discount may be -5 percent today.", "The discount may be -5% today."),
        ("A build needs Go 1.22 or newer.", "For a build, Go v1.22 or newer is needed."),
        ("Half of it, 0.5, is kept warm.", "Of it .5 is kept warm, half of it."),
        ("Use `QUILL_HOME` with --dry-run for fooBar.", "`QUILL_HOME` and `--dry-run` serve to use `fooBar`."),
    ],
)
def test_numbers_and_names_may_be_written_otherwise(said: str, source: str) -> None:
    assert cites(said, "1", sources=(source,)) == ["1"]


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("It answers within 6 seconds.", "It answers within five seconds."),
        ("It answers within five minutes.", "It answers within five seconds."),
        ("The port listens on 808.", "The port listens on 8080."),
        ("A build needs Go 1.2 or newer.", "A build needs Go 1.22 or newer."),
        ("A build needs Go 1.22 or newer.", "A build needs Go 1.22.3 or newer."),
        ("Use `--dry` to see the plan.", "Use `--dry-run` to see the plan."),
        ("Use `quill.yml` to set colors.", "Use `quill.toml` to set colors."),
        ("Set `QUILL_HOME` to change the folder.", "Set `QUILL_HOMES` to change the folder."),
    ],
)
def test_another_number_or_name_is_another_claim(said: str, source: str) -> None:
    assert cites(said, "1", sources=(source,)) == []


@pytest.mark.parametrize(
    ("language", "said", "source"),
    [
        ("en", "The cache is not removed by a build.", "The cache is removed by a build."),
        ("en", "The cache is removed by a build.", "The cache is never removed by a build."),
        ("en", "The cache doesn't need a folder.", "The cache needs a folder."),
        ("en", "Logging is enabled for every build.", "Logging is disabled for every build."),
        ("en", "Run the check after each deployment.", "Run the check before each deployment."),
        ("en", "The field `name` is required in requests.", "The field `name` is optional in requests."),
        ("en", "The limit is the maximum of the values.", "The limit is the minimum of the values."),
        ("de", "Der Cache wird vom Build nicht gelöscht.", "Der Cache wird vom Build gelöscht."),
        ("de", "Ein Konto wird für den Dienst benötigt.", "Für den Dienst wird kein Konto benötigt."),
        ("fr", "Le cache n'est pas supprimé par la construction.", "Le cache est supprimé par la construction."),
        ("es", "La caché no se elimina durante la compilación.", "La caché se elimina durante la compilación."),
    ],
)
def test_the_opposite_is_not_carried(language: str, said: str, source: str) -> None:
    assert cites(source, "1", sources=(source,), language=language) == ["1"]
    assert cites(said, "1", sources=(source,), language=language) == []


@pytest.mark.parametrize("language", ["ja", "zh", "ar", "pt-BR", ""])
def test_other_languages_are_checked_without_their_negations(language: str) -> None:
    assert cites("Der Port 8080 gilt immer.", "1", sources=("Immer gilt der Port 8080.",), language=language) == ["1"]
    assert cites("Der Port 8081 gilt immer.", "1", sources=("Immer gilt der Port 8080.",), language=language) == []


@pytest.mark.parametrize(
    ("said", "source"),
    [
        ("No key, account or server is needed.", "It needs no key, no account, no server."),
        ("Without a name, the default model is taken.", "The default model is taken without a name."),
    ],
)
def test_the_same_may_be_denied_in_other_words(said: str, source: str) -> None:
    assert cites(said, "1", sources=(source,)) == ["1"]


def test_a_draft_that_was_cut_stays_marked() -> None:
    found = checked(Span("The cache lives in `.quill/cache`. ", ("1",)), Span("A plugin gets", cut=True))
    assert [s.cut for s in found.spans] == [False, True]


def test_an_answer_of_nothing_but_lies_is_below_the_floor() -> None:
    assert checked(Span("Every penguin inherits golden bicycles from the ministry.", ("1",))).confidence < 0.4
    assert checked(Span("The cache lives in `.quill/cache`.", ("1",))).confidence > 0.4


@pytest.mark.parametrize("unit", ["a", "a.b", "`", "1.", "\n", "a_", "*", "`1 ", "12 34 ", "a_b ", "%41"])
def test_hostile_text_takes_linear_time(unit: str) -> None:
    def work(size: int) -> None:
        text = unit * (size // len(unit))
        verify((Span(text, ("1",)),), [passage("1", text[1:])], "en", equal_weights)

    assert_linear(work, 5_000, 40_000)


def test_a_line_of_blanks_behind_a_heading_takes_linear_time() -> None:
    def work(size: int) -> None:
        verify((Span(f"# {' ' * size}\nx", ("1",)),), [passage("1", PORTS)], "en", equal_weights)

    assert_linear(work, 2_000, 16_000)


def test_a_sentence_of_nothing_but_numbers_is_carried_by_nobody() -> None:
    halves = " ".join(map(str, range(100, 140))), " ".join(map(str, range(140, 180)))
    assert cites(" ".join(halves), "1", "2", sources=halves) == []
    assert cites(" ".join((*halves, "999")), "1", "2", sources=halves) == []
    assert cites(halves[0], "1", sources=halves) == ["1"]


def test_a_second_vote_is_asked_about_what_is_undecided_alone_and_takes_away() -> None:
    sources = [
        passage("1", "- `quill cache clean` removes every entry.\n- `quill cache size` prints its size.", ("Cache",))
    ]
    doubtful, asked = "Use `quill cache clean` to empty the whole cache.", list[tuple[str, str]]()

    def against(document: str, claim: str) -> bool:
        asked.append((document, claim))
        return False

    draft = tuple(
        Span(f"{text}\n\n", ("1",))
        for text in (doubtful, "`quill cache clean` removes every entry.", "It never snows.")
    )
    before, after = (
        verify(draft, sources, "en", equal_weights),
        verify(draft, sources, "en", equal_weights, supports=against),
    )
    assert asked == [(f"Cache\n\n{sources[0].section}", doubtful)]
    assert [c.check for c in before.checks] == ["confirmed", "confirmed", "unconfirmed"]
    assert [c.check for c in after.checks] == ["unconfirmed", "confirmed", "unconfirmed"]
    assert (after.checks[0].outcome, after.checks[0].probability, after.dropped) == ("silent", 0.0, before.dropped + 1)
    assert verify(draft, sources, "en", equal_weights, supports=lambda *_: True) == before


TYPER = "Quill supports commands and subcommands. Commands are plain functions, and each takes options."


def answered(question: str, said: str, *, synonym: str = "") -> bool:
    """Whether an answer to a question is cited."""
    words = tuple((word.terms,) for word in lexical.question_words(question, ["en"]))
    synonyms = tuple(Synonym((n,), 1.0, lexical.hash_term(synonym), 1.0) for n in range(len(words) if synonym else 0))
    source = replace(passage("1", TYPER, ("Commands",)), url="https://docs.quill.example.com/commands/")
    request = GenerationRequest(question, WeightedQuestion(words, synonyms=synonyms), (source,), "en")
    segments = Segments(request, equal_weights)
    list(segments.read(Span(said, ("1",))))
    list(segments.end())
    return segments.verified.cited


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Does Quill support async commands?", "Quill supports async commands."),
        ("Are the commands of Quill asynchronous or async?", "Each command is an async function and takes options."),
        ("async?", "Quill commands are async functions."),
    ],
)
def test_a_subject_that_no_source_has_is_unconfirmed(question: str, said: str) -> None:
    assert answered("Which commands are there?", said)
    assert not answered(question, said)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("Does Quill support nested subcommands?", "Quill supports subcommands."),
        ("What is a subcommand in quill.example.com?", "Quill supports subcommands."),
        ("Are supporting functions plain?", "Commands are plain functions."),
        ("How do I use command parameters?", "Each command takes options."),
        ("Does Quill support async commands?", "Commands are plain functions, so each takes async options."),
    ],
)
def test_a_word_of_the_question_counts_only_if_an_answer_is_about_it(question: str, said: str) -> None:
    assert answered(question, said)


def test_a_subject_is_known_by_a_synonym() -> None:
    question, said = "Which switches does a command take?", "Commands take switches as plain options."
    assert not answered(question, said)
    assert answered(question, said, synonym="option")


@pytest.mark.parametrize(("code", "ids"), [("quill cache clean", ("1",)), ("quill cache nuke", ())])
def test_what_announces_code_leaves_its_citation_to_it(code: str, ids: tuple[str, ...]) -> None:
    source = "To empty the cache, run this:\n\n```sh\nquill cache clean\n```"
    found = checked(Span(f"To empty the cache, run this:\n\n```sh\n{code}\n```", ("1",)), sources=(source,))
    assert [s.citations for s in found.spans] == [(), ids]
    assert found.dropped == (0 if ids else 1)


def quote(text: str, *ids: str, mark: str | None = None) -> Span:
    return Span(text, ids or ("1",), kind="quote", mark=mark)


def test_lines_of_the_cited_section_in_order_are_a_quote() -> None:
    for text in (SECTION, "They stop.\n\n- Two.\n\n… 2 more in [Tea](x)", "```sh\nrun\n```\n\n… 1 more in *Tea*"):
        assert is_verbatim(quote(text), [PASSAGE])


def test_other_words_another_order_or_another_source_are_none() -> None:
    for text in ("Teapots sing when cold.", "- Two.\n- One.", "- One.\n- Four.", "", " \n"):
        assert not is_verbatim(quote(text), [PASSAGE])
    assert not is_verbatim(quote("They stop.", "2"), [PASSAGE])
    assert not is_verbatim(quote("They stop.", "1", "2"), [PASSAGE])


def test_a_quote_stays_whole_with_its_citation_its_kind_and_its_mark() -> None:
    spans = (Span("**Tea**\n\n", kind="framing"), quote(SECTION, mark="- Two."))
    verified = verify(spans, [PASSAGE], "en", lambda _: {})
    assert verified.spans == (spans[0], replace(spans[1], check="confirmed"))
    assert (verified.confidence, verified.claim_count, verified.unsupported_count, verified.dropped) == (1.0, 1, 0, 0)
    assert [one.is_claim for one in verified.checks] == [True]


@pytest.mark.parametrize("mark", ["They sing.", None])
def test_a_mark_that_is_no_part_of_the_quote_is_dropped(mark: str | None) -> None:
    (span,) = verify((quote("They stop.", mark=mark),), [PASSAGE], "en", lambda _: {}).spans
    assert (span.kind, span.mark) == ("quote", None)


def test_what_is_no_quote_is_checked_like_any_sentence() -> None:
    (span,) = verify((quote("Kettles whistle at 90 degrees.", mark="90"),), [PASSAGE], "en", lambda _: {}).spans
    assert (span.kind, span.citations, span.mark) == ("prose", (), None)
