"""The contextual grounding check of a guardrail on Amazon Bedrock, called by `ApplyGuardrail`.

    bedrock:guardrail/abc123def456       the draft of a guardrail, by its id or its ARN
    bedrock:guardrail/abc123def456:2     one of its versions

The guardrail's own threshold for grounding decides, whether its action is to block or to detect.
Fields as in the API reference of `ApplyGuardrail`, November 2026.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.ext.bedrock.runtime import Runtime
from chapterverse.settings import Settings
from chapterverse_api.draft.draft import CheckRequest

#: Seconds to reach the service, and for one reply; the deadline of the vote ends it earlier.
_TIMEOUT_SECONDS = (1.0, 10.0)
#: The check needs a query, and "explain this" has none; its verdict on relevance is ignored.
_NO_QUERY = "What does the documentation say?"

_NAME = re.compile(
    r"guardrail/(?P<id>(?:arn:aws(?:-[a-z-]+)?:bedrock:[a-z0-9-]+:[0-9]{12}:guardrail/)?[a-z0-9]+)"
    r"(?::(?P<version>DRAFT|[1-9][0-9]{0,7}))?"
)


@dataclass(frozen=True, slots=True)
class GuardrailChecker:
    """One version of a guardrail. Safe to share between threads, as boto3's clients are."""

    guardrail: str
    version: str
    runtime: Runtime = field(repr=False)

    @classmethod
    def from_settings(cls, _: Settings, name: str) -> GuardrailChecker:
        """Return the checker for `guardrail/ID[:VERSION]`; nothing is sent yet."""
        match = _NAME.fullmatch(name)
        if match is None:
            raise ConfigurationError(
                "The checker bedrock needs a guardrail: use bedrock:guardrail/ID, or bedrock:guardrail/ID:VERSION."
            )
        return cls(match["id"], match["version"] or "DRAFT", Runtime.open("checker", *_TIMEOUT_SECONDS))

    @property
    def name(self) -> str:
        # The name is public, and an ARN begins with an account number.
        return f"bedrock:guardrail/{self.guardrail.rpartition('/')[2]}:{self.version}"

    def supports(self, request: CheckRequest) -> bool:
        """Return whether the claim's score for grounding reaches the guardrail's threshold; see `Checker`."""
        query = request.question.strip() or _NO_QUERY
        body = {
            "guardrailIdentifier": self.guardrail,
            "guardrailVersion": self.version,
            "source": "OUTPUT",
            "content": [
                _block(request.document, "grounding_source"),
                _block(query, "query"),
                _block(request.claim, "guard_content"),
            ],
        }
        deadline = request.deadline
        reply = self.runtime.ask("apply_guardrail", body, deadline.seconds_left, deadline.closing)
        return _is_grounded(reply)


def _block(text: str, qualifier: str) -> dict[str, Any]:
    return {"text": {"text": text, "qualifiers": [qualifier]}}


def _is_grounded(reply: Any) -> bool:
    verdicts = []
    for assessment in _objects(reply, "assessments"):
        for result in _objects(assessment.get("contextualGroundingPolicy"), "filters"):
            score, threshold = result.get("score"), result.get("threshold")
            is_grounding = result.get("type") == "GROUNDING"
            if is_grounding and isinstance(score, int | float) and isinstance(threshold, int | float):
                verdicts.append(score >= threshold)
    if not verdicts:
        raise ProviderError(
            "The guardrail did not check grounding: switch its contextual grounding check on, with a threshold."
        )
    return all(verdicts)


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects of a list inside an object; none if there is no such list."""
    items = value.get(name) if isinstance(value, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
