from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from api import quill
from chapterverse.errors import BudgetSpent, InputError, ProviderError
from chapterverse.filters import parse_filter
from chapterverse.settings import Settings
from chapterverse.store import Snapshot, only_scope, open_store
from chapterverse_api.index.site_index import page_of
from chapterverse_api.search.ranking import RANK_WEIGHTS
from chapterverse_api.search.results import Retrieval
from chapterverse_api.search.site_search import HYBRID_ALGORITHM, LEXICAL_ALGORITHM, SearchRequest, rerank, retrieve

#: "dwindle" stands on no page; to the embedder it means "uninstalling".
SAME = {"dwindle": "uninstalling"}


def opened(settings: Settings) -> Snapshot:
    store = open_store(settings)
    return store.snapshot(only_scope(store))


@pytest.fixture(scope="module")
def lexical(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return opened(quill.publish(tmp_path_factory.mktemp("index")))


@pytest.fixture(scope="module")
def dense(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return opened(quill.publish(tmp_path_factory.mktemp("index"), embedder=quill.Terms(SAME)))


def sections(found: Retrieval) -> list[str | None]:
    return [c.chunk.section_heading for c in found.candidates]


def test_words_alone(lexical: Snapshot) -> None:
    found = retrieve(lexical, None, SearchRequest("How do I clear the cache?"))
    assert sections(found)[0] == "Clearing the cache"
    assert (found.algorithm, found.degraded) == (LEXICAL_ALGORITHM, None)
    assert list(found.timings) == ["search", "rank", "weigh"]
    assert found.total == len(found.candidates)


def test_scores_fall_and_are_made_of_their_parts(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), SearchRequest("How do I clear the cache?"))
    scores = [c.score for c in found.candidates]
    assert scores == sorted(scores, reverse=True)
    weight = dense.head.fusion_weight
    most = 1 + sum(w for w in RANK_WEIGHTS.values() if w > 0)
    for c in found.candidates:
        fused = (1 - weight) * c.components["lexical"] + weight * c.components["dense"]
        assert c.components["fused"] == pytest.approx(fused)
        value = max(0.0, fused + sum(w * c.components[name] for name, w in RANK_WEIGHTS.items()))
        assert c.score == pytest.approx(value / most)
        assert 0 <= c.evidence <= 1
    assert found.candidates[0].components["lexical"] == 1.0
    assert max(c.components["dense"] for c in found.candidates) == 1.0


def test_meaning_finds_what_words_do_not(lexical: Snapshot, dense: Snapshot) -> None:
    assert sections(retrieve(lexical, None, SearchRequest("dwindle"))) == []
    found = retrieve(dense, quill.Terms(SAME), SearchRequest("dwindle"))
    assert sections(found)[0] == "Uninstalling"
    assert found.algorithm == HYBRID_ALGORITHM
    assert "embed" in found.timings


def test_both_sides_have_a_say(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), SearchRequest("dwindle cache"))
    assert {"Uninstalling", "Clearing the cache"} <= set(sections(found)[:4])


@pytest.mark.parametrize("question", ["caching?", "`Caching`"])
def test_a_bare_name_finds_the_opening_of_the_page_of_that_name_first(lexical: Snapshot, question: str) -> None:
    found = retrieve(lexical, None, SearchRequest(question))
    assert found.candidates[0].chunk.heading_path == ("Caching",)
    assert found.candidates[0].components["defines"] == 1.0


def test_a_comparison_finds_the_section_of_each_side_first(lexical: Snapshot) -> None:
    found = retrieve(lexical, None, SearchRequest("uninstalling vs rolling back"))
    assert sections(found)[:2] == ["Uninstalling", "Rolling back"]
    assert found.sides == {c.chunk.chunk_id for c in found.candidates[:2]}
    assert len({c.chunk.chunk_id for c in found.candidates}) == len(found.candidates)


def test_a_comparison_prefers_a_page_that_has_both_sides(lexical: Snapshot) -> None:
    found = retrieve(lexical, None, SearchRequest("cache location vs clearing the cache"))
    assert {c.chunk.source_file_path for c in found.candidates[:2]} == {"cache.md"}


def test_a_comparison_is_ranked_as_any_other_question_if_a_side_has_no_section(lexical: Snapshot) -> None:
    found = retrieve(lexical, None, SearchRequest("uninstalling vs zebras"))
    assert not found.sides
    assert [c.score for c in found.candidates] == sorted((c.score for c in found.candidates), reverse=True)


def test_evidence_is_of_words_alone_and_a_fused_rank_is_none(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), SearchRequest("dwindle"))
    assert found.candidates[0].components["fused"] == 1.0
    assert found.evidence < found.calibration.floor


