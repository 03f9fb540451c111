"""How well questions are understood that nobody of this project wrote:

    python benchmarks/understanding.py DATA --indexes FOLDER [--sites httpx,hugo] [--only readers,mistakes] [--show]

DATA holds `questions/readers/NAME.jsonl` and `questions/mtrag-human/queries.jsonl`; FOLDER holds an embedded index of
each site by that name (`chapterverse index PATH --source --store edge:FOLDER/NAME --site NAME`), and `mtrag`.

    readers       questions typed as readers type: is a page that answers among the sources, and cited first?
    mistakes      the same questions with one typing mistake in their rarest word (four kinds, by a fixed seed)
    pairs         each of twelve questions after each other one: does it get the sections that it gets alone?
    follow_ups    turns of human conversations: is a page that answers among the sources, and first?
    second        pairs in questions/second.jsonl: are the right page and section cited first in the second answer, or
                  one of the first answer's instead, and has it other sources than the question alone?

The weights and rules of the service were chosen on httpx, hugo and vitepress; flask, pydantic and starlight are the
half that they were not chosen on. So are the sites whose questions are in `questions/` and came last: scrapy, structlog
and cibuildwheel; celery, huey and django; trio, coverage and marshmallow; pytest, click and aiohttp, asked in other
words than the docs have. The limits of quotes were chosen on the last three too, and how soon a comparison gets another
one with all sites in view. No model is asked.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path
from typing import Any

from chapterverse.calibration import read_question
from chapterverse.settings import Settings
from chapterverse.store import Snapshot
from chapterverse_api.commands import ServiceSession

TUNED = ("httpx", "hugo", "vitepress")
REPORTED = ("flask", "pydantic", "starlight")
#: Sites whose questions were written when the weights were fixed. Of the last three a model was told to avoid the words
#: of the docs.
LATER = ("scrapy", "structlog", "cibuildwheel")
LATEST = ("celery", "huey", "django")
NEWEST = ("trio", "coverage", "marshmallow")
OTHER_WORDS = ("pytest", "click", "aiohttp")
HELD = (*LATER, *LATEST, *NEWEST, *OTHER_WORDS)
#: The sites of which figures are printed.
HALVES = (
    ("chosen on", TUNED),
    ("not chosen on", REPORTED),
    ("not chosen on, later", LATER),
    ("not chosen on, the last", LATEST),
    ("not chosen on, the newest", NEWEST),
    ("in other words than the docs", OTHER_WORDS),
)
#: Questions of sites that DATA has none of.
QUESTIONS = Path(__file__).with_name("questions")
PARTS = ("readers", "mistakes", "pairs", "follow_ups", "second")
#: Questions that the docs don't answer.
FOREIGN = ("not_in_docs", "off_topic")
#: Questions of a site that are asked after each other.
_PAIRED = 12
_SUFFIX = re.compile(r"(?:/?(?:index|_index|README))?\.(?:mdx?|rst|txt|html)$|/(?=$)")


@dataclass
class Site:
    """One index, asked in process."""

    name: str
    session: ServiceSession
    files: dict[str, str] = field(default_factory=dict)
    pages: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path, name: str, model: str = "none") -> Site:
        settings = Settings(
            store=f"edge:{folder / name}", site=name, limiter="memory", daily_budget_usd="off", reading_model=model
        )
        site = cls(name, ServiceSession.open(settings))
        for point in site.snapshot.points():
            site.files[point.chunk.url] = _page(point.chunk.source_file_path)
        return site

    @property
    def snapshot(self) -> Snapshot:
        return self.session.snapshot()

    def ask(self, question: str, history: Sequence[Mapping[str, str]] = ()) -> dict[str, Any]:
        turns = [{"role": t["role"], "content": t["content"][:4000]} for t in history][-10:]
        return self.session.answer(query=question, conversation_history=turns)

    def sources(self, answer: Mapping[str, Any]) -> list[str]:
        return [self.files.get(s["url"], "?") for s in answer["source_chunks"]]

    def cited(self, answer: Mapping[str, Any]) -> list[str]:
        return [self.files.get(url, "?") for url in answer["sources_cited"]]


def _page(path: str) -> str:
    """Return a file's path without its ending, nor the "index" of its folder."""
    return _SUFFIX.sub("", path)


