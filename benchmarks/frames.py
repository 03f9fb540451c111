"""How often the frame of a question is recognized, on questions that a language model wrote:

    python benchmarks/frames.py [--show definition] [--indexes FOLDER]

`questions/frames.jsonl` beside this file holds 4,285 questions in eight languages with their kind and, where something
is defined or compared, their subjects. The model that wrote them knew nothing of this project. The patterns of
`chapterverse_api/search/frames.json` were written with a look at every other question of each language and kind; the
rest are reported. `--show` prints what went wrong with the first half of a kind.

Two linear models, of the kind and of each word, were trained on the same questions and not taken: they recognized more
(kind .60, subjects .54 of the definitions and .40 of the comparisons), weighed 440 kB, and the readers' questions of
`understanding.py` were answered no better.

With `--indexes`, the folder of `understanding.py`, up to forty headings of each site are asked as "NAME?" and "what is
NAME?": is the section of that heading the first source? Of pairs of them as "A vs B": are both sections quoted?
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from pathlib import Path

from quoting import TRAINED
from understanding import TUNED, Site

from chapterverse.model import Chunk
from chapterverse_api.search.question import read_frame
from chapterverse_api.search.ranking import SectionKey, section_key
from chapterverse_api.search.site_search import SearchRequest, retrieve

QUESTIONS = Path(__file__).with_name("questions") / "frames.jsonl"
#: Kinds that have a frame; the others should have none.
FRAMED = ("definition", "comparison")
#: Headings of each site that are asked for, and the shortest text of their first chunk in characters.
HEADINGS, SHORTEST = 40, 120
#: Pairs of headings of each site that are compared.
PAIRS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", choices=FRAMED, help="print what went wrong with the first half of a kind")
    parser.add_argument("--indexes", type=Path, help="ask for headings of the sites that are indexed here")
    options = parser.parse_args()
    if options.indexes:
        _ask_for_headings(options.indexes)
        return
    numbers: Counter[tuple[str, str]] = Counter()
    figures: defaultdict[str, list[float]] = defaultdict(list)
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        of = row["language"], row["kind"]
        numbers[of] += 1
        frame = read_frame(row["question"], [row["language"]])
        kind = frame.kind if frame else "none"
        wrong = kind != row["kind"] if row["kind"] in FRAMED else kind in FRAMED
        if numbers[of] % 2:
            if options.show == row["kind"] and wrong:
                print(f"  {row['language']} {row['question']!r} {row['subjects']} -> {frame}")
            continue
        language = "English" if row["language"] == "en" else "other languages"
        if row["kind"] in FRAMED:
            subjects = [s.lower() for s in row["subjects"]]
            exact = frame is not None and not wrong and [s.lower() for s in frame.subjects] == subjects
            figures[f"{row['kind']}, {language}: recognized"].append(not wrong)
            figures[f"{row['kind']}, {language}: with its subjects to the letter"].append(exact)
        elif row["kind"] != "option":
            # What an option does is a definition too.
            figures[f"other kinds, {language}: taken for one of them"].append(wrong)
    for name, values in sorted(figures.items()):
        print(f"{name:66} {sum(values) / len(values):.3f} of {len(values)}")


def _ask_for_headings(indexes: Path) -> None:
    first: defaultdict[str, list[bool]] = defaultdict(list)
    for site in (Site.open(indexes, name) for name in (*TUNED, *TRAINED)):
        for name, place in _headings(site):
            for asked in (f"{name}?", f"what is {name}?"):
                found = retrieve(site.snapshot, None, SearchRequest(asked))
                best = next((section_key(c.chunk) for c in found.strong), None)
                first[asked.replace(name, "NAME")].append(best == place)
        headings, chance = _headings(site), random.Random(1)
        for (one, place), (other, place_of_other) in (chance.sample(headings, 2) for _ in range(PAIRS)):
            quoted = _quoted(site, f"{one} vs {other}")
            first["A vs B, both quoted"].append({place, place_of_other} <= quoted)
    for form, values in first.items():
        print(f"{form:20} {sum(values) / len(values):.3f} of {len(values)}")


def _quoted(site: Site, question: str) -> set[SectionKey]:
    answer = site.ask(question)
    cited = {i for segment in answer["segments"] for i in segment["citations"]}
    chunks = {s["chunk_id"]: s["url"] for s in answer["source_chunks"] if s["id"] in cited}
    return {section_key(c) for i, url in chunks.items() for c in site.snapshot.page(url, "url") if c.chunk_id == i}


def _headings(site: Site) -> list[tuple[str, SectionKey]]:
    """Return names of one or two words that one section of the site has in its heading, with that section."""
    sections: dict[SectionKey, Chunk] = {}
    for point in site.snapshot.points():
        chunk = point.chunk
        if chunk.content_type not in ("api", "news") and chunk.heading_path:
            sections.setdefault(section_key(chunk), chunk)
    counts = Counter(path[-1].lower() for _, path in sections)
    named = []
    for place, chunk in sections.items():
        name = re.sub(r"[`*_]", "", place[1][-1].split(": ")[-1].split("(")[0]).strip()
        once = counts[place[1][-1].lower()] == 1 and len(chunk.text) > SHORTEST and len(place[1]) <= 2
        if once and 0 < len(name.split()) <= 2 and not re.fullmatch(r"[\d.v\s-]+", name):
            named.append((name, place))
    random.Random(3).shuffle(named)
    return named[:HEADINGS]


if __name__ == "__main__":
    main()