def test_an_embedder_that_is_down_leaves_the_words(dense: Snapshot) -> None:
    embedder = quill.Terms(SAME)
    embedder.down = True
    found = retrieve(dense, embedder, SearchRequest("How do I clear the cache?"))
    assert sections(found)[0] == "Clearing the cache"
    assert found.algorithm == LEXICAL_ALGORITHM
    assert found.degraded == "The embedder could not be reached; only words were searched."


def test_a_search_by_vector_alone(dense: Snapshot) -> None:
    vector = quill.Terms(SAME).embed_query("dwindle")
    found = retrieve(dense, None, SearchRequest(None, vector=vector))
    assert sections(found)[0] == "Uninstalling"
    assert found.evidence == 0.0
    components = found.candidates[0].components
    assert (components["lexical"], components["dense"], components["title"]) == (0, 1, 0)
    assert components["cosine"] > 0


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        ([1.0] * 63, "The index holds vectors of 64 dimensions."),
        ([0.0] * 64, "The embedding needs finite numbers that are not all zero."),
        ([float("nan")] * 64, "The embedding needs finite numbers that are not all zero."),
        ([1.0] * 63 + [float("inf")], "The embedding needs finite numbers that are not all zero."),
        ([1.0] * 63 + [1e300], "The embedding needs finite numbers that are not all zero."),
    ],
)
def test_a_vector_that_is_none_is_refused(dense: Snapshot, vector: Sequence[float], message: str) -> None:
    with pytest.raises(InputError) as error:
        retrieve(dense, None, SearchRequest(None, vector=vector))
    assert (str(error.value), error.value.field) == (message, "embedding")


def test_a_very_small_or_large_vector_is_searched_for(dense: Snapshot) -> None:
    for size in (1e-30, 1e15):
        assert retrieve(dense, None, SearchRequest(None, vector=[size] * 64)).candidates


def test_an_index_of_words_takes_no_vector(lexical: Snapshot) -> None:
    with pytest.raises(InputError, match="The index holds no dense vectors: send a query"):
        retrieve(lexical, None, SearchRequest(None, vector=[1.0]))


@pytest.mark.parametrize("question", ["", "the of and", "!!!", "🦄", "\x00", "zzzz"])
def test_a_question_that_says_nothing_finds_nothing(lexical: Snapshot, question: str) -> None:
    found = retrieve(lexical, None, SearchRequest(question))
    assert (found.candidates, found.total, found.evidence) == ((), 0, 0.0)


def test_the_same_question_is_answered_the_same(dense: Snapshot) -> None:
    embedder = quill.Terms(SAME)
    first, second = (retrieve(dense, embedder, SearchRequest("quill")) for _ in range(2))
    assert first.candidates == second.candidates


def test_a_text_that_stands_on_several_pages_is_one_candidate(tmp_path: Path) -> None:
    note = "Wombats dig burrows under the server room every night.\n"
    pages = {f"{n}.md": f"# Page {n}\n\n{note}" for n in ("a", "b", "c")}
    snapshot = opened(quill.publish(tmp_path, pages))
    found = retrieve(snapshot, None, SearchRequest("wombats dig burrows"))
    assert len(found.candidates) == 1
    assert found.total == 3


def test_filters_hold_on_both_sides(dense: Snapshot) -> None:
    found = retrieve(
        dense, quill.Terms(SAME), SearchRequest("quill cache", filters=parse_filter({"source_file_path": ["cache.md"]}))
    )
    assert {c.chunk.source_file_path for c in found.candidates} == {"cache.md"}
    by_number = retrieve(
        dense, quill.Terms(SAME), SearchRequest("quill cache", filters=parse_filter({"chunk_index": 0}))
    )
    assert {c.chunk.chunk_index for c in by_number.candidates} == {0}


def test_a_reranker_has_the_last_word(lexical: Snapshot) -> None:
    before = retrieve(lexical, None, SearchRequest("How do I clear the cache?"))
    reranker = quill.Reranker({"Caching > Cache location": 0.9, "Caching > Clearing": 0.4})
    found = rerank(before, "How do I clear the cache?", reranker)
    assert sections(found)[:2] == ["Cache location", "Clearing the cache"]
    # What it finds equal stays as it was.
    rest = [
        c.chunk for c in before.candidates if c.chunk.chunk_id not in {d.chunk.chunk_id for d in found.candidates[:2]}
    ]
    assert [c.chunk for c in found.candidates[2:]] == rest
    assert (
        [c.score for c in found.candidates[:2]] == [c.components["rerank"] for c in found.candidates[:2]] == [0.9, 0.4]
    )
    assert reranker.asked == [("How do I clear the cache?", tuple(c.chunk.embed_text for c in before.candidates))]
    assert list(found.timings) == ["search", "rank", "weigh", "rerank"]
    assert (found.algorithm, found.degraded) == (f"{LEXICAL_ALGORITHM} + scripted:1", None)
    assert {c.chunk.chunk_id: c.evidence for c in found.candidates} == {
        c.chunk.chunk_id: c.evidence for c in before.candidates
    }


