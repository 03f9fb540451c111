"""A model behind OpenAI's `POST /v1/chat/completions` that says whether a document says a claim.

    openai:bespoke-minicheck    trained for this, on Ollama: https://ollama.com/library/bespoke-minicheck
    openai:gpt-4.1-mini         any model that follows instructions

All requests have the form of Bespoke-MiniCheck: `Document: …`, `Claim: …`, and the answer is Yes or No. The
instructions are that model's own, word for word, because other models need them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from chapterverse.errors import ProviderError
from chapterverse.settings import Settings
from chapterverse_api.draft.draft import CheckRequest
from chapterverse_api.draft.requests import ChatMessage, ModelRequest
from chapterverse_api.ext.openai.generator import OpenAIGenerator

INSTRUCTIONS = (
    "Determine whether the provided claim is consistent with the corresponding document. Consistency in this context "
    "implies that all information presented in the claim is substantiated by the document. If not, it should be "
    "considered inconsistent. Please assess the claim's consistency with the document by responding with either "
    '"Yes" or "No".'
)
#: Tokens of a verdict; some models write a word before it.
_MAX_VERDICT_TOKENS = 16

_VERDICT = re.compile(r"\W*(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class OpenAIChecker:
    """One model behind one address. Safe to share between threads."""

    model: OpenAIGenerator = field(repr=False)

    @classmethod
    def from_settings(cls, settings: Settings, model: str) -> OpenAIChecker:
        """Return the checker for a model; nothing is sent yet."""
        return cls(OpenAIGenerator.from_settings(settings, model, part="checker"))

    @property
    def name(self) -> str:
        return self.model.name

    def supports(self, request: CheckRequest) -> bool:
        """Return whether the document says the claim; see `Checker`."""
        # The claim is the last line of the form, so it must not begin another one.
        claim = " ".join(request.claim.split())
        message = ChatMessage("user", f"Document: {request.document}\nClaim: {claim}")
        reply = self.model.write(
            ModelRequest(INSTRUCTIONS, (message,), _MAX_VERDICT_TOKENS, request.deadline, request.usage)
        )
        verdict = _VERDICT.match(reply)
        if verdict is None:
            raise ProviderError("The checker answered with neither yes nor no: choose a model that follows the form.")
        return verdict[1].lower() == "yes"
