from __future__ import annotations

from dataclasses import replace

from chapterverse_api.generation.draft import Span
from chapterverse_api.generation.passage import Passage
from chapterverse_api.grounding.quotation import is_verbatim
from chapterverse_api.grounding.verifier import verify

SECTION = "Teapots sing when hot. They stop.\n\n- One.\n- Two.\n- Three.\n\n```sh\nrun\nstop\n```"
PASSAGE = Passage("1", ("Tea",), SECTION, SECTION)


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


def test_a_mark_that_is_no_part_of_the_quote_is_dropped() -> None:
    (span,) = verify((quote("They stop.", mark="They sing."),), [PASSAGE], "en", lambda _: {}).spans
    assert (span.kind, span.mark) == ("quote", None)


def test_what_is_no_quote_is_checked_like_any_sentence() -> None:
    (span,) = verify((quote("Kettles whistle at 90 degrees.", mark="90"),), [PASSAGE], "en", lambda _: {}).spans
    assert (span.kind, span.citations, span.mark) == ("prose", (), None)
