from __future__ import annotations

import time

import pytest

from api import quill
from chapterverse.store import Snapshot, only_scope, open_store
from chapterverse_api.search.question import correct
from chapterverse_api.search.site_search import SearchRequest, retrieve


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    store = open_store(quill.publish(tmp_path_factory.mktemp("index")))
    return store.snapshot(only_scope(store))


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("clear the cahce", "clear the cache"),
        ("clear the cachhe", "clear the cache"),
        ("uninstaling quill", "uninstalling quill"),
        ("Unistalling quill", "Uninstalling quill"),
        ("how do I cler the cache?", "how do I clear the cache?"),
        # A word that these docs write as two.
        ("rollback", "roll back"),
    ],
)
def test_a_mistake_is_corrected(typed: str, meant: str, snapshot: Snapshot) -> None:
    assert correct(typed, snapshot) == meant


@pytest.mark.parametrize(
    "question",
    [
        "", "?", "c", "How do I clear the cache?", "clear the `cahce`", 'clear the "cahce"', "--cahce", "cahce.toml",
        "my_cahce", "reCahce", "cahce()", "https://cahce.example/", "xyzzyplugh", "缓存怎么清", "🙂" * 100,
        # Words of the language that these docs lack are no mistakes.
        "tell me about latex", "who won the world cup", "which semver rules", "does the fan whine",
    ],
    ids=ascii,
)  # fmt: skip
def test_what_is_no_mistake_is_left_alone(question: str, snapshot: Snapshot) -> None:
    assert correct(question, snapshot) == question


def test_the_search_is_for_what_was_meant(snapshot: Snapshot) -> None:
    found = retrieve(snapshot, None, SearchRequest("How do I clear the cahce?"))
    assert found.searched == "How do I clear the cache?"
    assert found.candidates == retrieve(snapshot, None, SearchRequest("How do I clear the cache?")).candidates


@pytest.mark.parametrize("question", ["abcdefgh " * 440, "qwertzuiopasdfghjklyx " * 180, "a" * 4000, "é" * 4000])
def test_nonsense_of_any_length_takes_a_bounded_time(question: str, snapshot: Snapshot) -> None:
    started = time.process_time()
    correct(question[:4000], snapshot)
    assert time.process_time() - started < 5
