"""Plants forty changes into a foreign documentation and counts what `chapterverse eval --diff` says of them.

    docs_changes.py DATA SITE …

DATA holds `corpora/SITE` (Markdown) and `questions/readers/SITE.jsonl`, whose rows name the sentence that answers.
Twenty changes lose an answer that the docs gave: a section is deleted, the sentence that answers is deleted, an option
that the question names is renamed. Twenty don't: words elsewhere on the page, a moved section, a typing mistake in the
sentence that answers, a moved page. A change is named if its question is among
the lost, and accused if any question is.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from chapterverse.cli import main
from chapterverse.settings import Settings
from chapterverse.text.sentences import split
from chapterverse_api.commands import ServiceSession
from chapterverse_api.ext.evaluation.diff.answers import Change, GivenAnswer, ask, compare
from chapterverse_api.ext.evaluation.diff.sections import IndexedSite, compare_sections
from chapterverse_api.ext.evaluation.questions import QuestionRow, read_judged
from chapterverse_api.ext.evaluation.quoting import bare

_HEADING = re.compile(r"^(#{1,6})\s+(.*)$", re.MULTILINE)
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_NAME = re.compile(r"`([A-Za-z][\w.-]{2,})`|\*\*(\w{3,})\*\*|\b(\w+[_.-]\w+|\w*[a-z][A-Z]\w*)\b")
_REWORDED = {
    "you can": "it is possible to", "for example": "for instance", "in order to": "to", "must": "have to",
    "allows": "lets", "will be": "is going to be", "use": "employ", "may": "might", "also": "as well",
    "if you": "when you",
}  # fmt: skip
#: Changes of each kind; of a kind that a site has too few places for, another one is planted.
_LOSING, _HARMLESS = {"section": 7, "sentence": 7, "option": 6}, {"words": 5, "moved": 5, "typo": 5, "page": 5}


@dataclass(frozen=True)
class Plant:
    """A change of files, by path below the docs; None removes one."""

    kind: str
    row: QuestionRow
    files: dict[str, str | None]


@dataclass(frozen=True)
class Docs:
    """The Markdown of a site, by path below its root."""

    texts: dict[str, str]

    def section(self, row: QuestionRow) -> tuple[int, int] | None:
        """Return where the section that answers begins and ends, None without a heading."""
        text = self.texts[row.file]
        headings = list(_headings(text))
        for number, (at, level, title) in enumerate(headings):
            if row.heading and bare(title) == bare(row.heading) and level > 1:
                return at, next((start for start, other, _ in headings[number + 1 :] if other <= level), len(text))
        return None

    def sentence(self, row: QuestionRow) -> tuple[int, int] | None:
        """Return where the sentence, item, row or line that answers begins and ends."""
        text, key = self.texts[row.file], row.key.key if row.key else ""
        at = text.find(key)
        if at < 0 or text.count(key) > 1:
            return None
        begin, end = text.rfind("\n\n", 0, at) + 2, text.find("\n\n", at)
        block = text[begin : end if end > 0 else len(text)]
        if _in_fence(text, at):
            return text.rfind("\n", 0, at) + 1, text.find("\n", at + len(key)) + 1
        inside = [s for s in split(block) if begin + s.start < at + len(key) and begin + s.end > at]
        return (begin + inside[0].start, begin + inside[-1].end) if inside else None


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    for match in _HEADING.finditer(text):
        if not _in_fence(text, match.start()):
            yield match.start(), len(match[1]), re.sub(r"\s*\{#.*\}", "", match[2])


def _in_fence(text: str, at: int) -> bool:
    return any(m.start() <= at < m.end() for m in _FENCE.finditer(text))


def section(docs: Docs, row: QuestionRow, _: Random) -> dict[str, str | None] | None:
    place, text = docs.section(row), docs.texts[row.file]
    return {row.file: text[: place[0]] + text[place[1] :]} if place else None


def sentence(docs: Docs, row: QuestionRow, _: Random) -> dict[str, str | None] | None:
    place, text = docs.sentence(row), docs.texts[row.file]
    # A line of code is no sentence.
    if not place or _in_fence(text, place[0]):
        return None
    return {row.file: text[: place[0]] + text[place[1] :]}


def option(docs: Docs, row: QuestionRow, chance: Random) -> dict[str, str | None] | None:
    """Rename, throughout the docs, a name of the sentence that the question names too."""
    asked = {word.lower() for word in re.findall(r"[\w.-]+", row.question)}
    names = {n for m in _NAME.findall(row.key.key if row.key else "") for n in m if n.lower() in asked}
    if not names:
        return None
    name = max(sorted(names), key=len)
    new = "".join(chance.choice("bdfgklmnprstvz") + chance.choice("aeiou") for _ in range(4))
    renamed = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])", re.IGNORECASE)
    return {file: renamed.sub(new, text) for file, text in docs.texts.items() if renamed.search(text)}


def words(docs: Docs, row: QuestionRow, _: Random) -> dict[str, str | None] | None:
    place, text = docs.section(row), docs.texts[row.file]
    if not place or not docs.sentence(row):
        return None
    parts = [_reword(text[: place[0]]), text[place[0] : place[1]], _reword(text[place[1] :])]
    return {row.file: "".join(parts)} if "".join(parts) != text else None


def _reword(text: str) -> str:
    found = re.compile(rf"\b({'|'.join(_REWORDED)})\b")
    lines = [
        line if line.startswith(("#", " ", "|")) or "`" in line else found.sub(lambda m: _REWORDED[m[1]], line)
        for line in text.split("\n")
    ]
    return "\n".join(lines)


def moved(docs: Docs, row: QuestionRow, _: Random) -> dict[str, str | None] | None:
    """Move the section that answers to the end of its page."""
    place, text = docs.section(row), docs.texts[row.file]
    if not place or place[1] >= len(text.rstrip()) or re.search(r"^\[[^]]+\]: ", text, re.MULTILINE):
        return None
    rest = text[: place[0]] + text[place[1] :]
    return {row.file: f"{rest.rstrip()}\n\n{text[place[0] : place[1]].rstrip()}\n"}


def typo(docs: Docs, row: QuestionRow, chance: Random) -> dict[str, str | None] | None:
    place, text = docs.sentence(row), docs.texts[row.file]
    if not place or _in_fence(text, place[0]):
        return None
    told = re.sub(r"`[^`]*`|\]\([^)]*\)", lambda m: " " * len(m[0]), text[place[0] : place[1]])
    long = [m for m in re.finditer(r"\b[a-z]{6,}\b", told) if m[0] not in row.question.lower()]
    if not long:
        return None
    word = chance.choice(long)
    at = place[0] + word.start() + 2
    return {row.file: text[:at] + text[at + 1] + text[at] + text[at + 2 :]}


def page(docs: Docs, row: QuestionRow, _: Random) -> dict[str, str | None] | None:
    file = Path(row.file)
    if file.stem == "index":
        return None
    return {row.file: None, str(file.parent / "zz" / file.name): docs.texts[row.file]}


Make = Callable[[Docs, QuestionRow, Random], dict[str, str | None] | None]
MAKES: dict[str, Make] = {f.__name__: f for f in (section, sentence, option, words, moved, typo, page)}


def plants(docs: Docs, rows: list[QuestionRow], kinds: dict[str, int], chance: Random) -> list[Plant]:
    """Return so many changes of these kinds, each for another question as long as there are enough."""
    places = {
        kind: [
            Plant(kind, r, files)
            for r in chance.sample(rows, len(rows))
            if (files := MAKES[kind](docs, r, chance)) and not (kind in _LOSING and _stands_elsewhere(docs, r, files))
        ]
        for kind in kinds
    }
    chosen = [plant for kind, number in kinds.items() for plant in places[kind][:number]]
    spare = [plant for kind, number in kinds.items() for plant in places[kind][number:]]
    return [*chosen, *spare][: sum(kinds.values())]


def _stands_elsewhere(docs: Docs, row: QuestionRow, files: dict[str, str | None]) -> bool:
    """Return whether the words that answer still stand after a change, so that nothing is lost."""
    return row.key is not None and any(row.key.key in (text or "") for text in {**docs.texts, **files}.values())


@dataclass(frozen=True)
class Bench:
    """A site that is indexed, its questions, and what they are answered."""

    root: Path
    docs: Docs
    rows: list[QuestionRow]
    answers: list[GivenAnswer]
    site: IndexedSite

    @classmethod
    def open(cls, source: Path, questions: Path, root: Path) -> Bench:
        shutil.copytree(source, root / "docs")
        texts = {
            str(f.relative_to(root / "docs")): f.read_text("utf-8")
            for f in sorted((root / "docs").rglob("*"))
            if f.suffix in (".md", ".mdx")
        }
        rows = [r for r in read_judged(questions) if not r.history]
        session = _index(root, "base")
        site = IndexedSite.from_snapshot(session.snapshot())
        return cls(root, Docs(texts), rows, ask(rows, session, _quiet, ""), site)

    @property
    def answered(self) -> list[QuestionRow]:
        """The questions whose answer quotes what answers them."""
        pairs = zip(self.rows, self.answers, strict=True)
        right = [r for r, a in pairs if r.key and a.state == "answered" and bare(r.key.key) in bare(a.text)]
        return [r for r in right if r.file in self.docs.texts]

    def changes(self, plant: Plant) -> list[Change]:
        """Return what a change does to the answers; the docs are as before afterwards."""
        shutil.rmtree(self.root / "now", ignore_errors=True)
        shutil.copytree(self.root / "base", self.root / "now")
        try:
            self._write(plant.files)
            session = _index(self.root, "now")
            now = IndexedSite.from_snapshot(session.snapshot())
            answers = self.answers, ask(self.rows, session, _quiet, "")
            return compare(self.rows, answers, (self.site, now), compare_sections(self.site, now))
        finally:
            self._write({file: self.docs.texts.get(file) for file in plant.files})

    def _write(self, files: dict[str, str | None]) -> None:
        for name, text in files.items():
            file = self.root / "docs" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink()
            else:
                file.write_text(text, "utf-8")


def _index(root: Path, name: str) -> ServiceSession:
    store, ledger = f"edge:{root / name / 'index'}", f"sqlite:{root / name / 'ledger.db'}"
    (root / name).mkdir(exist_ok=True)
    options = ["--store", store, "--ledger", ledger, "--site", "site", "--base-url", "https://docs.example.com/"]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        main(["index", str(root / "docs"), "--source", *options])
    settings = Settings.from_environment(store=store, ledger=ledger, site="site", generator="extractive")
    return ServiceSession.open(settings)


def _quiet(*_: object) -> None:
    """Report nothing."""


def measure(data: Path, site: str) -> None:
    """Print what was said of each change of one site."""
    chance = Random(site)
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.open(data / "corpora" / site, data / "questions" / "readers" / f"{site}.jsonl", Path(folder))
        alone = [r for r in bench.answered if r.id not in _also(data, site)]
        named = false = 0
        losing, harmless = (
            plants(bench.docs, alone, _LOSING, chance),
            plants(bench.docs, bench.answered, _HARMLESS, chance),
        )
        for plant in [*losing, *harmless]:
            lost = {c.question.id: c.reason for c in bench.changes(plant) if c.outcome == "lost"}
            hit = plant.row.id in lost
            named, false = named + (hit and plant.kind in _LOSING), false + (bool(lost) and plant.kind in _HARMLESS)
            print(f"{site} {plant.kind:9} {plant.row.id:14} {'named' if hit else '-':6} {lost}", flush=True)
    print(f"{site}: {named} of {len(losing)} lost answers named, {false} of {len(harmless)} harmless changes accused\n")


def _also(data: Path, site: str) -> set[str]:
    """Return the questions that another place answers too: they lose nothing when one is gone."""
    import json

    lines = (data / "questions" / "readers" / f"{site}.jsonl").read_text("utf-8").splitlines()
    return {row["id"] for row in map(json.loads, lines) if row["also"]}


if __name__ == "__main__":
    for name in sys.argv[2:]:
        measure(Path(sys.argv[1]), name)
