"""Publishes a calibration as a generation of its own, and carries it to later generations while it holds.

A measured calibration and fusion weight stay valid until the embedder or the rules for words change.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chapterverse.calibration import Calibration
from chapterverse.errors import IndexCorrupt, IndexLocked
from chapterverse.indexing.publish_lease import publishing
from chapterverse.indexing.target import Target
from chapterverse.model import ENCODER, EmbedderCard, Head, utc_now
from chapterverse.progress import Progress
from chapterverse.store import Publication


def previous_head(publication: Publication, target: Target) -> Head | None:
    """Return the head that a publication follows. A damaged index still has its calibration in its head."""
    if publication.previous is not None:
        return publication.previous.head
    with contextlib.suppress(IndexCorrupt):
        return target.head()
    return None


def valid_fields(head: Head | None, card: EmbedderCard) -> dict[str, Any]:
    """Return the measured calibration and fusion weight as head fields, empty if none were measured or none hold."""
    if head is None or not Calibration.from_json(head.calibration).questions:
        return {}
    if head.embedder.fingerprint != card.fingerprint or ENCODER not in head.pipeline.split():
        return {}
    return {"calibration": head.calibration, "fusion_weight": head.fusion_weight}


def has_values(head: Head, values: Mapping[str, Any]) -> bool:
    """Whether a head has these field values."""
    return all(getattr(head, name) == value for name, value in values.items())


def warn_of_lost_calibration(before: Head | None, after: Head) -> tuple[str, ...]:
    """Return a warning if a calibration by questions was replaced by one fitted to the index itself."""
    by_questions = [h is not None and Calibration.from_json(h.calibration).questions > 0 for h in (before, after)]
    if by_questions != [True, False]:
        return ()
    warning = (
        f"The calibration of {after.scope} was made for another embedder, or for words read by other rules, so it was"
        " replaced: run `chapterverse calibrate` again."
    )
    return (warning,)


def tune(head: Head, calibration: Calibration, fusion_weight: float, target: Target, progress: Progress) -> Head:
    """Publish the same points with another calibration and fusion weight; return the live head.

    The ledger is updated too, so the next `index` has nothing to do. A kill in between only makes that run read every
    file.

    Args:
        head: of the generation that was measured, which must still be live.

    Raises:
        IndexLocked: another process is publishing, or published meanwhile.
        IndexFault: the store can't be written to; nothing was changed.
    """
    fields: dict[str, Any] = {"calibration": calibration.to_json(), "fusion_weight": fusion_weight}
    if has_values(head, fields):
        return head
    with publishing(target, progress) as publication:
        live = publication.previous
        if live is None or (live.head.generation, live.head.token) != (head.generation, head.token):
            raise IndexLocked(f"Another process published {target.scope} meanwhile: run it again.")
        # A ledger that describes another head stays as it is.
        ledger_matches = target.records(live.head) is not None
        tuned = replace(
            live.head,
            generation=live.head.generation + 1,
            published_at=utc_now(),
            token=secrets.token_hex(8),
            **fields,
        )
        publication.commit(tuned)
        if ledger_matches:
            target.ledger.save(target.scope, tuned.generation, (), (), tuned.token)
    return tuned
