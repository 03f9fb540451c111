"""Compiles the entries of `benchmarks/thesaurus` to `plugin/chapterverse/text/thesaurus.txt`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from chapterverse.text import lexical, thesaurus
from chapterverse.text.thesaurus import LANGUAGE, MAX_EXPRESSION_WORDS, content, key_of

ENTRIES = Path(__file__).parents[1] / "benchmarks" / "thesaurus"
#: Synonyms of an expression. With two to five of them the right page was equally often among the first five results of
#: 512 questions on nine sites.
MAX_SYNONYMS = 3


def rows() -> Iterator[tuple[str, list[str]]]:
    """Yield the rows of all files: an expression, and what documentation says for it."""
    for file in sorted(ENTRIES.glob("*.tsv")):
        for line in file.read_text(encoding="utf-8").splitlines():
            expression, _, synonyms = line.partition("\t")
            yield expression, synonyms.split(", ")


def compile_rows(rows: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Return rows of an expression and its synonyms in compiled form, a line for each expression.

    A synonym of several words is left out: its words say less one by one. The synonyms that most rows name come first.
    """
    counts: dict[str, dict[str, int]] = {}
    for expression, synonyms in rows:
        tokens = list(lexical.stemmed_tokens(expression, LANGUAGE))
        key_stems = {stem for _, stem in content(tokens)}
        if not key_stems or len(tokens) > MAX_EXPRESSION_WORDS:
            continue
        of_expression = counts.setdefault(key_of(tokens), {})
        for synonym in synonyms:
            stems = [stem for _, stem in content(list(lexical.stemmed_tokens(synonym, LANGUAGE)))]
            if len(stems) == 1 and stems[0] not in key_stems:
                of_expression[stems[0]] = of_expression.get(stems[0], 0) + 1
    ordered = (
        (key, sorted(stem_counts, key=lambda stem: -stem_counts[stem])[:MAX_SYNONYMS])
        for key, stem_counts in sorted(counts.items())
    )
    return "".join(f"{key}\t{' '.join(stems)}\n" for key, stems in ordered if stems)


if __name__ == "__main__":
    target = Path(thesaurus.__file__).with_name("thesaurus.txt")
    target.write_text(compile_rows(rows()), encoding="utf-8")