def _matches(gold: str, page: str) -> bool:
    """Whether a file of the corpus is this page of the index, whose root may lie deeper."""
    gold = _page(gold)
    return bool(page) and (gold == page or gold.endswith(f"/{page}"))


def _answers(row: Mapping[str, Any], pages: Sequence[str]) -> list[bool]:
    gold = [row["file"], *(place["file"] for place in row["also"])]
    return [any(_matches(g, page) for g in gold) for page in pages]


def _history(row: Mapping[str, Any], site: Site) -> list[dict[str, str]]:
    """Return the earlier questions with what the service answers to them."""
    turns: list[dict[str, str]] = []
    for asked in row["history"]:
        question = asked if isinstance(asked, str) else asked["content"]
        answer = site.ask(question, turns)
        turns += [{"role": "user", "content": question}, {"role": "assistant", "content": answer["response"]}]
    return turns


def readers(rows: Sequence[Any], site: Site, show: bool) -> Iterator[tuple[str, str, float]]:
    """Yield (kind, figure, value) of each question."""
    for row in rows:
        answer = site.ask(row["question"], _history(row, site))
        refused = answer["status"] == "not_in_docs"
        if row["kind"] in FOREIGN:
            yield row["kind"], "rightly refused", float(refused)
            if show and not refused:
                print(f"  answered {row['kind']:12} {row['question']!r} -> {site.cited(answer)[:2]}", file=sys.stderr)
            continue
        among, first = _answers(row, site.sources(answer)), _answers(row, site.cited(answer)[:1])
        yield row["kind"], "among the sources", float(any(among))
        yield row["kind"], "cited first", float(any(first))
        yield row["kind"], "wrongly refused", float(refused)
        if row["kind"] == "comparison" and row["also"]:
            # Each side has a place of its own; both must be cited.
            sides = [row["file"], row["also"][0]["file"]]
            cited = site.cited(answer)
            yield row["kind"], "both sides", float(all(any(_matches(s, p) for p in cited) for s in sides))
        if show and not any(first):
            status = "refused" if refused else "among" if any(among) else "MISSED"
            print(f"  {status:8} {row['kind']:10} {row['question']!r} gold {_page(row['file'])} #{row['heading']} got "
                  f"{site.cited(answer)[:1]} {site.sources(answer)[:4]}", file=sys.stderr)  # fmt: skip


def mistakes(rows: Sequence[Any], site: Site, show: bool) -> Iterator[tuple[str, str, float]]:
    """Yield figures of the questions as they were typed and with a mistake in the rarest word of each."""
    for row in rows:
        if row["kind"] in (*FOREIGN, "follow_up") or row.get("typo_of"):
            continue
        mistyped = _mistyped(row["question"], site.snapshot, row["id"])
        if not mistyped:
            continue
        kind, text = mistyped
        for name, question in (("as meant", row["question"]), ("mistyped", text)):
            answer = site.ask(question)
            yield name, "answered", float(answer["status"] != "not_in_docs")
            yield name, "among the sources", float(any(_answers(row, site.sources(answer))))
            found = site.session.search(question, 5, {})
            hit = any(_answers(row, [_page(f["source_file_path"]) for f in found]))
            yield name, "page hit@5", float(hit)
            if name == "mistyped":
                yield kind, "page hit@5", float(hit)
                if show and not hit:
                    print(f"  {kind} {question!r} of {row['question']!r} {answer['status']}", file=sys.stderr)


