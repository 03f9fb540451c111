"""Asks the questions of a report against a new index, and says which gaps closed, and which answers changed or broke.

What was answered the last time is kept beside the index, as digests and addresses: no text of a question or an answer,
and nothing of a question that is not in the report any more. It compares with its own answers alone, because those of
readers may be a model's.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from chapterverse.database import make_file
from chapterverse.errors import InputError, ProviderError
from chapterverse.ext.report.document import EXAMPLES, MAX_GROUPS
from chapterverse.ext.report.groups import Group, Searcher, distinct_questions
from chapterverse.ext.report.masking import mask, show
from chapterverse.ext.report.turns import STATUSES, AskedTurn, normalize
from chapterverse.extensions import load
from chapterverse.progress import Progress, track
from chapterverse.settings import Settings
from chapterverse.site.delivery import replace_file

#: Questions of one run.
_MAX_ASKED = 200
_NEEDS_TEXTS = (
    "Nothing was asked again, because no text of a question is known: set CHAPTERVERSE_RECORDS where the service runs "
    "and here."
)
_SESSION = "chapterverse_api.commands:ServiceSession.open"
_UNCHANGED = "The index is that of the last time, so nothing was asked again."

#: What a question got: its status, a digest of the answer, and the cited addresses. Empty if it was not asked.
Row: TypeAlias = list[str]
#: By the digests of all questions that the report shows.
Rows: TypeAlias = Mapping[str, Row]


def ask_again(
    groups: Sequence[Group], searcher: Searcher, settings: Settings, progress: Progress
) -> tuple[dict[str, Any], Callable[[], None]]:
    """Return what is different, and what keeps the answers for the next time.

    If the index is that of the last time, only questions that it was not asked yet are asked. No model writes, reranks
    or checks; an index with vectors asks its embedder. No conversation is kept.

    Raises:
        ChapterVerseError: the service or the index can't be used, or only a part of it, or nothing can be kept.
    """
    shown = [question for group in groups[:MAX_GROUPS] for question in group.questions()[:EXAMPLES]]
    questions = {_key(question): mask(question) for question in shown}
    index, file = searcher.head.token, _file(searcher, settings)
    was, kept = _read(file)
    before = {key: kept.get(key, []) for key in questions}
    # Before any is asked: what is asked no more goes, and asking may cost.
    _keep(file, was, before)
    asked = [key for key in [*questions][:_MAX_ASKED] if index != was or not before[key]]
    now = _ask({key: questions[key] for key in asked}, settings, progress) if asked else {}
    first = _NEEDS_TEXTS if not questions else "" if asked else _UNCHANGED
    keep = partial(_keep, file, index, {**before, **now})
    return ({"first": first} if first else _compare(questions, before, now)), keep


def is_current(searcher: Searcher, turns: Iterable[AskedTurn], settings: Settings) -> bool:
    """Return whether the last report was made of this index, and shows no question that is kept no more."""
    was, kept = _read(_file(searcher, settings))
    return was == searcher.head.token and kept.keys() <= {_key(question) for question in distinct_questions(turns)}


def _ask(questions: Mapping[str, str], settings: Settings, progress: Progress) -> dict[str, Row]:
    off = {"generator": "extractive", "economy_generator": "", "reranker": "none", "checker": "words", "tools": ""}
    session = load(_SESSION)(settings.override(**off, records="", log_questions=False))
    return {key: _ask_one(session, questions[key]) for key in track(progress, "Asking again", [*questions])}


def _ask_one(session: Any, question: str) -> Row:
    try:
        answer = session.answer(query=question)
    # Nothing may be left of it, masked.
    except InputError:
        return ["refused", ""]
    if reason := answer["degraded_reason"]:
        raise ProviderError(f"The questions can't be asked again now: {reason}", retryable=True)
    return [STATUSES.get(answer["status"], "answered"), _digest(answer["response"]), *answer["sources_cited"]]


def _compare(questions: Mapping[str, str], before: Rows, now: Rows) -> dict[str, Any]:
    rows: dict[str, list[dict[str, Any]]] = {"closed": [], "changed": [], "broke": []}
    for key, (status, _, *sections) in now.items():
        if kind := _kind(before[key], now[key]):
            row = {"question": show(questions[key]), "before": before[key][0], "after": status}
            rows[kind].append({**row, "sections": sections[:3]})
    new = sum(not before[key] for key in now)
    counts = ", ".join(f"{len(found)} {kind}" for kind, found in rows.items())
    first = f"Of {len(now) - new} questions that were asked again: {counts}."
    return {"first": first + (f" For the first time {new} were asked." if new else ""), **rows}


def _kind(before: Row, now: Row) -> str:
    """Return the kind of a difference; empty if there is none."""
    if not before or before == now:
        return ""
    if now[0] == "answered" and before[0] in ("refused", "hedged"):
        return "closed"
    return "broke" if before[0] != "refused" and now[0] == "refused" else "changed"


def _file(searcher: Searcher, settings: Settings) -> Path:
    """Return where the answers of this site and version are kept; an embedded store has a folder of its own."""
    store, scope = settings.store.removeprefix(f"edge:{settings.local_folder}"), searcher.head.scope
    return settings.local_folder / f"asked-{_digest(json.dumps([store, scope.site, scope.version]))[:12]}.json"


def _read(file: Path) -> tuple[str, Rows]:
    """Return the index and the rows that were kept; none if they can't be read, as they are made anew."""
    try:
        kept = json.loads(file.read_bytes())
        index, rows = kept["index"], kept["rows"]
        fits = all(isinstance(row, list) and all(isinstance(part, str) for part in row) for row in rows.values())
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return "", {}
    return (index, rows) if fits else ("", {})


def _keep(file: Path, index: str, rows: Rows) -> None:
    write_file(file, json.dumps({"index": index, "rows": rows}), is_private=True)


def write_file(file: Path, text: str, *, is_private: bool = False) -> None:
    """Write a file, which only its owner may read if it is private. Raises `InputError` if it can't be written."""
    try:
        if is_private:
            make_file(file)
            file.chmod(0o600)
        replace_file(file, text.encode())
    except OSError as error:
        raise InputError(f"{file} can't be written: {error.strerror}.") from error


def _key(question: str) -> str:
    return _digest(normalize(question))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
