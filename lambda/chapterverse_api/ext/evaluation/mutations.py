"""Makes supported sentences false, to measure how many the check catches.

    foreign   a sentence of another page under this citation
    number    one of the sentence's numbers changed
    negation  a "not" added or removed; skipped for sentences with another negation, because two may cancel out

A fixed seed selects the sentences and their changes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence

from chapterverse_api.ext.evaluation.session import CitedClaim

#: Most claims that are mutated; more would change a share by less than a hundredth.
_MAX_CLAIMS = 400
_SEED = 0

# Neither an item's number nor a part of a larger number.
_NUMBER = re.compile(r"(?!\A\d+[.)]\s)(?<![\w.,:/-])\d{1,9}(?![\w/:-]|[.,]\d)")
_NOT = re.compile(r"\b(?:not|nicht)\s+|\b(can)(?:not|['’]t)\b|(?<!wo)n['’]t\b", re.IGNORECASE)
_OTHERWISE = re.compile(
    r"\A\||\b(?:no|none|never|neither|nor|nothing|nobody|without|only|unless|kein\w*|nie|niemals|weder|nichts|ohne|nur)\b",
    re.IGNORECASE,
)
_AUXILIARY = re.compile(
    r"\b(?P<en>is|are|was|were|can|will|must|should|may|does|do|has|have)\b|"
    r"\b(?P<de>ist|sind|war|waren|kann|können|wird|werden|muss|müssen|darf|dürfen)\b",
    re.IGNORECASE,
)


def mutations(claims: Sequence[CitedClaim]) -> Iterator[tuple[str, CitedClaim]]:
    """Yield (kind, false claim). A claim without a number, or without a verb to negate, has no such mutation."""
    chance = random.Random(_SEED)  # noqa: S311  (a sample, not a secret)
    for claim in claims if len(claims) <= _MAX_CLAIMS else chance.sample(list(claims), _MAX_CLAIMS):
        texts = {
            "foreign": _foreign(claim, claims, chance),
            "number": _renumber(claim["text"], chance),
            "negation": negate(claim["text"]),
        }
        for kind, text in texts.items():
            if text is not None:
                mutation: CitedClaim = {**claim, "text": text}
                yield kind, mutation


def _foreign(claim: CitedClaim, claims: Sequence[CitedClaim], chance: random.Random) -> str | None:
    """Return a sentence of another page that this page doesn't hold."""
    own_texts = {other["text"] for other in claims if _page(other) == _page(claim)}
    texts = [other["text"] for other in claims if other["text"] not in own_texts]
    return chance.choice(texts) if texts else None


def _renumber(text: str, chance: random.Random) -> str | None:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    match = chance.choice(numbers)
    return f"{text[: match.start()]}{int(match.group()) + chance.randrange(1, 90)}{text[match.end() :]}"


def negate(text: str) -> str | None:
    """Return the sentence with the opposite meaning; None for a table row and where a "not" is not enough."""
    negations, verb = list(_NOT.finditer(text)), _AUXILIARY.search(text)
    if _OTHERWISE.search(text) or len(negations) > 1:
        return None
    if negations:
        return f"{text[: negations[0].start()]}{negations[0].group(1) or ''}{text[negations[0].end() :]}"
    if verb is None:
        return None
    return f"{text[: verb.end()]} {'not' if verb['en'] else 'nicht'}{text[verb.end() :]}"


def _page(claim: CitedClaim) -> str:
    return claim["url"].partition("#")[0]