def _mistyped(question: str, snapshot: Snapshot, seed: str) -> tuple[str, str] | None:
    """Return a kind of mistake and the question with it, in its rarest plain word of five letters or more."""
    words = [w for w in re.findall(r"(?<![\w.`-])[a-zA-Z]{5,}(?![\w.`-])", question) if w.islower() or w.istitle()]
    rarity = {}
    for word in words:
        read, _ = read_question(word, snapshot.head.languages, snapshot)
        if read.words and read.familiarity:
            rarity[word] = read.weights[0]
    if not rarity:
        return None
    word = max(rarity, key=lambda w: (rarity[w], w))
    chance = random.Random(seed)
    kind = chance.choice(("swapped", "dropped", "doubled", "replaced"))
    at = chance.randrange(1, len(word) - 1)
    if kind == "swapped" and word[at] == word[at + 1]:
        kind = "dropped"
    near = chance.choice("etaoinsrhldcum".replace(word[at].lower(), ""))
    text = {
        "swapped": word[:at] + word[at + 1] + word[at] + word[at + 2 :],
        "dropped": word[:at] + word[at + 1 :],
        "doubled": word[: at + 1] + word[at:],
        "replaced": word[:at] + near + word[at + 1 :],
    }[kind]
    return kind, question.replace(word, text, 1)


def pairs(rows: Sequence[Any], site: Site, show: bool) -> Iterator[tuple[str, str, float]]:
    """Yield figures of short questions that need no other, each after each other one."""
    short = [r["question"] for r in rows if r["kind"] not in (*FOREIGN, "follow_up")]
    short = sorted((q for q in short if len(q.split()) <= 7), key=lambda q: (len(q.split()), q))[: 2 * _PAIRED : 2]
    alone = {q: site.ask(q) for q in short}
    short = [q for q in short if alone[q]["status"] != "not_in_docs"]
    for before, question in permutations(short, 2):
        history = [{"role": "user", "content": before}, {"role": "assistant", "content": alone[before]["response"]}]
        after = site.ask(question, history)
        same = [s["url"] for s in after["source_chunks"]] == [s["url"] for s in alone[question]["source_chunks"]]
        refused = after["status"] == "not_in_docs"
        yield "all", "other sections", float(not same)
        yield "all", "refused", float(refused)
        if show and not same:
            print(f"  {question!r} after {before!r} {after.get('searched_as')}", file=sys.stderr)


def follow_ups(rows: Sequence[Any], site: Site, show: bool) -> Iterator[tuple[str, str, float]]:
    for row in rows:
        if not row["gold_pages"] or row["answerability"] == "UNANSWERABLE":
            continue
        kind = "first turns" if not row["history"] else "later turns"
        for name, history in (("with history", row["history"]), ("without", [])):
            if kind == "first turns" and name == "without":
                continue
            answer = site.ask(row["question"], history)
            among = [page in row["gold_pages"] for page in site.sources(answer)]
            yield f"{kind} {name}", "among the sources", float(any(among))
            yield f"{kind} {name}", "first", float(any(page in row["gold_pages"] for page in site.cited(answer)[:1]))
            yield f"{kind} {name}", "refused", float(answer["status"] == "not_in_docs")
            if show and name == "with history" and not any(among):
                print(f"  {row['question']!r} {answer['status']} {answer.get('searched_as')}", file=sys.stderr)