def test_a_reranker_that_fails_leaves_the_order_and_is_told(dense: Snapshot) -> None:
    question = "How do I clear the cache?"
    before = retrieve(dense, quill.Terms(SAME), SearchRequest(question))
    reranker = quill.Reranker(ProviderError("Down.", retryable=True))
    found = rerank(before, question, reranker)
    assert found.candidates == before.candidates
    assert found.algorithm == HYBRID_ALGORITHM
    assert list(found.timings) == ["embed", "search", "rank", "weigh", "rerank"]
    assert found.degraded == ("The reranker could not be reached; the order is that of the search.")
    embedder = quill.Terms(SAME)
    embedder.down = True
    both = rerank(
        retrieve(dense, embedder, SearchRequest(question)),
        question,
        quill.Reranker(ProviderError("Down.", retryable=True)),
    )
    assert both.degraded == ("The embedder could not be reached; only words were searched. " + found.degraded)
    assert both.candidates
    # The turn's budget says itself that it is used up.
    unpaid = rerank(before, question, quill.Reranker(BudgetSpent("Used up.")))
    assert (unpaid.candidates, unpaid.degraded) == (before.candidates, None)


def test_a_reranker_is_not_paid_for_nothing(lexical: Snapshot) -> None:
    reranker = quill.Reranker()
    assert rerank(retrieve(lexical, None, SearchRequest("zzzz")), "zzzz", reranker).candidates == ()
    assert reranker.asked == []


def test_every_component_is_within_its_range(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), SearchRequest("How do I clear the cache with `quill cache clean`?"))
    for candidate in found.candidates:
        parts = dict(candidate.components)
        assert -1 <= parts.pop("cosine", 0.0) <= 1.000001
        assert set(parts) == {"lexical", "dense", "fused", *RANK_WEIGHTS}
        assert all(0 <= value <= 1 for value in parts.values())
        assert 0 <= candidate.score <= 1
    assert all(seconds >= 0 for seconds in found.timings.values())


def test_the_readers_page_comes_a_little_earlier(tmp_path: Path) -> None:
    pages = {f"{name}.md": f"# {name.title()}\n\nGrease the winch of the {name}." for name in ("alpha", "omega")}
    pages["winch.md"] = "# Winch\n\n## Grease the winch\n\nGrease the winch weekly, says the winch."
    snapshot = opened(quill.publish(tmp_path, pages))
    free = [c.chunk.source_file_path for c in retrieve(snapshot, None, SearchRequest("grease the winch")).candidates]
    assert free[0] == "winch.md"
    for name in ("alpha", "omega"):
        here = next(page_of(str(u)) for u in snapshot.values("url") if name in str(u))
        found = retrieve(snapshot, None, SearchRequest("grease the winch", page=here))
        order = [c.chunk.source_file_path for c in found.candidates]
        # It decides between the two alike, and moves neither before what is much better.
        assert order[0] == "winch.md"
        assert order[1] == f"{name}.md"
        assert found.candidates[1].components["here"] == 1.0


def test_the_share_of_the_dense_side_can_be_tried(dense: Snapshot) -> None:
    embedder = quill.Terms(SAME)
    words, meaning = (retrieve(dense, embedder, SearchRequest("dwindle cache", weight=weight)) for weight in (0.0, 1.0))
    assert all(c.components["fused"] == c.components["lexical"] for c in words.candidates)
    assert all(c.components["fused"] == c.components["dense"] for c in meaning.candidates)


@pytest.mark.parametrize(
    "question",
    [
        "x",
        "the of and",
        "`a[0] = b()`",
        "\x00\x1b[31mcache",
        "как очистить кэш",
        "キャッシュ",
        "cache " * 666,
        "-" * 4000,
    ],
)
def test_any_question_is_searched_for(dense: Snapshot, question: str) -> None:
    found = retrieve(dense, quill.Terms(SAME), SearchRequest(question))
    assert all(0 <= c.score <= 1 and 0 <= c.evidence <= 1 for c in found.candidates)


def test_an_index_of_many_likes_is_ordered_the_same_however_it_was_written(tmp_path: Path) -> None:
    pages = {f"{n:02}.md": f"# Note\n\nGrease the winch, number {n}." for n in range(30)}
    orders = []
    for seed in range(2):
        names = random.Random(seed).sample(sorted(pages), len(pages))
        snapshot = opened(quill.publish(tmp_path / str(seed), {name: pages[name] for name in names}))
        orders.append(
            [c.chunk.chunk_id for c in retrieve(snapshot, None, SearchRequest("grease the winch")).candidates]
        )
    assert orders[0] == orders[1]
    assert len(orders[0]) == 30
