from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from api import quill
from chapterverse.errors import InputError
from chapterverse.settings import Settings
from chapterverse.store import Snapshot, only_scope, open_store
from chapterverse_api.retrieval import HYBRID_ALGORITHM, LEXICAL_ALGORITHM, PAGE, Retrieval, retrieve

#: "vanish" stands on no page; to the embedder it means "uninstalling".
SAME = {"vanish": "uninstalling"}


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
    found = retrieve(lexical, None, "How do I clear the cache?")
    assert sections(found)[0] == "Clearing the cache"
    assert (found.algorithm, found.degraded) == (LEXICAL_ALGORITHM, None)
    assert set(found.timings) == {"search", "rank"}
    assert found.total == len(found.candidates)


def test_ranks_fall_and_are_made_of_their_parts(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), "How do I clear the cache?")
    ranks = [c.rank for c in found.candidates]
    assert ranks == sorted(ranks, reverse=True)
    weight = dense.head.fusion_weight
    for c in found.candidates:
        fused = (1 - weight) * c.components["lexical"] + weight * c.components["dense"]
        assert c.rank == pytest.approx((fused + PAGE * c.components["page"]) / (1 + PAGE))
        assert 0 <= c.evidence <= 1
    assert found.candidates[0].components["lexical"] == 1.0
    assert max(c.components["dense"] for c in found.candidates) == 1.0


def test_meaning_finds_what_words_do_not(lexical: Snapshot, dense: Snapshot) -> None:
    assert sections(retrieve(lexical, None, "vanish")) == []
    found = retrieve(dense, quill.Terms(SAME), "vanish")
    assert sections(found)[0] == "Uninstalling"
    assert found.algorithm == HYBRID_ALGORITHM
    assert "embed" in found.timings


def test_both_sides_have_a_say(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), "vanish cache")
    assert {"Uninstalling", "Clearing the cache"} <= set(sections(found)[:4])


def test_evidence_is_of_words_alone_and_a_fused_rank_is_none(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), "vanish")
    assert found.candidates[0].rank == 1.0
    assert found.evidence < found.calibration.floor


def test_an_embedder_that_is_down_leaves_the_words(dense: Snapshot) -> None:
    embedder = quill.Terms(SAME)
    embedder.down = True
    found = retrieve(dense, embedder, "How do I clear the cache?")
    assert sections(found)[0] == "Clearing the cache"
    assert found.algorithm == LEXICAL_ALGORITHM
    assert found.degraded == "The embedder could not be reached (ProviderError); only words were searched."


def test_a_search_by_vector_alone(dense: Snapshot) -> None:
    vector = quill.Terms(SAME).embed_query("vanish")
    found = retrieve(dense, None, None, vector=vector)
    assert sections(found)[0] == "Uninstalling"
    assert found.evidence == 0.0
    assert found.candidates[0].components == {"lexical": 0.0, "dense": 1.0, "page": 1.0}


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
        retrieve(dense, None, None, vector=vector)
    assert (str(error.value), error.value.field) == (message, "embedding")


def test_a_very_small_or_large_vector_is_searched_for(dense: Snapshot) -> None:
    for size in (1e-30, 1e15):
        assert retrieve(dense, None, None, vector=[size] * 64).candidates


def test_an_index_of_words_takes_no_vector(lexical: Snapshot) -> None:
    with pytest.raises(InputError, match="The index holds no dense vectors: send a query"):
        retrieve(lexical, None, None, vector=[1.0])


@pytest.mark.parametrize("question", ["", "the of and", "!!!", "🦄", "\x00", "zzzz"])
def test_a_question_that_says_nothing_finds_nothing(lexical: Snapshot, question: str) -> None:
    found = retrieve(lexical, None, question)
    assert (found.candidates, found.total, found.evidence) == ((), 0, 0.0)


def test_the_same_question_is_answered_the_same(dense: Snapshot) -> None:
    embedder = quill.Terms(SAME)
    first, second = (retrieve(dense, embedder, "quill") for _ in range(2))
    assert first.candidates == second.candidates


def test_a_text_that_stands_on_several_pages_is_one_candidate(tmp_path: Path) -> None:
    note = "Wombats dig burrows under the server room every night.\n"
    pages = {f"{n}.md": f"# Page {n}\n\n{note}" for n in ("a", "b", "c")}
    snapshot = opened(quill.publish(tmp_path, pages))
    found = retrieve(snapshot, None, "wombats dig burrows")
    assert len(found.candidates) == 1
    assert found.total == 3


def test_filters_hold_on_both_sides(dense: Snapshot) -> None:
    found = retrieve(dense, quill.Terms(SAME), "quill cache", filters={"source_file_path": ["cache.md"]})
    assert {c.chunk.source_file_path for c in found.candidates} == {"cache.md"}
    by_number = retrieve(dense, quill.Terms(SAME), "quill cache", filters={"chunk_index": 0})
    assert {c.chunk.chunk_index for c in by_number.candidates} == {0}


def test_a_page_about_the_subject_beats_a_passing_mention(tmp_path: Path) -> None:
    parts = (
        "The winch has a brake and a drum.",
        "Grease the winch and its brake.",
        "A winch without a brake is scrap.",
    )
    about = "\n\n".join(f"## Part {n}\n\n{part}" for n, part in enumerate(parts))
    pages = {"gear.md": f"# Gear\n\n{about}", "log.md": "# Log\n\nWinch, brake."}
    found = retrieve(opened(quill.publish(tmp_path, pages)), None, "winch brake")
    best = {c.chunk.source_file_path: c for c in reversed(found.candidates)}
    # The passing mention matches better, being shorter, and comes second all the same.
    assert best["log.md"].components["lexical"] > best["gear.md"].components["lexical"]
    assert found.candidates[0].chunk.source_file_path == "gear.md"