def second(rows: Sequence[Any], site: Site, show: bool) -> Iterator[tuple[str, str, float]]:
    """Yield figures of second questions, which point back at the first one or don't."""
    places = {
        # What stands before the first section has no heading but the page's.
        point.chunk.chunk_id: (_page(point.chunk.source_file_path), _heading(point.chunk.heading_path[1:]))
        for point in site.snapshot.points()
    }

    def cited(answer: Mapping[str, Any]) -> list[tuple[str, str]]:
        ids = {source["id"]: source["chunk_id"] for source in answer["source_chunks"]}
        return [places.get(ids[number], ("", "")) for part in answer["segments"] for number in part["citations"]]

    for row in rows:
        before, alone = site.ask(row["first"]), site.ask(row["question"])
        history = [{"role": "user", "content": row["first"]}, {"role": "assistant", "content": before["response"]}]
        after = site.ask(row["question"], history)
        first = cited(after)[:1]
        gold = [(place["page"], _heading([place["heading"]] if place["heading"] else [])) for place in row["gold"]]
        is_right = any(place in gold for place in first)
        kind = f"{row['kind']}, {row['half']}"
        yield kind, "page first", float(any(place[0] == page for place in first for page, _ in gold))
        yield kind, "section first", float(is_right)
        yield kind, "the first one's", float(any(place in cited(before) for place in first) and not is_right)
        sources = [[source["chunk_id"] for source in answer["source_chunks"]] for answer in (after, alone)]
        yield kind, "other than alone", float(sources[0] != sources[1])
        if show and not is_right:
            print(f"  {row['id']} {row['question']!r} gold {gold} got {first}", file=sys.stderr)


def _heading(path: Sequence[str]) -> str:
    """Return the last heading as plain text."""
    return re.sub(r"[`*\[\]]|\(http.*?\)|\{.*?\}", "", path[-1]).strip().lower() if path else ""


def main() -> None:
    options = _options()
    parts = {"readers": readers, "mistakes": mistakes, "pairs": pairs}
    for half, sites in HALVES:
        names = [name for name in sites if name in options.sites and set(options.only) & set(parts)]
        totals: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
        for name in names:
            site = Site.open(options.indexes, name, options.model)
            rows = rows_about(name, options.data)
            for part in options.only:
                if part in parts:
                    if options.show:
                        print(f"{name} {part}", file=sys.stderr)
                    totals[part] += parts[part](rows, site, options.show)
        for part, values in totals.items():
            _print(f"{part}, {half}: {', '.join(names)}", values)
    if "follow_ups" in options.only:
        site = Site.open(options.indexes, "mtrag", options.model)
        rows = read_rows(options.data / "questions" / "mtrag-human" / "queries.jsonl")
        _print("follow_ups", list(follow_ups(rows, site, options.show)))
    if "second" in options.only:
        every: list[tuple[str, str, float]] = []
        rows = read_rows(QUESTIONS / "second.jsonl")
        for name in dict.fromkeys(row["site"] for row in rows):
            site = Site.open(options.indexes, name, options.model)
            every += second([row for row in rows if row["site"] == name], site, options.show)
        _print("second", every)


def _print(title: str, values: Sequence[tuple[str, str, float]]) -> None:
    print(f"\n{title}")
    sums: dict[tuple[str, str], list[float]] = defaultdict(list)
    for kind, figure, value in values:
        sums[figure, kind].append(value)
        if figure in ("among the sources", "cited first", "wrongly refused", "rightly refused") and "readers" in title:
            sums[figure, "ALL"].append(value)
    for figure in dict.fromkeys(f for f, _ in sums):
        line = "  ".join(
            f"{kind} {sum(v) / len(v):.3f} ({len(v)})" for (f, kind), v in sorted(sums.items()) if f == figure
        )
        print(f"  {figure:18} {line}")


def rows_about(site: str, data: Path) -> list[Any]:
    """Return the questions of readers about a site."""
    of_data = data / "questions" / "readers" / f"{site}.jsonl"
    return read_rows(of_data if of_data.exists() else QUESTIONS / of_data.name)


def read_rows(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--indexes", type=Path, required=True)
    parser.add_argument("--sites", default=",".join(TUNED + REPORTED + HELD), type=lambda v: v.split(","))
    parser.add_argument("--only", default=",".join(PARTS), type=lambda v: v.split(","))
    parser.add_argument("--model", default="none", help="folder of the reading model (default: without one)")
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    options = parser.parse_args()
    unknown = Counter(options.only) - Counter(PARTS)
    if unknown:
        parser.error(f"--only takes {', '.join(PARTS)}, not {', '.join(unknown)}")
    return options


if __name__ == "__main__":
    main()
