"""Publishes a calibration as a generation of its own. Later generations keep it while it holds."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import Any

from chapterverse.calibration import Calibration
from chapterverse.errors import IndexLocked
from chapterverse.indexing.apply import has_values, publishing
from chapterverse.indexing.target import Target
from chapterverse.ledger import rows_of
from chapterverse.model import Head, utc_now
from chapterverse.progress import Progress


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
        ledger_matches = rows_of(target.ledger, live.head) is not None
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
