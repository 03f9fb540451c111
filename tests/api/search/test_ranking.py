from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from chapterverse.model import Chunk
from chapterverse.store import Hit
from chapterverse.text import lexical
from chapterverse_api.index.site_index import page_of
from chapterverse_api.search.ranking import Candidate, QueryFeatures, fuse, rank

QUESTION = "How do I clear the cache?"
WORDS = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(300)]


def hit(number: int, text: str, *, url: str = "", path: tuple[str, ...] = ("Guide", "Part"), score: float = 0.0) -> Hit:
    address = url or f"https://docs.example.com/{number}/"
    chunk = Chunk(f"{number:08}", "", text, "Guide", "Part", path, number, f"{number}.md", address, True, "")
    return Hit(chunk, score, lexical.document_vector(path, text))


def ordered(hits: list[Hit], here: str = "", near: list[Hit] | None = None) -> list[Candidate]:
    by_id = {h.chunk.chunk_id: h for h in hits}
    idf = dict.fromkeys(lexical.terms_of(lexical.words(QUESTION)), 2.0)
    held = {i: h.lexical.among(idf) for i, h in by_id.items()}
    fused = fuse(held, idf, near or [], 0.3)
    return rank(by_id, fused, {"en": QueryFeatures(QUESTION, "en")}, here)


def ids(ranked: list[Candidate]) -> list[int]:
    return [int(r.chunk.chunk_id) for r in ranked]


def test_ties_are_cut_by_id_whatever_the_order_of_what_was_found() -> None:
    hits = [hit(n, f"Clear the cache, note {n}.") for n in range(12)]
    assert ids(ordered(hits)) == list(range(12))
    for seed in range(5):
        shuffled = random.Random(seed).sample(hits, len(hits))
        assert ordered(shuffled) == ordered(hits)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.lists(st.sampled_from([*WORDS[:4], "clear", "cache"]), max_size=6), st.integers(0, 3)),
                max_size=15), st.randoms(use_true_random=False))  # fmt: skip
def test_scores_never_rise_and_all_values_are_within_their_range(
    texts: list[tuple[list[str], int]], rng: random.Random
) -> None:
    cosines = [rng.uniform(-1, 1) for _ in texts]
    hits = [
        hit(n, " ".join(words) or "-", url=f"https://docs.example.com/{page}/", score=cosine)
        for n, ((words, page), cosine) in enumerate(zip(texts, cosines, strict=True))
    ]
    found = ordered(hits, near=hits[::2])
    scores = [r.score for r in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= r <= 1 for r in scores)
    for r in found:
        assert all(0 <= value <= 1 for value in r.components.values())
    assert {" ".join(h.chunk.text.split()) for h in hits} == {" ".join(r.chunk.text.split()) for r in found}
    assert len(found) == len({h.chunk.text for h in hits})


def test_an_exact_repetition_is_left_out() -> None:
    found = ordered([hit(1, "Clear the cache."), hit(2, "Clear the cache."), hit(3, "Clear the cache now.")])
    assert sorted(ids(found)) == [1, 3]


def test_the_readers_page_decides_between_equals_and_not_against_the_better() -> None:
    equal = [hit(1, "Clear the cache, first."), hit(2, "Clear the cache, second.")]
    assert ids(ordered(equal)) == [1, 2]
    assert ids(ordered(equal, here=page_of(equal[1].chunk.url))) == [2, 1]
    better = [hit(1, "Clear the cache."), hit(2, "Nothing but a cache among so many other words.")]
    assert ids(ordered(better, here=page_of(better[1].chunk.url))) == [1, 2]


def test_one_side_alone_has_all_the_weight() -> None:
    (one,) = [hit(1, "Clear the cache.", score=0.4)]
    idf = dict.fromkeys(lexical.terms_of(lexical.words(QUESTION)), 1.0)
    assert fuse({"1": one.lexical.among(idf)}, idf, [], 0.3)["1"] == {"lexical": 1.0, "dense": 0.0, "fused": 1.0}
    by_meaning = fuse({one.chunk.chunk_id: {}}, {}, [one], 0.3)[one.chunk.chunk_id]
    assert by_meaning == {"lexical": 0.0, "dense": 1.0, "fused": 1.0}
    assert fuse({}, idf, [], 0.3) == {}


def test_what_only_its_meaning_found_is_counted_by_its_words_too() -> None:
    near = [hit(1, "Clear the cache.", score=0.9), hit(2, "The cache.", score=0.1)]
    idf = dict.fromkeys(lexical.terms_of(lexical.words(QUESTION)), 1.0)
    fused = fuse({h.chunk.chunk_id: h.lexical.among(idf) for h in near}, idf, near, 0.3)
    assert fused["00000001"]["fused"] == 1.0
    assert fused["00000002"]["dense"] == 0.0
    assert 0 < fused["00000002"]["lexical"] < 1
