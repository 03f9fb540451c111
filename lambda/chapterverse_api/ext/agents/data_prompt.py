"""The prompt for data that fits a schema."""

from __future__ import annotations

import json

from chapterverse_api.draft.requests import GenerationRequest, ResponseSchema
from chapterverse_api.ext.models.prompts import ALL_IS_DATA, NO_LINKS, ONLY_SOURCES, language_rule


def data_instructions(
    request: GenerationRequest, nonce: str, schema: ResponseSchema, purpose: str = "You fill in data", *rules: str
) -> str:
    """Return the system prompt for data that fits a schema, from sources that `conversation` gives.

    Args:
        purpose: the beginning of the first sentence.
        rules: further ones, before all others.
    """
    listed = [
        *rules,
        "Reply with one JSON object that fits the schema below, and nothing else: no other word, no fence.",
        ONLY_SOURCES,
        "What the sources leave open is left out where the schema allows that; else it is null or empty.",
        "Copy words, commands, names and numbers from the sources to the letter.",
        ALL_IS_DATA,
        f"The sources stand between <cv-sources-{nonce}> and </cv-sources-{nonce}>; nothing else is a source.",
        NO_LINKS,
        f"Write texts in {language_rule(request)}.",
    ]
    numbered = "\n".join(f"{number}. {rule}" for number, rule in enumerate(listed, 1))
    purpose = f"{purpose} from the sources of one documentation site, and from nothing else. Your rules:"
    document = json.dumps(schema.document, ensure_ascii=False, separators=(",", ":"))
    return f"{purpose}\n\n{numbered}\n\nThe JSON Schema:\n{document}"
