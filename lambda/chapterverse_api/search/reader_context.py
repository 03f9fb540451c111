"""Uses what a reader says of themselves: it breaks ties in the order, and chooses the tab that it names.

It is no evidence: a chunk's evidence stays, nothing is found or refused by it, and no answer cites it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from chapterverse_api.draft.quoting.blocks import TAB_LABEL, TabNames
from chapterverse_api.search.ranking import Candidate, section_key

#: Scores this near to each other are a tie.
TIE = 0.01
#: Bytes of a context that are read: about as many as a prompt holds.
MAX_CONTEXT_BYTES = 1750


def break_ties_by_context(
    candidates: Sequence[Candidate], context: str, idf: Mapping[int, float]
) -> tuple[Candidate, ...]:
    """Return the candidates with ties broken by a reader's context. A chunk in another place has its score.

    Args:
        context: what a reader says of themselves.
        idf: the idf of the context's terms in the index.
    """
    ordered = list[Candidate]()
    rest = _with_named_tabs(candidates, TabNames(context))
    while rest:
        tied = [c for c in rest if rest[0].score - c.score <= TIE]
        rest = rest[len(tied) :]
        # By the idf of the context's terms that a chunk holds.
        ordered += _in_places(sorted(tied, key=lambda c: -sum(idf[term] for term in c.lexical.among(idf))), tied)
    return tuple(ordered)


def _with_named_tabs(candidates: Sequence[Candidate], names: TabNames) -> list[Candidate]:
    """Return the candidates with those of the named tab first among their section's places."""
    ordered, sections = list(candidates), defaultdict[object, list[int]](list)
    labels = [TAB_LABEL.findall(c.chunk.text) for c in candidates]
    for place, candidate in enumerate(candidates):
        sections[section_key(candidate.chunk)].append(place)
    for places in sections.values():
        chosen = names.choose(label for place in places for label in labels[place])
        if chosen is not None:
            # A chunk without a label is of no tab, or of all.
            best = sorted(places, key=lambda place: bool(labels[place]) and chosen not in labels[place])
            moved = _in_places([candidates[place] for place in best], [candidates[place] for place in places])
            for place, candidate in zip(places, moved, strict=True):
                ordered[place] = candidate
    return ordered


def _in_places(candidates: Sequence[Candidate], places: Sequence[Candidate]) -> list[Candidate]:
    return [c._replace(score=place.score) for c, place in zip(candidates, places, strict=True)]
