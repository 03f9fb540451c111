"""Asks the questions of a report against a new index, and says which gaps closed, and which answers changed or broke.

What was answered the last time is kept beside the index, as digests and addresses: no text of a question or an answer,
and nothing of a question that is not in the report any more.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chapterverse.errors import InputError
from chapterverse.ext.report.groups import Group
from chapterverse.ext.report.masking import show
from chapterverse.ext.report.turns import STATUSES, normalize
from chapterverse.extensions import load
from chapterverse.progress import Progress
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file

#: Questions of one run, and of each group.
MAX_ASKED, _PER_GROUP = 200, 3
NEEDS_TEXTS = (
    "Nothing was asked again, because no text of a question is known: set CHAPTERVERSE_RECORDS where the service runs "
    "and here."
)
_SESSION = "chapterverse_api.commands.session:ServiceSession.open"
_UNCHANGED = "The index is that of the last time, so nothing was asked again."


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a question got.

    Attributes:
        text: a digest of the answer; empty if it is not known.
    """

    status: str
    sections: tuple[str, ...] = ()
    text: str = ""


def ask_again(groups: Sequence[Group], settings: Settings, progress: Progress) -> dict[str, Any]:
    """Return what is different, and keep the outcomes for the next time.

    No model writes, reranks or checks; an index with vectors asks its embedder. No conversation is kept.

    Raises:
        ChapterVerseError: the service or the index can't be used.
    """
    questions = _choose(groups)
    if not questions:
        return {"first": NEEDS_TEXTS}
    session = load(_SESSION)(
        settings.override(generator="extractive", reranker="none", checker="words", records="", log_questions=False)
    )
    kept = settings.local_folder / "asked.json"
    index, before = session.snapshot().head.token, _read(kept)
    if before.get("index") == index:
        return {"first": _UNCHANGED}
    earlier = {
        key: Outcome(**{**row, "sections": tuple(row["sections"])}) for key, row in before.get("rows", {}).items()
    }
    now = {}
    for number, question in enumerate(questions, 1):
        if outcome := _ask(session, question):
            now[question] = outcome
        progress("Asking again", number, len(questions))
    rows = {_digest(normalize(question)): asdict(outcome) for question, outcome in now.items()}
    replace_file(kept, json.dumps({"index": index, "rows": rows}).encode())
    return _compare(now, earlier, questions)


def _choose(groups: Iterable[Group]) -> dict[str, str]:
    """Return the questions of the first groups, with what readers got."""
    chosen: dict[str, str] = {}
    for group in groups:
        got = {turn.question: turn.status or "" for turn in group.turns if turn.question}
        chosen |= {question: got[question] for question in group.questions()[:_PER_GROUP]}
    return dict([*chosen.items()][:MAX_ASKED])


def _ask(session: Any, question: str) -> Outcome | None:
    try:
        answer = session.answer(query=question)
    # Another release may have taken longer ones.
    except InputError:
        return None
    text = _digest(answer["response"])
    return Outcome(STATUSES.get(answer["status"], "answered"), tuple(answer["sources_cited"]), text)


def _compare(now: Mapping[str, Outcome], earlier: Mapping[str, Outcome], got: Mapping[str, str]) -> dict[str, Any]:
    rows: dict[str, list[dict[str, Any]]] = {"closed": [], "changed": [], "broke": []}
    for question, outcome in now.items():
        before = earlier.get(_digest(normalize(question)))
        was = before.status if before else got[question]
        if kind := _kind(outcome, before, was):
            row = {"question": show(question), "before": was, "after": outcome.status}
            rows[kind].append({**row, "sections": list(outcome.sections[:3])})
    counts = ", ".join(f"{len(found)} {kind}" for kind, found in rows.items())
    return {"first": f"Of {len(now)} questions that were asked again: {counts}.", **rows}


def _kind(now: Outcome, before: Outcome | None, was: str) -> str:
    """Return the kind of a difference; empty if there is none.

    Only with an answer of the same kind can one be said to have changed or broken: readers may have got a model's.
    """
    if now.status == "answered" and was in ("refused", "hedged"):
        return "closed"
    if before is None or now == before:
        return ""
    return "broke" if was != "refused" and now.status == "refused" else "changed"


def _read(path: Path) -> dict[str, Any]:
    """Return what was kept; nothing if it can't be read, as it is made anew."""
    try:
        kept = json.loads(path.read_bytes())
        fits = all(set(row) == {"status", "sections", "text"} for row in kept["rows"].values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
    return kept if fits else {}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
