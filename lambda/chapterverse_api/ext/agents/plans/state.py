"""The state of a plan, which travels with each reply: signed, so that the service stores nothing."""

from __future__ import annotations

import base64
import json
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from chapterverse.errors import InputError
from chapterverse_api.contract import SourceChunk
from chapterverse_api.conversation.transcript import Signer
from chapterverse_api.ext.agents.plans.contract import Plan
from chapterverse_api.ext.agents.plans.machine import Position

#: Seconds for which a reader may go on with a plan.
PLAN_SECONDS = 24 * 60 * 60
#: Bytes of a state that are searched for a tool without its key: one that unpacks to more is taken to have one.
_MAX_SEARCHED_BYTES = 200_000
_PURPOSE = b"chapterverse/plan/1"


@dataclass(frozen=True, slots=True)
class PlanState:
    """A plan, its reader's position, and the sources that its steps cite."""

    plan: Plan
    position: Position
    sources: Sequence[SourceChunk]

    def seal(self, signer: Signer) -> str:
        """Return the state as text that only this service can write."""
        payload = {
            "expiry": int(time.time()) + PLAN_SECONDS,
            "plan": self.plan.model_dump(exclude_defaults=True),
            "at": self.position.step_id,
            "values": self.position.values,
            "sources": [source.model_dump() for source in self.sources],
        }
        data = zlib.compress(json.dumps(payload, separators=(",", ":")).encode())
        key_id, tag = signer.seal(_PURPOSE, data)
        return f"{base64.urlsafe_b64encode(data).decode()}.{key_id}.{tag}"

    @classmethod
    def unseal(cls, sealed: str, signer: Signer) -> PlanState:
        """Return the state that `seal` made a text of.

        Raises:
            InputError: this service did not make it, or it has expired.
        """
        invalid_state = InputError(
            "state was not issued by this service or has expired: ask for the plan again.", field="state"
        )
        try:
            text, key_id, tag = sealed.split(".")
            data = base64.b64decode(text, altchars=b"-_", validate=True)
        except ValueError:
            raise invalid_state from None
        # Nothing of it is read before its seal is verified.
        if not signer.is_sealed(_PURPOSE, data, key_id, tag):
            raise invalid_state
        payload = json.loads(zlib.decompress(data))
        if payload["expiry"] <= time.time():
            raise invalid_state
        sources = [SourceChunk.model_validate(source) for source in payload["sources"]]
        return cls(Plan.model_validate(payload["plan"]), Position(payload["at"], payload["values"]), sources)


def calls_tools(sealed: str) -> bool:
    """Whether a state may lead to a tool, as far as can be read without its key: such a request is counted."""
    try:
        reading = zlib.decompressobj()
        data = reading.decompress(base64.urlsafe_b64decode(sealed.partition(".")[0]), _MAX_SEARCHED_BYTES)
    except (ValueError, zlib.error):
        return True
    return bool(reading.unconsumed_tail) or b'"call_tool"' in data
