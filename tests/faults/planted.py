"""Publishers with one planted fault each: the tests must catch every one of them."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from chapterverse.indexing.target import Target
from chapterverse.model import EmbedderCard, Head, Scope
from fakes.instead import instead


def _publishing(target: Target, change: Callable[[Any], Any]) -> Target:
    """Return the target with every publication changed."""

    @contextlib.contextmanager
    def publish(scope: Scope, embedder: EmbedderCard) -> Iterator[Any]:
        with target.store.publish(scope, embedder) as publication:
            yield change(publication)

    return replace(target, store=instead(target.store, publish=publish))


def ledger_first(target: Target) -> Target:
    """The ledger is written before the head moves, and is believed whatever head it was written for."""
    head: list[Head] = []

    @contextlib.contextmanager
    def publish(scope: Scope, embedder: EmbedderCard) -> Iterator[Any]:
        with target.store.publish(scope, embedder) as publication:
            yield instead(publication, commit=head.append)
            publication.commit(*head)

    def live(scope: Scope) -> tuple[int, str]:
        return next(((h.generation, h.token) for h in target.store.heads() if h.scope == scope), (0, ""))

    ledger = instead(target.ledger, described=live)
    return replace(target, store=instead(target.store, publish=publish), ledger=ledger)


def head_first(target: Target) -> Target:
    """The head names a generation that is not written out yet."""

    def early(publication: Any) -> Any:
        def commit(head: Head) -> None:
            draft: Path = publication._place
            folder = f"{head.generation:06d}-{draft.name.removesuffix('.new')}"
            (draft.parent / "head.json").write_text(json.dumps({"folder": folder, "head": asdict(head)}))
            publication.commit(head)

        return instead(publication, commit=commit)

    return _publishing(target, early)


def head_in_place(target: Target) -> Target:
    """The head is written into its file instead of beside it."""

    def torn(publication: Any) -> Any:
        def commit(head: Head) -> None:
            publication.commit(head)
            file: Path = publication._place.parent / "head.json"
            file.write_text(file.read_text())

        return instead(publication, commit=commit)

    return _publishing(target, torn)


def retired_early(target: Target) -> Target:
    """The live generation is removed before the head has left it."""

    def eager(publication: Any) -> Any:
        def commit(head: Head) -> None:
            for live in publication._place.parent.glob(f"{head.generation - 1:06d}-*"):
                shutil.rmtree(live)
            publication.commit(head)

        return instead(publication, commit=commit)

    return _publishing(target, eager)


def deletion_dropped(target: Target) -> Target:
    """What is gone stays, and whoever counts is told that it went."""

    def forgetful(publication: Any) -> Any:
        dropped: list[str] = []

        def preview() -> Any:
            seen = publication.preview()
            return instead(seen, head=replace(seen.head, chunks=seen.head.chunks - len(dropped)))

        return instead(publication, delete=dropped.extend, preview=preview)

    return _publishing(target, forgetful)


def vectors_thrown_away(target: Target) -> Target:
    """Every chunk that is written is embedded, seen or not."""

    def wasteful(publication: Any) -> Any:
        live = publication.previous
        return instead(publication, previous=live and instead(live, vectors=lambda _embed_hashes: {}))

    return _publishing(target, wasteful)


def died_not_set(target: Target) -> Target:
    """What is removed from a server never dies there."""

    def immortal(publication: Any) -> Any:
        writer = publication._writer

        def set_payload(collection: str, payload: Mapping[str, Any], where: Any) -> None:
            if "died" not in payload:
                writer.set_payload(collection, payload, where)

        publication._writer = instead(writer, set_payload=set_payload)
        return publication

    return _publishing(target, immortal)


def _named(*plants: Callable[[Target], Target]) -> dict[str, Callable[[Target], Target]]:
    return {plant.__name__: plant for plant in plants}


#: Mistakes of publishers to the embedded store, and to a server.
EMBEDDED = _named(ledger_first, head_first, head_in_place, retired_early, deletion_dropped, vectors_thrown_away)
SERVED = _named(died_not_set, deletion_dropped, vectors_thrown_away)
PLANTS = EMBEDDED | SERVED
