"""The document of `/v1/status`: the indexes that are served, the models in use, and the parts that are degraded."""

from __future__ import annotations

import contextlib

from chapterverse.errors import ChapterVerseError
from chapterverse.model import Head
from chapterverse_api.answering.resources import Resources
from chapterverse_api.contract import IndexStatus, ServiceStatus
from chapterverse_api.generation.protocols import Writer


def read_status(resources: Resources, *, has_tools: bool) -> ServiceStatus:
    """Return the state of indexes, models and budget. A broken index is reported, not raised.

    Args:
        has_tools: whether the site has tools of its own.
    """
    index, models, settings, threads = resources.index, resources.models, resources.settings, resources.threads
    heads, is_index_sound, embedder = list[Head](), False, settings.embedder
    with contextlib.suppress(ChapterVerseError):
        heads = index.live_heads()
        cards = [models.card(head) for head in heads]
        embedder = cards[0].name if cards else embedder
        fits = all(head.embedder.fingerprint == card.fingerprint for head, card in zip(heads, cards, strict=True))
        is_index_sound = bool(heads) and fits and index.intact(heads)
    conditions = {
        "index": not is_index_sound,
        **{part: circuit.is_open for part, circuit in models.circuits.items()},
        "budget": resources.budget.level != "full",
        # A model that calls none leaves the site's tools unused.
        "tools": has_tools and not isinstance(models.generator, Writer),
        "records": threads is not None and not threads.works,
        # Others took all of its time, and the order of the search stayed.
        "reading_model": models.reader is not None and models.reader.is_late,
    }
    degraded = [part for part, is_degraded in conditions.items() if is_degraded]
    return ServiceStatus(
        status="degraded" if degraded else "ok",
        indexes=[_index_status(head) for head in heads],
        models={
            "embedder": embedder,
            "reranker": settings.reranker,
            "generator": models.generator.name,
            "reading_model": models.reader.name if models.reader else "none",
            "checker": models.checker.name if models.checker else settings.checker,
        },
        degraded=degraded,
        mcp=settings.mcp,
    )


def _index_status(head: Head) -> IndexStatus:
    return IndexStatus(
        site=head.site,
        version=head.version,
        generation=head.generation,
        pages=head.pages,
        chunks=head.chunks,
        published_at=head.published_at,
    )
