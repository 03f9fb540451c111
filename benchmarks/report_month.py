"""Measures whether a report names what the docs lack: `report_month.py DATA SITE …` on a made-up month.

DATA is a folder with questions of readers about sections: `sections.jsonl`, `lines.tsv` and `chunks.jsonl.xz`. Of each
site twelve sections are left out of the index: they are the known gaps. Readers ask about them in the words of their
four questions, and also about the rest of the site, and what it seems to answer and does not. The service answers each
question once; the month repeats its log lines. Prints for each site

    gaps     share of the gaps that stand among the first twenty groups. "refused": the same of those gaps of which the
             service refused any question: it answers others from a section near
    mixed    share of the groups that hold questions about two sections; "large": of those with two questions and more
    same     whether a second run gives the same bytes

and exits with 3 if a bar is missed. Choose weights on one half of the sites and report the other.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import lzma
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

from chapterverse.ext.report.groups import Group, Searcher, group_turns
from chapterverse.ext.report.turns import read_log
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse_api import log
from chapterverse_api.commands import ServiceSession

GAPS, FIRST = 12, 20
READER = Path(__file__).parents[1] / "reading" / "chapterverse_reading"
BAR_FOUND, BAR_MIXED = 0.9, 0.1
_DAYS = 30
COMMAND = str(Path(sys.executable).with_name("chapterverse"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("sites", nargs="+")
    parser.add_argument("--keep", type=Path, help="folder for the indexes and logs, used again by a later run")
    arguments = parser.parse_args()
    missed = False
    with contextlib.ExitStack() as stack:
        root = arguments.keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="month-")))
        for site in arguments.sites:
            folder = root / site
            if not (folder / "subjects.json").exists():
                make_month(arguments.data, site, folder)
            missed |= measure(site, folder)
    return 3 if missed else 0


def measure(site: str, folder: Path) -> bool:
    """Print the figures of a site for both logs; return whether a bar is missed by the one with stated refusals."""
    subjects, gaps = json.loads((folder / "subjects.json").read_text())
    state_refusals(folder, subjects, set(gaps))
    bars = [measure_log(site, folder, name, subjects, set(gaps)) for name in ("month.log", "stated.log")]
    return bars[-1]


def measure_log(site: str, folder: Path, name: str, subjects: dict[str, int], gaps: set[int]) -> bool:
    reading = read_log([str(folder / name)], lambda *_: None)
    turns = [turn for turn in reading.turns.values() if turn.status]
    store = open_store(Settings(store=f"edge:{folder / 'index'}"))
    groups = group_turns(turns, Searcher(store.snapshot(store.heads()[0].scope)), lambda *_: None)
    about = [sorted({subjects[question] for question in group.questions()}) for group in groups]
    found = {most_asked(g, subjects) for g in groups[:FIRST] if g.kind == "gap"} & gaps
    refused = {subjects[t.question or ""] for t in turns if t.status != "answered"} & gaps
    sizes = [(len(group.searches), len(subject)) for group, subject in zip(groups, about, strict=True)]
    mixed = [subjects > 1 for questions, subjects in sizes if questions]
    large = [subjects > 1 for questions, subjects in sizes if questions > 1]
    same = report(folder, name) == report(folder, name)
    print(
        f"{site} {name}: gaps {len(found)} of {len(gaps)} (of those ever refused {len(refused)}), "
        f"mixed {sum(mixed)} of {len(mixed)} (large {sum(large)} of {len(large)}), same {same}"
    )
    return len(found) < BAR_FOUND * len(gaps) or sum(mixed) > BAR_MIXED * len(mixed) or not same


def most_asked(group: Group, subjects: dict[str, int]) -> int:
    """Return the subject of more than half of a group's turns; 0 if there is none."""
    counts = Counter(subjects[turn.question or ""] for turn in group.turns)
    subject, count = counts.most_common(1)[0]
    return subject if 2 * count > len(group.turns) else 0


def state_refusals(folder: Path, subjects: dict[str, int], gaps: set[int]) -> None:
    """Write the month as if all that the docs lack had been refused or answered with a reservation, and no more."""
    asked: dict[str, str] = {}
    with (folder / "month.log").open() as lines, (folder / "stated.log").open("w") as file:
        for event in map(json.loads, lines):
            if event["event"] == "query_received":
                asked[event["turn_id"]] = event["question"]
            if event["event"] == "response_sent":
                subject = subjects[asked[event["turn_id"]]]
                lacking = subject in gaps or subject < 0
                chosen = random.Random(event["turn_id"]).choices(("not_in_docs", "partial", "answered"), (17, 2, 1))
                event["status"] = chosen[0] if lacking else "answered"
            file.write(json.dumps(event) + "\n")


