"""The pipeline over a real index, with generators that tell the truth, lie, or fail."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator, Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from api import quill
from api.quill import ask
from chapterverse.errors import InputError, ProviderError
from chapterverse.settings import Settings
from chapterverse_api import phrases
from chapterverse_api.contract import ChatQuery, ChatResponse, Delta, Meta, SearchedAs, Segment
from chapterverse_api.deadline import ClientDisconnected, Deadline
from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import GenerationRequest
from chapterverse_api.ext.budget.circuit_breaker import FAILURE_THRESHOLD
from chapterverse_api.service import Service

QUESTION = "How do I clear the cache?"
TRUE = "`quill cache clean` removes every entry."
FOREIGN = "Every penguin inherits seven golden bicycles from the ministry."


class ScriptedGenerator:
    """A generator that writes fixed spans for every request."""

    name = "scripted"

    def __init__(self, *spans: Span, breaks: int | None = None) -> None:
        self.requests: list[GenerationRequest] = []
        self._spans = spans
        self._breaks = breaks

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        self.requests.append(request)
        for i, span in enumerate(self._spans):
            if i == self._breaks:
                raise ProviderError("The model broke off.", retryable=True)
            yield span
        if self._breaks is not None:
            raise ProviderError("The model broke off.", retryable=True)


@pytest.fixture
def service(index: Path) -> Service:
    return quill.service(Settings(store=f"edge:{index}"))


def told(index: Path, *spans: Span, breaks: int | None = None) -> tuple[Service, ScriptedGenerator]:
    generator = ScriptedGenerator(*spans, breaks=breaks)
    return quill.service(Settings(store=f"edge:{index}"), generator=generator), generator


def drafted(service: Service, query: str) -> tuple[str, ChatResponse]:
    """Return the deltas of an answer, joined, and its last event."""
    events = list(service.chat(ChatQuery(query=query)))
    last = events[-1]
    assert isinstance(last, ChatResponse)
    return "".join(e.text for e in events if isinstance(e, Delta)), last


def test_an_answer_quotes_the_section_and_cites_it(service: Service) -> None:
    answer = ask(service, QUESTION)
    assert answer.status == "answered"
    assert (answer.mode, answer.retrieval_used, answer.degraded_reason) == ("rag", True, None)
    assert "- `quill cache clean` removes every entry." in answer.response
    assert answer.sources_cited == ["https://quill.example.com/docs/cache/#clearing-the-cache"]
    best = answer.source_chunks[0]
    assert (best.chapter, best.section) == ("Caching", "Clearing the cache")
    assert 0.35 < answer.grounding_confidence < 1
    assert answer.nearest == []


def test_what_is_cited_stands_first_among_the_sources(service: Service) -> None:
    answer = ask(service, "How do I install Quill?")
    cited = {i for segment in answer.segments for i in segment.citations}
    uses = [source.id in cited for source in answer.source_chunks]
    assert uses == sorted(uses, reverse=True)
    assert not all(uses)


def test_the_deltas_are_the_answer(service: Service) -> None:
    deltas, answer = drafted(service, QUESTION)
    assert deltas == answer.response


def test_every_turn_has_its_own_id_and_keeps_the_readers_thread(service: Service) -> None:
    first, second = (ask(service, QUESTION, thread_id="t-1") for _ in range(2))
    assert first.turn_id != second.turn_id
    assert first.thread_id == second.thread_id == "t-1"
    assert first.timestamp.endswith("Z")
    assert first.execution_time > 0


def test_an_uncertain_answer_is_short_quotes_that_say_so_and_where_to_look_on(service: Service) -> None:
    answer = ask(service, "nginx cache headers")
    assert (answer.status, answer.partial_reason) == ("partial", "may_help")
    assert answer.response.startswith(phrases.for_language("en").may_help)
    assert next(segment for segment in answer.segments if segment.kind == "quote").mark
    assert answer.grounding_confidence < 0.35
    assert answer.nearest[0].url == "https://quill.example.com/docs/cache/#clearing-the-cache"


def test_what_was_searched_for_is_said_where_it_is_not_the_question(service: Service) -> None:
    assert ask(service, QUESTION).searched_as is None
    corrected = ask(service, "How do I clear the cahce?").searched_as
    assert corrected == SearchedAs(
        query="How do I clear the cache?", reason="corrected", original="How do I clear the cahce?"
    )
    history = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": "So."}]
    led = ask(service, "and how is it done?", conversation_history=history)
    assert led.searched_as == SearchedAs(query=QUESTION, reason="follow_up", original="and how is it done?")
    assert led.source_chunks[0].section == "Clearing the cache"


@pytest.mark.parametrize(
    ("page", "question", "status"),
    [
        (
            '# Tool\n\nFor wood.\n\n## Chisel\n\n!!! warning "The chisel is deprecated since release 2"\n',
            "is the chisel deprecated?",
            "answered",
        ),
        ("# Tool\n\nFor wood.\n\n## frobnicate(x)\n\n**Note**\n", "frobnicate", "not_in_docs"),
    ],
)
def test_a_section_without_a_sentence_is_quoted_or_refused_and_fails_nothing(
    tmp_path: Path, page: str, question: str, status: str
) -> None:
    service = quill.service(quill.publish(tmp_path, {"tool.md": f"# Tool\n\nFor wood.\n\n{page}"}))
    for _ in range(FAILURE_THRESHOLD):
        answer = ask(service, question)
        assert (answer.status, answer.degraded_reason) == (status, None)
    assert "generator" not in service.status().degraded


def test_a_selection_of_a_whole_section_is_quoted(tmp_path: Path) -> None:
    page = "# Oil\n\nOil it.\n\n## Vinegar\n\nUse vinegar every month.\n"
    service = quill.service(quill.publish(tmp_path, {"oil.md": page}))
    answer = ask(service, "what is this?", selected_text="Use vinegar every month.")
    assert (answer.status, answer.degraded_reason) == ("answered", None)
    assert "Use vinegar every month." in answer.response


@pytest.mark.parametrize("question", ["What is the weather in Paris?", "Who won the world cup?", "zzzz", "the of and"])
def test_what_the_docs_do_not_hold_is_refused_without_asking_a_model(index: Path, question: str) -> None:
    service, generator = told(index, Span(FOREIGN, ("1",)))
    answer = ask(service, question)
    assert answer.status == "not_in_docs"
    assert (answer.source_chunks, answer.sources_cited, answer.grounding_confidence) == ([], [], 0.0)
    assert generator.requests == []


def test_a_refusal_points_to_the_nearest_pages(service: Service) -> None:
    answer = ask(service, "limit how many entries are in the rss feed")
    assert answer.status == "not_in_docs"
    assert [(n.chapter, n.section) for n in answer.nearest] == [("Caching", "Clearing the cache")]
    assert answer.response == phrases.for_language("en").refused


def test_a_model_may_answer_in_its_own_words(index: Path) -> None:
    spans = (Span("The command `quill cache clean` removes every entry.", ("1",)), Span(" Good luck!"))
    service, generator = told(index, *spans)
    answer = ask(service, QUESTION)
    assert answer.status == "answered"
    assert [s.citations for s in answer.segments] == [["1"], []]
    assert answer.response == "The command `quill cache clean` removes every entry. Good luck!"
    assert 0.9 < answer.grounding_confidence < 0.995
    assert [p.id for p in generator.requests[0].passages] == ["1"]


def test_ids_that_were_never_sent_are_dropped(index: Path) -> None:
    service, _ = told(index, Span(TRUE, ("1", "7", "../1", "")))
    assert [s.citations for s in ask(service, QUESTION).segments] == [["1"]]


def test_an_answer_of_invented_citations_alone_moves_to_what_holds_it(index: Path) -> None:
    service, _ = told(index, Span(TRUE, ("99",)))
    assert [s.citations for s in ask(service, QUESTION).segments] == [["1"]]


def test_foreign_text_under_a_true_id_is_no_answer(index: Path) -> None:
    service, _ = told(index, Span(FOREIGN, ("1",)))
    answer = ask(service, QUESTION)
    assert answer.status == "not_in_docs"
    assert "penguin" not in answer.response
    assert answer.nearest[0].section == "Clearing the cache"


def test_foreign_text_beside_a_true_sentence_costs_confidence(index: Path) -> None:
    honest = ask(told(index, Span(TRUE, ("1",)))[0], QUESTION)
    for citations in ((), ("1",)):
        lying = ask(told(index, Span(TRUE, ("1",)), Span(f" {FOREIGN}", citations))[0], QUESTION)
        assert [s.citations for s in lying.segments] == [["1"], []]
        assert lying.grounding_confidence < 0.9 < honest.grounding_confidence


def test_a_citation_of_the_wrong_passage_moves_to_the_right_one(index: Path) -> None:
    question = "How do I install Quill?"
    service, generator = told(index, Span("Clone the repository and remove the binary.", ("1",)))
    ask(service, question)
    wrong = next(p.id for p in generator.requests[0].passages if "brew" in p.text)
    right = next(p.id for p in generator.requests[0].passages if "binary" in p.text)
    service, _ = told(index, Span("Remove the binary and the folder `~/.quill`.", (wrong,)))
    assert [s.citations for s in ask(service, question).segments] == [[right]]


def test_a_changed_number_loses_its_citation(index: Path) -> None:
    question = "How do I roll back a deployment?"
    true = "`quill deploy --to 41` makes deployment 41 live again, within 30 days."
    assert ask(told(index, Span(true, ("1",)))[0], question).status == "answered"
    changed = ask(told(index, Span(true.replace("30", "90"), ("1",)))[0], question)
    assert changed.status == "not_in_docs"


@pytest.mark.parametrize(
    "text",
    [
        f"{TRUE} See https://evil.example.net/login for more.",
        f"{TRUE} See [the guide](https://evil.example.net/cache).",
        f"{TRUE} See //evil.example.net/cache and www.evil.example.net now.",
        f"{TRUE} ![x](https://evil.example.net/?q=secret)",
    ],
)
def test_an_address_that_was_not_sent_never_leaves(index: Path, text: str) -> None:
    # Letter by letter, as a model may well stream it.
    service, _ = told(index, *(Span(letter) for letter in text), Span(f" {TRUE}", ("1",)))
    events = [e.model_dump_json() for e in service.chat(ChatQuery(query=QUESTION))]
    assert len(events) >= 3
    assert "evil" not in "".join(events)
    deltas, answer = drafted(service, QUESTION)
    assert deltas == answer.response


def test_a_model_that_is_down_is_replaced_by_quotes(index: Path) -> None:
    service, _ = told(index, breaks=0)
    deltas, answer = drafted(service, QUESTION)
    assert answer.status == "degraded"
    assert answer.degraded_reason == "The answer is quoted, since the model failed."
    assert deltas == answer.response
    assert "`quill cache clean` removes every entry" in answer.response


def test_a_model_that_breaks_off_leaves_no_half_sentence_in_the_answer(index: Path) -> None:
    service, _ = told(index, Span("One begins by "), Span("never"), breaks=1)
    deltas, answer = drafted(service, QUESTION)
    assert answer.status == "degraded"
    assert deltas.endswith(answer.response)
    assert "One begins" not in answer.response


def test_a_model_that_says_nothing_is_replaced_by_quotes(index: Path) -> None:
    for said in ((), (Span("", ("1",)),), (Span("[1] \n"),), (Span("<think>Hm."),)):
        assert (
            ask(told(index, *said)[0], QUESTION).degraded_reason
            == "The answer is quoted, since the model gives none to this question."
        )


def test_a_model_that_says_that_the_docs_say_nothing_is_a_refusal(index: Path) -> None:
    for words in ("NOT_IN_DOCS", "**NOT_IN_DOCS.**", "NOT_IN_DOCS\n\nThe sources don't say that."):
        service, generator = told(index, *(Span(letter) for letter in words))
        deltas, answer = drafted(service, QUESTION)
        assert (answer.status, deltas) == ("not_in_docs", "")
        assert answer.nearest[0].section == "Clearing the cache"
        assert len(generator.requests) == 1


def test_what_no_source_carries_is_shown_as_such(index: Path) -> None:
    service, _ = told(index, Span(TRUE, ("1",)), *(Span(f" {FOREIGN}", ("1",)) for _ in range(4)))
    answer = ask(service, QUESTION)
    assert (answer.status, answer.grounding_confidence < 0.4) == ("partial", True)
    assert [s.check for s in answer.segments] == ["confirmed", *["unconfirmed"] * 4]


def test_what_the_reader_told_claims_nothing(index: Path) -> None:
    fact = "You run Quill on three laptops with Debian."
    spans = (Span(f"{TRUE} ", ("1",)), Span(f"{fact} "), Span(FOREIGN))
    for told_of, checks in ((fact, ["confirmed", "none", "unconfirmed"]), (None, ["confirmed", *["unconfirmed"] * 2])):
        answer = ask(told(index, *spans)[0], QUESTION, user_context=told_of and f"I like cats. {told_of}")
        assert [s.check for s in answer.segments] == checks
        assert all(not s.citations for s in answer.segments[1:])


def test_nothing_is_shown_of_a_short_answer_that_no_source_carries(index: Path) -> None:
    service, _ = told(index, Span(f"Here is how: {FOREIGN}\n\n", ("1",)), Span(f"{FOREIGN[:-1]}, too."))
    assert drafted(service, QUESTION)[0] == ""
    service, _ = told(index, *(Span(f"{FOREIGN} ") for _ in range(3)))
    deltas, answer = drafted(service, QUESTION)
    # A longer one is shown, and its end says what it is.
    assert (answer.status, answer.sources_cited) == ("not_in_docs", [])
    assert deltas == answer.response == f"{FOREIGN} " * 3 + f"\n\n{phrases.for_language('en').refused}"
    assert answer.nearest


def test_a_late_refusal_keeps_what_was_shown(index: Path) -> None:
    service, _ = told(index, Span(f"{TRUE}\n\n", ("1",)), Span("NOT_IN_DOCS"), Span(" and so on. And so on."))
    assert ask(service, QUESTION).status == "answered"
    service, _ = told(index, Span(f"{TRUE}\n\n", ("1",)), Span("NOT_IN_DOCS\n\n"), Span("And so on."))
    deltas, answer = drafted(service, QUESTION)
    assert answer.status == "not_in_docs"
    assert deltas == answer.response == f"{TRUE}\n\n\n\n{phrases.for_language('en').refused}"
    assert answer.segments[0].citations == ["1"]


def test_a_late_failure_keeps_what_was_shown(index: Path) -> None:
    service, _ = told(index, Span(f"{TRUE} One begins", ("1",)), Span("never"), breaks=1)
    deltas, answer = drafted(service, QUESTION)
    assert deltas == answer.response == f"{TRUE} "
    assert (answer.status, answer.degraded_reason) == ("degraded", "The answer ends early, since the model failed.")


def test_a_sentence_that_never_ends_is_cut_behind_a_word(index: Path) -> None:
    closed = []

    class Endless:
        name = "endless"

        def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
            try:
                yield Span(f"{TRUE} ", ("1",))
                while True:
                    yield Span("and so on https://evil.example.net")
            finally:
                closed.append(True)

    answer = ask(quill.service(Settings(store=f"edge:{index}"), generator=Endless()), QUESTION)
    assert answer.status == "partial"
    assert answer.response.endswith(phrases.for_language("en").cut)
    assert 1_500 > len(answer.response) > 500
    assert "evil" not in answer.model_dump_json()
    assert closed == [True]


def test_a_block_of_code_that_is_cut_is_closed(index: Path) -> None:
    service, _ = told(index, Span(f"{TRUE}\n\n```sh\nquill cache clean\nquill cac", ("1",), cut=True))
    assert ask(service, QUESTION).response.endswith(f"\n```\n\n{phrases.for_language('en').cut}")
    code = "```sh\n" + "quill cache clean\n" * 1_000
    service, _ = told(index, Span(f"{TRUE}\n\n{code}", ("1",)), Span("More."))
    answer = ask(service, QUESTION)
    assert answer.response.endswith(f"quill cache clean\n\n```\n\n{phrases.for_language('en').cut}")
    assert len(answer.response) < 8_200


def test_thoughts_are_no_part_of_the_answer(index: Path) -> None:
    for pieces in (["<thi", "nk>Hm. It is", " so. Or not.</th", "ink>", TRUE], ["Hm. Is it? ", "</think>\n", TRUE]):
        service, _ = told(index, *map(Span, pieces))
        assert ask(service, QUESTION).response == TRUE
    # Thoughts that nothing opened are known too late where there are many.
    service, _ = told(index, Span(f"{FOREIGN} {FOREIGN} {FOREIGN} So."), Span("\n</think>"), Span(TRUE))
    answer = ask(service, QUESTION)
    assert answer.response.endswith(TRUE)
    assert answer.status == "degraded"
    assert "reasoning" in (answer.degraded_reason or "")


def test_each_segment_is_sent_as_soon_as_it_is_whole(index: Path) -> None:
    written = []

    class Slow:
        name = "slow"

        def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
            for word in (f"{TRUE} {TRUE} {TRUE}").split(" "):
                written.append(word)
                yield Span(f"{word} ", ("1",))

    events = quill.service(Settings(store=f"edge:{index}"), generator=Slow()).chat(ChatQuery(query=QUESTION))
    seen = [len(written) for event in events if isinstance(event, Delta)]
    # One word behind the end of each sentence of six words.
    assert seen == [7, 13, 18]


def test_an_answer_that_was_cut_says_so(index: Path) -> None:
    service, _ = told(index, Span(f"{TRUE} `quill cache prune` removes the entries", ("1",), cut=True))
    answer = ask(service, QUESTION)
    assert answer.status == "partial"
    assert answer.response.endswith(phrases.for_language("en").cut)
    assert answer.segments[-1].citations == []


def test_a_model_that_keeps_failing_is_not_asked_any_more(index: Path) -> None:
    service, generator = told(index, breaks=0)
    answers = [ask(service, QUESTION) for _ in range(FAILURE_THRESHOLD + 2)]
    assert {a.status for a in answers} == {"degraded"}
    assert len(generator.requests) == FAILURE_THRESHOLD
    assert service.status().degraded == ["generator"]


def test_a_model_that_refuses_is_up(index: Path) -> None:
    service, _ = told(index, breaks=0)
    for _ in range(FAILURE_THRESHOLD - 1):
        ask(service, QUESTION)
    service = quill.changed(service, generator=ScriptedGenerator(Span("NOT_IN_DOCS")))
    assert ask(service, QUESTION).status == "not_in_docs"
    service = quill.changed(service, generator=ScriptedGenerator(breaks=0))
    ask(service, QUESTION)
    assert "generator" not in service.status().degraded


def test_a_reader_who_leaves_is_no_failure_of_the_model(index: Path) -> None:
    service, _ = told(index, breaks=0)
    for _ in range(FAILURE_THRESHOLD):
        deadline = Deadline()
        events = service.chat(ChatQuery(query=QUESTION), deadline=deadline)
        next(events)
        deadline.abort()
        with pytest.raises(ClientDisconnected):
            list(events)
    assert "generator" not in service.status().degraded


@pytest.mark.parametrize("page", ["https://evil.example.net/cache/", "http://quill.example.com.evil.net/docs/"])
def test_a_page_of_another_site_is_refused(service: Service, page: str) -> None:
    for fields in ({"query": QUESTION}, {"selected_text": "Kettles sing."}):
        query = ChatQuery.model_validate({**fields, "page_url": page})
        with pytest.raises(InputError, match="page_url is on another site") as caught:
            list(service.chat(query))
        assert caught.value.field == "page_url"
        assert list(service.chat(query, origins=[page]))


def test_degraded_outranks_partial_and_a_refusal_outranks_both(index: Path) -> None:
    service, _ = told(index, breaks=0)
    assert ask(service, "clear the cache of zebras").status == "degraded"
    assert ask(service, "What is the weather in Paris?").status == "not_in_docs"


def test_a_selection_is_the_only_source_of_a_model(index: Path) -> None:
    selection = "Each deployment is numbered. Deployment 41 can be made live again."
    service, _ = told(index, Span("Each deployment is numbered.", ("1",)))
    answer = ask(service, "What is numbered?", selected_text=selection, page_url=f"{quill.BASE}deploy/")
    (source,) = answer.source_chunks
    assert source.model_dump() == {
        "id": "1", "chapter": "Deploying", "section": None, "snippet": selection, "url": f"{quill.BASE}deploy/",
        "score": 1.0, "chunk_id": None,
    }  # fmt: skip
    assert (answer.mode, answer.retrieval_used, answer.status) == ("selected_text", False, "answered")
    assert answer.sources_cited == [f"{quill.BASE}deploy/"]
    assert "Each deployment is numbered." in answer.response
    assert "30 days" not in answer.response


def test_without_a_model_the_docs_are_quoted_on_a_selection_and_not_the_selection(service: Service) -> None:
    selection = "Each deployment is numbered."
    answer = ask(service, "How long?", selected_text=selection, page_url=f"{quill.BASE}deploy/")
    (quote,) = (s for s in answer.segments if s.kind == "quote")
    assert (answer.mode, answer.source_chunks[0].section) == ("rag", "Rolling back")
    assert quote.mark == "`quill deploy --to 41` makes deployment 41 live again, within 30 days."


@pytest.mark.parametrize(
    ("said", "language", "begins"),
    [
        ("thanks!", "en", False), ("Bist du ein Mensch?", "de", False), ("讲个笑话", "zh", False),
        ("Hi!", "en", True), ("?", "en", True), ("How do I begin?", "en", True),
    ],
)  # fmt: skip
def test_small_talk_gets_one_friendly_sentence_in_its_language_and_beginners_the_first_pages(
    service: Service, said: str, language: str, *, begins: bool
) -> None:
    answer = ask(service, said)
    assert (answer.status, answer.response) == ("not_in_docs", phrases.for_language(language).purpose)
    assert ([place.chapter for place in answer.nearest], answer.source_chunks) == (["Installing Quill"] * begins, [])


def test_a_refusal_is_of_the_part_of_the_docs_that_was_searched(service: Service) -> None:
    texts, question = phrases.for_language("en"), "What is the weather in Paris?"
    assert ask(service, question, filters={"source_file_path": "cache.md"}).response == texts.refused_here
    assert ask(service, question).response != texts.refused_here
    assert ask(service, "thanks!", filters={"source_file_path": "cache.md"}).response == texts.purpose


def test_the_first_quote_is_of_the_first_source_and_cites_one_section_to_the_letter(service: Service) -> None:
    answer = ask(service, QUESTION)
    crumb, quote, *_ = answer.segments
    assert (crumb.kind, crumb.text, crumb.check) == ("framing", "**Caching › Clearing the cache**\n\n", "none")
    assert (quote.kind, quote.citations, quote.check) == ("quote", [answer.source_chunks[0].id], "confirmed")
    assert quote.mark
    assert quote.mark in quote.text


def test_a_selection_without_a_question_is_explained_from_itself(service: Service) -> None:
    answer = ask(service, selected_text="Kettles sing. Their lids dance.")
    assert answer.status == "answered"
    assert answer.source_chunks[0].chapter == "Selected text"
    assert answer.source_chunks[0].url is None
    assert "Kettles sing." in answer.response


def test_a_selection_is_answered_from_without_any_index(tmp_path: Path) -> None:
    service = quill.service(Settings(store=f"edge:{tmp_path}/nothing"))
    answer = ask(service, "What do kettles do?", selected_text="Kettles sing.", page_url="https://a.example.com/")
    assert answer.status in ("answered", "partial")
    assert answer.source_chunks[0].url is None


def test_events_are_logged_in_order_and_hold_no_word_of_the_reader(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "chapterverse")
    answer = ask(service, "How do I clear the cache of my wombat?", thread_id="t-1")
    records = [json.loads(r.message) for r in caplog.records]
    assert [r["event"] for r in records] == [
        "query_received",
        *["query_state"] * 3,
        "retrieval_performed",
        "results_ranked",
        "results_filtered",
        "context_prepared",
        "response_generated",
        "response_summary",
        "query_state",
        "response_sent",
    ]
    assert {(r["turn_id"], r["thread_id"]) for r in records} == {(answer.turn_id, "t-1")}
    assert all(a["execution_time"] <= b["execution_time"] for a, b in pairwise(records))
    assert "wombat" not in caplog.text


def test_a_question_is_logged_where_the_operator_wants_to_read_it(
    index: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "chapterverse")
    service = quill.service(Settings(store=f"edge:{index}", log_questions=True))
    ask(
        service, "How do I clear the cache of my wombat?", conversation_history=[{"role": "user", "content": "penguin"}]
    )
    (asked,) = [r for r in map(json.loads, caplog.messages) if r["event"] == "query_received"]
    assert asked["question"] == "How do I clear the cache of my wombat?"
    assert "penguin" not in caplog.text


def test_the_first_event_says_what_was_found(service: Service) -> None:
    first = next(service.chat(ChatQuery(query=QUESTION)))
    assert isinstance(first, Meta)
    assert [s.section for s in first.sources] == ["Clearing the cache"]


@pytest.mark.parametrize("top_k", [1, 3])
def test_top_k_bounds_the_sources(service: Service, top_k: int) -> None:
    sources: Sequence[object] = ask(service, "QUILL_CACHE_DIR", top_k=top_k).source_chunks
    assert len(sources) == top_k


#: What only a German page tells.
ABROAD = "Wombats graben Gänge Serverraum"


@pytest.fixture(scope="module")
def bilingual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bilingual")
    wombats = "# Tierwelt\n\n## Wombats\n\nWombats graben nachts lange Gänge unter dem Serverraum."
    quill.publish(root, {**quill.PAGES, "tiere.md": wombats}, languages={"tiere.md": "de"})
    return root


@pytest.mark.parametrize("language", ["en", "en-GB"])
def test_an_answer_from_another_language_says_so_first(bilingual: Path, language: str) -> None:
    note = f"{phrases.for_language('en').other_language}\n\n"
    service = quill.service(Settings(store=f"edge:{bilingual}"))
    events = list(service.chat(ChatQuery.model_validate({"query": ABROAD, "language": language})))
    deltas = [event.text for event in events if isinstance(event, Delta)]
    answer = quill.whole(event for event in events)
    assert deltas[0] == note
    assert "".join(deltas) == answer.response
    assert answer.segments[0] == Segment(text=note, kind="framing")
    assert answer.response.count(note) == 1
    assert (answer.status, answer.sources_cited) == ("partial", [f"{quill.BASE}tiere/#wombats"])
    assert answer.grounding_confidence > 0.9
    assert answer.nearest


def test_the_note_stands_before_a_models_own_words_and_before_what_replaces_them(bilingual: Path) -> None:
    note = f"{phrases.for_language('en').other_language}\n\n"
    quote = "Wombats graben nachts lange Gänge unter dem Serverraum."
    service, generator = told(bilingual, Span(quote, ("1",)))
    answer = ask(service, ABROAD, language="en")
    assert (answer.response, answer.status) == (note + quote, "partial")
    # An answer in another language than its sources could not be checked.
    assert generator.requests[0].language == "de"
    service, _ = told(bilingual, Span("One begins by "), Span("never"), breaks=1)
    broken = ask(service, ABROAD, language="en")
    assert broken.response.startswith(note)
    assert broken.response.count(note) == 1
    assert broken.status == "degraded"
    # A note alone is no answer.
    service, _ = told(bilingual, Span(FOREIGN, ("1",)))
    assert ask(service, ABROAD, language="en").status == "not_in_docs"


def test_at_home_there_is_no_note(bilingual: Path) -> None:
    service = quill.service(Settings(store=f"edge:{bilingual}"))
    answer = ask(service, ABROAD, language="de")
    assert answer.status == "answered"
    assert phrases.for_language("de").other_language not in answer.response
