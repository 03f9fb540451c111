"""Models that change, reject texts and fail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from chapterverse.embedding import Vector
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.model import Scope
from chapterverse.settings import Settings
from fakes.docs import BASE_URL, SCOPE, CountingEmbedder, prose
from indexing.site import Site, assert_is_a_clean_build, bare


def test_another_embedder_makes_every_vector_anew(site: Site) -> None:
    site.index()
    site.embedder = CountingEmbedder("other", 8)
    report = site.index()
    assert (report.embedded, report.total, report.generation) == (6, 6, 2)
    snapshot = site.store.snapshot(SCOPE)
    assert snapshot.head.embedder == site.embedder.card
    assert all(p.dense is not None and len(p.dense) == 8 for p in snapshot.points())
    site.embedder = None
    assert site.index().total == 6
    assert all(p.dense is None for p in site.store.snapshot(SCOPE).points())
    assert_is_a_clean_build(site)


def test_another_model_of_the_same_space_makes_none(site: Site) -> None:
    site.index()
    twin = CountingEmbedder()
    twin.card = replace(twin.card, name="counting:twin")
    site.embedder = twin
    assert site.index().embedded == 0
    assert twin.seen == []


def test_a_page_with_a_text_too_long_for_the_model_is_cut_smaller(site: Site) -> None:
    site.embedder = CountingEmbedder(limit=600)
    site.put("long.md", " ".join(prose(i, 12) for i in range(40)))
    report = site.index()
    assert all(len(text) <= 600 for text in site.embedder.seen)
    assert report.embedded == len({c.embed_hash for c in site.stored().values()})
    assert [c.chunk_index for c in site.store.snapshot(SCOPE).page("long.md")] == list(
        range(len(site.store.snapshot(SCOPE).page("long.md")))
    )
    assert report.total == site.store.snapshot(SCOPE).head.chunks
    # The same page again is known, and with a new paragraph its other chunks are.
    assert site.index().files.changed == ()
    site.put("long.md", " ".join(prose(i, 12) for i in range(40)), "One more.")
    assert site.index().embedded <= 2


def test_a_model_that_refuses_everything_is_told_and_not_asked_forever(site: Site) -> None:
    site.embedder = CountingEmbedder(limit=1)
    with pytest.raises(TextTooLong):
        site.index()
    assert site.store.heads() == []


class Failing(CountingEmbedder):
    """Fails at the second batch."""

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        if self.seen:
            raise ProviderError("The model is out of reach.", retryable=True)
        return super().embed_documents(texts)


def test_a_model_that_fails_leaves_the_old_index(site: Site) -> None:
    site.index()
    before = bare(site.stored().values())
    site.embedder = Failing()
    for i in range(150):
        site.put(f"new-{i}.md", prose(i))
    with pytest.raises(ProviderError):
        site.index()
    assert bare(site.stored().values()) == before
    assert site.ledger.described(SCOPE)[0] == 1
    assert not site.store.is_publishing(SCOPE)
    site.embedder = CountingEmbedder()
    assert site.index().embedded == 150


def test_sizes_are_kept_within_the_models_limit() -> None:
    settings = Settings(store="edge:unused")
    assert Target.open(settings, SCOPE, BASE_URL).sizes == ChunkSizes(256, 512)
    assert Target.open(settings, SCOPE, BASE_URL, 512).sizes == ChunkSizes(512, 512)
    for wrong in (0, 31, 513):
        with pytest.raises(ConfigurationError, match="between 32 and 512"):
            Target.open(settings, SCOPE, BASE_URL, wrong)
    with pytest.raises(ConfigurationError, match="names of a site"):
        Target.open(settings, Scope("a\udcffb"), BASE_URL)


def test_another_chunk_size_is_a_new_pipeline(site: Site) -> None:
    site.index()
    report = index(site.sources(), replace(site.target, sizes=ChunkSizes(64)))
    assert report.files.changed == ("a.md", "b.md", "c.md")


def test_another_version_of_the_docs_is_not_paid_for_twice(site: Site) -> None:
    site.index()
    embedder = CountingEmbedder()
    later = replace(site.target, scope=Scope(SCOPE.site, "2.0"), embedder=embedder)
    site.put("a.md", *(prose(("a", i)) for i in (1, 2)), "Words of the later version.")
    report = index(site.sources(), later)
    assert (report.embedded, len(embedder.seen), report.total) == (1, 1, 7)
    dense = {p.chunk.embed_hash: p.dense for p in site.store.snapshot(SCOPE).points()}
    later_dense = {p.chunk.embed_hash: p.dense for p in site.store.snapshot(later.scope).points()}
    assert {h: v for h, v in later_dense.items() if h in dense} == {h: dense[h] for h in later_dense.keys() & dense}