def report(folder: Path, name: str) -> bytes:
    command = [COMMAND, "report", "--log", name, "--json", "--store", "edge:index"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout


def make_month(data: Path, site: str, folder: Path) -> None:
    """Write the index without the gaps, the month's log, and what each question is about."""
    dice = random.Random(site)
    sections = [s for line in (data / "sections.jsonl").open() if (s := json.loads(line))["site"] == site]
    gaps = dice.sample([s for s in sections if len(s["path"]) > 1], GAPS)
    write_pages(data, site, {tuple(s["path"]) for s in gaps}, folder / "pages")
    command = [COMMAND, "index", "pages", "--source", "--slugs", "github", "--base-url", "https://docs.example/"]
    subprocess.run([*command, "--store", "edge:index", "-q"], cwd=folder, check=True)
    asked = questions(data, {s["id"] for s in sections})
    gap_ids = {s["id"] for s in gaps}
    events = answer({q for rows in asked.values() for q, _ in rows}, folder)
    with (folder / "month.log").open("w") as file:
        for thread, question in readers(asked, gap_ids, dice):
            write_turn(file, events[question], thread, dice)
    subjects = {q: number for number, rows in asked.items() for q, is_near in rows if not is_near}
    subjects |= {q: -n for n, q in enumerate((q for rows in asked.values() for q, near in rows if near), 1)}
    (folder / "subjects.json").write_text(json.dumps([subjects, sorted(gap_ids)]))


def write_pages(data: Path, site: str, left_out: set[tuple[str, ...]], folder: Path) -> None:
    pages: dict[str, list[str]] = defaultdict(list)
    before: dict[str, tuple[str, ...]] = {}
    with lzma.open(data / "chunks.jsonl.xz", "rt") as lines:
        for row in map(json.loads, lines):
            path = tuple(row["path"])
            if row["site"] != site or path in left_out or not path:
                continue
            if before.get(path[0]) != path:
                pages[path[0]] += [f"{'#' * min(6, depth)} {title}" for depth, title in enumerate(path, 1)][-1:]
            before[path[0]] = path
            pages[path[0]].append(row["text"])
    folder.mkdir(parents=True)
    for number, (title, blocks) in enumerate(pages.items()):
        head = [] if blocks[0] == f"# {title}" else [f"# {title}"]
        (folder / f"{number:04}.md").write_text("\n\n".join(head + blocks))


def questions(data: Path, ids: set[int]) -> dict[int, list[tuple[str, bool]]]:
    """Return by section its questions, and whether each is one that it only seems to answer."""
    found: dict[int, list[tuple[str, bool]]] = defaultdict(list)
    for line in (data / "lines.tsv").open():
        kind, number, _, text = line.rstrip("\n").split("\t")
        if kind in "QN" and int(number) in ids:
            found[int(number)].append((text, kind == "N"))
    return found


def readers(asked: dict[int, list[tuple[str, bool]]], gaps: set[int], dice: random.Random) -> Iterator[tuple[str, str]]:
    """Yield a thread and a question for each turn: gaps by 5 to 14 readers, the rest by few."""
    threads = (f"{number:032x}" for number in count(1))
    for number, rows in sorted(asked.items()):
        own = [q for q, is_near in rows if not is_near]
        for _ in range(dice.randint(5, 14) if number in gaps else dice.choice((0, 1, 1, 2, 3))):
            thread = next(threads)
            for question in dice.sample(own, min(len(own), dice.choice((1, 1, 1, 2)))):
                yield thread, question
        for question in (q for q, is_near in rows if is_near and number not in gaps):
            for _ in range(dice.choice((0, 0, 1, 1, 2))):
                yield next(threads), question


def answer(asked: set[str], folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Answer each question once, and return the events that this writes to the log."""
    stream = io.StringIO()
    log.write_to(stream)
    logging.getLogger("chapterverse").setLevel(logging.INFO)
    settings = Settings(store=f"edge:{folder / 'index'}", log_questions=True, reading_model=str(READER))
    session = ServiceSession.open(settings)
    events = {}
    for question in sorted(asked):
        stream.seek(0)
        stream.truncate()
        session.answer(query=question)
        events[question] = [json.loads(line) for line in stream.getvalue().splitlines()]
    return events


def write_turn(file: Any, events: Sequence[dict[str, Any]], thread: str, dice: random.Random) -> None:
    start = datetime(2026, 10, 1, tzinfo=UTC) + timedelta(seconds=dice.randrange(_DAYS * 86400))
    turn = f"{dice.getrandbits(128):032x}"
    for n, event in enumerate(events):
        time = f"{start + timedelta(milliseconds=n):%Y-%m-%dT%H:%M:%S.%f}"[:23] + "Z"
        file.write(json.dumps(event | {"time": time, "turn_id": turn, "thread_id": thread}) + "\n")


if __name__ == "__main__":
    sys.exit(main())
