"""How often the frame of a question is recognized, on questions that a language model wrote:

    python benchmarks/frames.py [--show definition]

`questions/frames.jsonl` beside this file holds 4,285 questions in eight languages with their kind and, where something
is defined or compared, their subjects. The model that wrote them knew nothing of this project. The patterns of
`chapterverse_api/retrieval/frames.json` were written with a look at every other question of each language and kind; the
rest are reported. `--show` prints what went wrong with the first half of a kind.

Two linear models, of the kind and of each word, were trained on the same questions and not taken: they recognized more
(kind .60, subjects .54 of the definitions and .40 of the comparisons), weighed 440 kB, and the readers' questions of
`understanding.py` were answered no better.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path

from chapterverse_api.retrieval.frames import frame_of

QUESTIONS = Path(__file__).with_name("questions") / "frames.jsonl"
#: Kinds that have a frame; the others should have none.
FRAMED = ("definition", "comparison")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", choices=FRAMED, help="print what went wrong with the first half of a kind")
    options = parser.parse_args()
    numbers: Counter[tuple[str, str]] = Counter()
    figures: defaultdict[str, list[float]] = defaultdict(list)
    for line in QUESTIONS.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        of = row["language"], row["kind"]
        numbers[of] += 1
        frame = frame_of(row["question"], [row["language"]])
        kind = frame.kind if frame else "none"
        wrong = kind != row["kind"] if row["kind"] in FRAMED else kind != "none"
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


if __name__ == "__main__":
    main()
