"""Whether two states of this project behave alike: `compare.py BEFORE AFTER --source FOLDER [QUESTIONS] …`.

For a change that should change nothing. A state is a checkout that has its `.venv` (`make lint` makes one), a git ref,
for which a worktree with a `.venv` is made in `.cache/compare`, or a file that `--save` wrote. Each state indexes the
sites that are named, and answers the questions about them, through the command line and over HTTP alone:

    --site HTML [QUESTIONS]      a built site
    --source FOLDER [QUESTIONS]  a folder of Markdown or MDX
    --mkdocs CONFIG [QUESTIONS]  a site that MkDocs builds with the plugin, both of the state's own `.venv`

QUESTIONS are rows of `id` and `question`, and perhaps `history`; without them the index alone is compared. Everything
is done three times: without a model, and with two models on loopback (`compare_models.py`), whose answers are right and
wrong in many ways. What is compared:

    index, status, check, ask, eval   what they print with --json, and their exit codes
    export                            each point, and the file's bytes
    search, chat, stream, retrieve    for every question; what streams event by event
    signed history                    a conversation of four questions, of which the service signs its part
    routes                            all others, the OpenAPI document, good and bad requests
    models                            whatever the models were asked

What is new in every run (ids of turns, times, ports, signatures) is left out. Prints the first differences of each kind
and how many there are, and exits with 3 where anything differs. A saved file names its sites, so they may be left out
beside one. `--save FILE` keeps what the last state did; for that, one state is enough.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import hashlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from compare_models import Models
from compare_requests import ORIGIN, REQUESTS, reply

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("site", "source", "mkdocs")

#: Settings of the three times. An index is made anew where another embedder is named.
RUNS = {
    "quotes": {},
    "openai": {"GENERATOR": "openai:stand-in", "RECORDS": "sqlite:records.db"},
    "cohere": {"GENERATOR": "cohere", "RERANKER": "cohere", "EMBEDDER": "cohere:embed-english-light-v3.0"},
}
_KEY = hashlib.sha256(b"compare").hexdigest()
_SERVED = {"RATES": "off", "DAILY_BUDGET_USD": "off", "ALLOWED_ORIGINS": ORIGIN, "SIGNING_KEY": _KEY}

#: Fields whose values are new in every run.
_NEW = frozenset(
    "turn_id thread_id timestamp execution_time signature published_at last_indexed_at seconds timings created "
    "created_at processed_at query_id date content-length x-request-id".split()
)
#: What else is: the port of an address on loopback, the mark that is drawn for each prompt, and the id of a completion.
_DRAWN = re.compile(
    r"(?<=127\.0\.0\.1:)\d+|(?<=cv-source-)[0-9a-f]{16}|(?<=cv-sources-)[0-9a-f]{16}|(?<=chatcmpl-)[0-9a-f]{32}"
)
#: The state of a plan: packed JSON with an expiry, the id of a key, and a tag.
_PLAN_STATE = re.compile(r"(eJ[\w-]+=*)\.[0-9a-f]{16}\.[0-9a-f]+")
_ABSENT = "(nothing)"
#: Suggestions end where they take over 0.1 s, so on a busy machine one list may be the beginning of the other: that is
#: no difference, unless so many of them are gone.
_SUGGESTED, _LEAST = "follow_ups", 0.95

#: What a state did, by the place "docs | run | what | which".
Behavior = dict[str, Any]
Done = Iterator[tuple[str, str, Any]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", nargs="+", metavar="STATE", help="one or two: a checkout, a git ref, a saved file")
    for kind in KINDS:
        parser.add_argument(f"--{kind}", nargs="+", action="append", default=[], metavar=("PATH", "QUESTIONS"))
    parser.add_argument("--runs", nargs="+", choices=RUNS, help="some of the three")
    parser.add_argument("--save", type=Path, metavar="FILE.json.gz", help="keep what the last state did")
    parser.add_argument("--show", type=int, default=3, metavar="N", help="differences of each kind to show")
    asked = parser.parse_args()
    saved = [Recording.read(Path(state)) if Path(state).is_file() else None for state in asked.states]
    first = next(filter(None, saved), Recording({}, list(RUNS), {}))
    given = [Docs(kind, *map(os.path.abspath, paths)) for kind in KINDS for paths in getattr(asked, kind)]
    docs = {doc: doc.digest() for doc in given or first.docs}
    runs = asked.runs or first.runs
    if len(asked.states) > 2 or not docs:
        parser.error("name one or two states, and at least one --site, --source or --mkdocs")
    behaviors: list[Behavior] = []
    for state, kept in zip(asked.states, saved, strict=True):
        if kept and not (docs.items() <= kept.docs.items() and set(runs) <= set(kept.runs)):
            sys.exit(f"{state} was saved with other sites, questions or runs: save it anew.")
        behaviors.append(kept.behavior if kept else record(checkout(state), docs, runs))
    if asked.save:
        Recording(docs, runs, behaviors[-1]).write(asked.save)
    places = tuple(f"{doc.name} | {run} | " for doc in docs for run in runs)
    compared = [{place: value for place, value in one.items() if place.startswith(places)} for one in behaviors]
    return told(compared[0], compared[-1], asked.show)


@dataclass(frozen=True, slots=True)
class Docs:
    """A documentation, of one of `KINDS`; `questions` is "" where none are asked."""

    kind: str
    path: str
    questions: str = ""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.path}"

    def digest(self) -> str:
        """Return a hash of what both states must be given alike, without what builds leave beside a configuration."""
        folder = Path(self.path) if Path(self.path).is_dir() else Path(self.path).parent
        left = {folder / "site", folder / ".cache"} if self.kind == "mkdocs" else set()
        files = sorted(p for p in folder.rglob("*") if p.is_file() and left.isdisjoint(p.parents))
        content = b"".join(p.read_bytes() for p in files) + "".join(map(json.dumps, self.rows())).encode()
        return hashlib.sha256(content).hexdigest()

    def rows(self) -> list[dict[str, Any]]:
        """Return the questions as `search` takes them; a history of plain texts is what the reader asked before."""
        lines = Path(self.questions).read_text("utf-8").splitlines() if self.questions else []
        rows = [json.loads(line) for line in lines if line.strip()]
        for row in rows:
            said = [{"role": "user", "content": s} if isinstance(s, str) else s for s in row.get("history") or []]
            row["history"] = said[-10:]
        return rows


@dataclass(frozen=True, slots=True)
class Recording:
    """What a state did, as it is kept in a file; `docs` with the digests of what it was given."""

    docs: dict[Docs, str]
    runs: list[str]
    behavior: Behavior

    @classmethod
    def read(cls, file: Path) -> Recording:
        with gzip.open(file, "rt", encoding="utf-8") as kept:
            docs, runs, behavior = json.load(kept)
        return cls({Docs(*doc): digest for *doc, digest in docs}, runs, behavior)

    def write(self, file: Path) -> None:
        docs = [[doc.kind, doc.path, doc.questions, digest] for doc, digest in self.docs.items()]
        with gzip.open(file, "wt", encoding="utf-8") as kept:
            json.dump([docs, self.runs, self.behavior], kept)


class State:
    """A checkout that is asked, from a scratch folder."""

    def __init__(self, folder: Path, bin_: Path) -> None:
        self.folder = folder
        self._bin = bin_

    def run(self, settings: dict[str, str], *command: str) -> dict[str, Any]:
        """Run a command; return its exit code, what it printed (read if it is JSON), and why it failed if it did."""
        done = subprocess.run(**self._process(settings, *command), capture_output=True, text=True)
        printed: Any = done.stdout
        with suppress(ValueError):
            printed = json.loads(printed)
        return {"exit": done.returncode, "out": printed, **({"says": done.stderr} if done.returncode == 1 else {})}

    @contextmanager
    def serving(self, settings: dict[str, str]) -> Iterator[http.client.HTTPConnection]:
        log = self.folder / "log"
        with log.open("w") as file:
            serve = self._process(settings | _SERVED, "chapterverse", "serve", "--port", "0")
            server = subprocess.Popen(**serve, stdout=file, stderr=file)
        try:
            end = time.monotonic() + 60
            while not (found := re.search(r"Listening at http://127\.0\.0\.1:(\d+)", log.read_text())):
                if server.poll() is not None or time.monotonic() > end:
                    sys.exit(f"`chapterverse serve` does not start:\n{log.read_text()}")
                time.sleep(0.05)
            yield http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=120)
        finally:
            server.terminate()
            server.wait(30)

    def _process(self, settings: dict[str, str], *command: str) -> dict[str, Any]:
        others = ("CHAPTERVERSE_", "COHERE_", "OPENAI_", "PYTHONPATH")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(others)}
        ours = {f"CHAPTERVERSE_{name}": value for name, value in settings.items()}
        environment = {**kept, **ours, "COHERE_API_KEY": "key", "NO_MKDOCS_2_WARNING": "1"}
        return {"args": [str(self._bin / command[0]), *command[1:]], "cwd": self.folder, "env": environment}


def checkout(state: str) -> Path:
    """Return the folder of a state; for a git ref that is a worktree, made with its environment if need be."""
    folder = Path(state)
    if not folder.is_dir():
        git = ["git", "-C", str(ROOT)]
        found = subprocess.run([*git, "rev-parse", "--verify", f"{state}^{{commit}}"], capture_output=True, text=True)
        if found.returncode:
            sys.exit(f"{state} is no folder, no file and no git ref.")
        folder = ROOT / ".cache" / "compare" / found.stdout[:12]
        if not folder.exists():
            subprocess.run([*git, "worktree", "prune"], check=True)
            subprocess.run([*git, "worktree", "add", "--quiet", "--detach", folder, found.stdout.strip()], check=True)
        subprocess.run(["sh", "scripts/python.sh", "scripts/environment.py", "demo"], cwd=folder, check=True)
    if not (folder / ".venv/bin/chapterverse").exists():
        sys.exit(f"{state} has no .venv with the command chapterverse: run `make lint` there.")
    return folder.resolve()


def record(state: Path, docs: Iterable[Docs], runs: Iterable[str]) -> Behavior:
    """Return what a checkout does with each documentation."""
    found: Behavior = {}
    for doc in docs:
        with tempfile.TemporaryDirectory(prefix="compare-") as folder, Models() as models:
            asked = State(Path(folder), state / ".venv/bin")
            for run in runs:
                print(f"{state}: {doc.name}, {run}", file=sys.stderr)
                store = f"edge:{folder}/{'vectors' if 'EMBEDDER' in RUNS[run] else 'plain'}"
                settings = {**RUNS[run], "STORE": store, "OPENAI_URL": models.url, "COHERE_URL": models.url}
                for what, which, value in _done(asked, doc, settings, models):
                    stable = _stable(value, folder)
                    # They are asked by several threads, in any order.
                    stable = sorted(stable, key=json.dumps) if what == "models" else stable
                    found[f"{doc.name} | {run} | {what} | {which}"] = stable
    return found


def _done(state: State, doc: Docs, settings: dict[str, str], models: Models) -> Done:
    rows, file = doc.rows(), state.folder / "questions.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    if not Path(settings["STORE"].removeprefix("edge:")).exists():
        yield from _indexed(state, doc, settings)
        yield "models", "index", models.taken()
    if not rows:
        return
    found = state.run(settings, "chapterverse", "search", "--questions", file.name, "--top-k", "20", "--json")
    printed = found.pop("out")
    yield "search", "", found
    yield from (("search", row["id"], row["results"]) for row in (printed if found["exit"] == 0 else ()))
    yield "models", "search", models.taken()
    if "GENERATOR" not in settings:
        for row in rows[:3]:
            yield "ask", row["id"], state.run(settings, "chapterverse", "ask", row["question"], "--json")
        if all("expected" in row or row.get("answerable") is False for row in rows):
            yield "eval", "", state.run(settings, "chapterverse", "eval", file.name, "--answers", "--json")
    with state.serving(settings) as service:
        for number, row in enumerate(rows):
            body = {"query": row["question"], "conversation_history": row["history"]}
            kept = {"thread_id": f"t{number // 4}"} if "RECORDS" in settings else {}
            yield "chat", row["id"], reply(service, "POST", "/v1/chat", {**body, **kept})
            yield "stream", row["id"], reply(service, "POST", "/v1/chat", body, {"Accept": "text/event-stream"})
            yield "retrieve", row["id"], reply(service, "POST", "/v1/retrieve", {"query": row["question"], "top_k": 20})
            yield "models", row["id"], models.taken()
        said: list[dict[str, Any]] = []
        for row in rows[:4]:
            answer = reply(service, "POST", "/v1/chat", {"query": row["question"], "conversation_history": said})
            yield "signed history", row["id"], answer
            ours = {"content": answer["body"].get("response"), "signature": answer["body"].get("signature")}
            said += [{"role": "user", "content": row["question"]}, {"role": "assistant", **ours}]
        for number, (method, path, sent, headers) in enumerate(REQUESTS):
            yield "routes", f"{number} {method} {path} {str(sent)[:60]}", reply(service, method, path, sent, headers)
        yield "models", "routes", models.taken()


def _indexed(state: State, doc: Docs, settings: dict[str, str]) -> Done:
    if doc.kind == "mkdocs":
        built = str(state.folder / "site")
        yield "index", "", state.run(settings, "mkdocs", "build", "--quiet", "-f", doc.path, "-d", built)
    else:
        more = ["--source", "--base-url", "https://docs.example/"] if doc.kind == "source" else []
        for time_ in ("first", "again"):
            yield "index", time_, state.run(settings, "chapterverse", "index", doc.path, *more, "--json")
    yield "status", "", state.run(settings, "chapterverse", "status", "--json")
    if doc.kind == "site":
        yield "check", "", state.run(settings, "chapterverse", "check", doc.path, "--json")
    yield "export", "", state.run(settings, "chapterverse", "export", "--canonical", "export")
    exported = state.folder / "export"
    content = exported.read_bytes() if exported.exists() else b""
    for point in map(json.loads, content.splitlines()):
        yield "export", f"{point['source_file_path']} {point['chunk_index']}", point
    yield "export", "bytes", hashlib.sha256(content).hexdigest()


def _stable(value: Any, folder: str) -> Any:
    """Return a value without what is new in every run; that it is there is kept, and of what type."""
    if isinstance(value, dict):
        return {k: f"<{type(v).__name__}>" if k in _NEW else _stable(v, folder) for k, v in value.items()}
    if isinstance(value, list):
        return [_stable(v, folder) for v in value]
    if isinstance(value, str) and (state := _PLAN_STATE.fullmatch(value)):
        plan = json.loads(zlib.decompress(base64.urlsafe_b64decode(state[1])))
        return _stable({**plan, "expiry": 0}, folder)
    return _DRAWN.sub("", value.replace(folder, "")) if isinstance(value, str) else value


def told(before: Behavior, after: Behavior, shown: int) -> int:
    """Print what differs; return the exit code."""
    places = sorted(before.keys() | after.keys())
    kinds = Counter(place.rpartition(" | ")[0] for place in places)
    counts: Counter[str] = Counter()
    for place in places:
        if found := difference(before.get(place, _ABSENT), after.get(place, _ABSENT)):
            kind, (at, old, new) = place.rpartition(" | ")[0], found
            counts[kind] += 1
            if counts[kind] <= shown:
                print(f"{place}{f' at {at}' if at else ''}\n  before: {old}\n  after:  {new}")
    was, now = (sum(map(_suggested, behavior.values())) for behavior in (before, after))
    if min(was, now) < _LEAST * max(was, now):
        counts[_SUGGESTED] = kinds[_SUGGESTED] = abs(was - now)
    for kind, count in counts.items():
        print(f"{kind}: {count:,} of {kinds[kind]:,} differ")
    print(f"{counts.total():,} of {len(places):,} things compared differ.")
    return 3 if counts else 0


def _suggested(value: Any) -> int:
    """Return how many suggestions a value holds."""
    if isinstance(value, dict):
        return len(value.get(_SUGGESTED) or ()) + sum(map(_suggested, value.values()))
    return sum(map(_suggested, value)) if isinstance(value, list) else 0


def difference(before: Any, after: Any, at: str = "") -> tuple[str, str, str] | None:
    """Return where two values first differ, and what stands there in each; None where they are the same."""
    parts: Iterable[tuple[Any, Any, Any]]
    if isinstance(before, dict) and isinstance(after, dict):
        parts = ((key, before.get(key, _ABSENT), after.get(key, _ABSENT)) for key in {**before, **after})
    elif isinstance(before, list) and isinstance(after, list):
        most = min(len(before), len(after)) if at.endswith(f"/{_SUGGESTED}") else None
        parts = ((n, *pair) for n, pair in enumerate(zip_longest(before[:most], after[:most], fillvalue=_ABSENT)))
    elif type(before) is type(after) and before == after:
        return None
    else:
        old, new = (v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in (before, after))
        start = max(0, _shared(old, new) - 40)
        return at, repr(old[start : start + 120]), repr(new[start : start + 120])
    return next((found for key, old, new in parts if (found := difference(old, new, f"{at}/{key}"))), None)


def _shared(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


if __name__ == "__main__":
    sys.exit(main())
