"""Makes supported sentences false, to measure how many the check catches.

    foreign   a sentence that another page carries, under this citation
    number    one of the sentence's numbers changed
    negation  a "not" put in, or taken out; of sentences that deny nothing else, for two denials may be none

Which sentence is taken and what becomes of it is drawn with a fixed seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence

#: A claim has a `text` and the `url` and `chunk_id` of a section that carries it; see `service.holds`.
Claim = Mapping[str, str]

KINDS = ("foreign", "number", "negation")
#: Claims that are mutated, at most; more would not move a share by a hundredth.
_MOST = 400
_SEED = 0

# Not the number of an item, nor a part of a larger one.
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


def mutations(claims: Sequence[Claim]) -> Iterator[tuple[str, Claim]]:
    """Yield (kind, claim made wrong); a claim without a number or a verb that can be negated has no such mutation."""
    chance = random.Random(_SEED)  # noqa: S311  (a sample, not a secret)
    for claim in claims if len(claims) <= _MOST else chance.sample(list(claims), _MOST):
        made = {
            "foreign": _foreign(claim, claims, chance),
            "number": _renumbered(claim["text"], chance),
            "negation": negated(claim["text"]),
        }
        yield from ((kind, {**claim, "text": text}) for kind, text in made.items() if text is not None)


def _foreign(claim: Claim, claims: Sequence[Claim], chance: random.Random) -> str | None:
    """Return what another page says and no claim of this one does."""
    said = {other["text"] for other in claims if _page(other) == _page(claim)}
    others = [other["text"] for other in claims if other["text"] not in said]
    return chance.choice(others) if others else None


def _renumbered(text: str, chance: random.Random) -> str | None:
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    taken = chance.choice(numbers)
    return f"{text[: taken.start()]}{int(taken.group()) + chance.randrange(1, 90)}{text[taken.end() :]}"


def negated(text: str) -> str | None:
    """Return the sentence with the opposite meaning; None of a table's row and where that is not so easily said."""
    found, verb = list(_NOT.finditer(text)), _AUXILIARY.search(text)
    if _OTHERWISE.search(text) or len(found) > 1:
        return None
    if found:
        return f"{text[: found[0].start()]}{found[0].group(1) or ''}{text[found[0].end() :]}"
    if verb is None:
        return None
    return f"{text[: verb.end()]} {'not' if verb['en'] else 'nicht'}{text[verb.end() :]}"


def _page(claim: Claim) -> str:
    return claim["url"].partition("#")[0]
