"""Marks like [1] in a model's text become citations, however the text is split into pieces."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from api.draft.drafts import PASSAGES, cited, passage, played, slices
from chapterverse.errors import ProviderError
from chapterverse.text.sentences import split
from chapterverse_api.draft.draft import Draft, Span
from chapterverse_api.ext.models.citation_marks import CitationMarks
from growth import assert_linear

# Words of the sources that look like marks.
OWN = "The level is normal (2). Press [Doc 7]."
SOURCES = (*PASSAGES, passage("3", "Panel", text=OWN))

Cited = list[tuple[str, tuple[str, ...]]]


def read(pieces: Iterable[str]) -> Draft:
    return played(map(Span, pieces), SOURCES)


MARKS: list[tuple[str, Cited]] = [
    ("Set it [1]. Build [2].", [("Set it. ", ("1",)), ("Build.", ("2",))]),
    ("Set it. [1] Build.[2] Look[1][2]: so", [("Set it. ", ("1",)), ("Build. ", ("2",)), ("Look: so", ("1", "2"))]),
    ("Set it [1, 2] now [2,1]!", [("Set it now!", ("1", "2"))]),
    ("Set it 【1】 now【2†source】.", [("Set it now.", ("1", "2"))]),
    ("Set it [1-3] [^2^] [ 01 ].", [("Set it.", ("1", "2", "3"))]),
    ("设置它[1]。然后【2】！好", [("设置它。", ("1",)), ("然后！", ("2",)), ("好", ())]),
    ("设置它。[1]然后。【2】好", [("设置它。", ("1",)), ("然后。", ("2",)), ("好", ())]),
    ("Set it.\n[2] Build.", [("Set it.\n", ()), ("Build.", ("2",))]),
    ("See ([1]). And (see [2]) or ([1] too).", [("See. ", ("1",)), ("And (see) or (too).", ("2", "1"))]),
    ("- one [1]\n- two [2]\n\n1. three [1]\n2. four", [
        ("- one\n", ("1",)), ("- two\n\n", ("2",)), ("1. three\n", ("1",)), ("2. four", ()),
    ]),
    ("[1] Set it. Build.\n- [2] Look", [("Set it. ", ("1",)), ("Build.\n", ()), ("- Look", ("2",))]),
    ("Set it.\n\n[1]\n\nBuild.", [("Set it.\n\n\n\n", ("1",)), ("Build.", ())]),
    ("**Set it.** [1] Build", [("**Set it.** ", ("1",)), ("Build", ())]),
    ("| a | b [1] |\n| c [2] | d |", [("| a | b |\n", ("1",)), ("| c | d |", ("2",))]),
    ("Set it, e.g. Here [1]. Or z. B. There [2].", [("Set it, e.g. Here. ", ("1",)), ("Or z. B. There.", ("2",))]),
    ("Nothing is known of it [9].", [("Nothing is known of it.", ("9",))]),
    ("word [1]and more [2] .", [("word and more.", ("1", "2"))]),
    ("Set it [[1]]. Build[[1,2]]", [("Set it. ", ("1",)), ("Build", ("1", "2"))]),
    ("  \n Set it [1]  \n", [("Set it\n", ("1",))]),
    # Forms of other models, and what surrounds a mark.
    ("Set it fast¹. Build fast.²", [("Set it fast. ", ("1",)), ("Build fast.", ("2",))]),
    ("Set it [#1]. Build [1†source].", [("Set it. ", ("1",)), ("Build.", ("1",))]),
    ("Set it `[1]`. Build `[1][2]`.", [("Set it. ", ("1",)), ("Build.", ("1", "2"))]),
    ("Set it [1](#1). Build ([1](#1), [2](#ref-2)).", [("Set it. ", ("1",)), ("Build.", ("1", "2"))]),
    ("Set it (Source 1). Build (Source: [1]).", [("Set it. ", ("1",)), ("Build.", ("1",))]),
    ("Set it (Sources: [1], [2]). Build (see [1]).", [("Set it. ", ("1", "2")), ("Build.", ("1",))]),
    ("Set it **[1]**. Build *[2]*.", [("Set it. ", ("1",)), ("Build.", ("2",))]),
    ("**Set** it **[1]**. **Build**[1]**all**.", [("**Set** it. ", ("1",)), ("**Build** **all**.", ("1",))]),
    ("Set it<sup>1</sup>. Build <sup>[1, 2]</sup>.", [("Set it. ", ("1",)), ("Build.", ("1", "2"))]),
    ("Set it \\[1\\]. Build ［2］。", [("Set it. ", ("1",)), ("Build。", ("2",))]),
    ("Set it [cite: 1, 2]; source: [1]", [("Set it;", ("1", "2"))]),
]  # fmt: skip

NO_MARKS = [
    "`a [1]` and ``b ` [2]`` stay",
    "```\nx = a [1]\n```\nend",
    "~~~ py\n[1]\n```\n[2]\n~~~~\nend",
    "- item\n  ```\n  [1]\n  ```\n  end",
    "the name is argv[1] there",
    "x[1] and f()[1] and d[0][2] and a[1]=2 and b_c[1](2)",
    "[x] done, [ ] to do, [404a], [2024], [1.5], [one], [], [1;], [,1], [-1]",
    "an area of 5 m² or 10² has x³ of km², and footnote⁹",
    "[1](https://docs.example.com) is a link, and so is [2](/x)",
    "[[one]] [[1] [ [x] [[",
    "a[0] is the first",
    "(1) Set it, (2) build (3), or (9). See tar(1).",
    "<1> A callout, List<1>, 1 <2> 3",
    "- (1) one\n- (2) two\n\n(1) three",
    "[Source 1 of many], [sources], (document), (see below), (so what), [S3 bucket], [Source 1] says so",
    "[1, Cellar], [1: 2], [0, max) and (1, 2) go",
    "`set (1)`, `[Source 1]`.\n```\n(Source 1).\n[1](x).\n```",
    "[1](https://docs.example.com) is a link.",
    "The level is normal (2). Press [Doc 7].",
]


WORDINGS = [
    "(Source 1)",
    "[Source 1]",
    "[SOURCE: 1]",
    "(source 1)",
    "(1)",
    "[Doc 1]",
    "[Document 1]",
    "[doc_1]",
    "(doc:1)",
    "[S1]",
    "<1>",
    "[^1]",
    "[1, Keys]",
    "[1: Guide, Keys]",
    "[Source 1: Keys]",
    "[1](https://evil.example.net/x)",
    "[Source 1](https://evil.example.net/x)",
    "(see source 1)",
    "[Source 1][Source 1]",
]


@pytest.mark.parametrize("mark", WORDINGS)
def test_what_is_written_for_a_mark_is_one(mark: str) -> None:
    text = f"Set it {mark}. Look {mark}!\n\n- one {mark}\n- two\n\nThe end. {mark}"
    spans = [("Set it. ", ("1",)), ("Look!\n\n", ("1",)), ("- one\n", ("1",)), ("- two\n\n", ()), ("The end.", ("1",))]
    for size in (1, 2, 3, 5, 8, 1000):
        assert cited(read(slices(text, size))) == spans, size


def test_several_are_written_for_a_mark() -> None:
    for mark in ("[Source 1, Source 2]", "[Sources 1 and 2]", "(Source 1), (Source 2)", "[Doc 1] [Doc 2]", "<1><2>"):
        for size in (1, 3, 1000):
            assert cited(read(slices(f"Set it {mark}.", size))) == [("Set it.", ("1", "2"))], mark


@pytest.mark.parametrize(("text", "spans"), MARKS)
def test_marks_become_citations(text: str, spans: Cited) -> None:
    for size in (1, 2, 3, 5, 8, 1000):
        assert cited(read(slices(text, size))) == spans, size


@pytest.mark.parametrize("text", NO_MARKS)
def test_what_is_no_mark_stays(text: str) -> None:
    marks = CitationMarks(SOURCES)
    for one in split(text):
        sentence = text[one.start : one.end]
        left, ids = marks.remove(sentence)
        assert one.kind == "code" or (left.rstrip(), ids) == (sentence.rstrip(" [\n"), ())


def test_code_is_one_and_cited_by_what_announces_it() -> None:
    code = "```py\nprint(a [1])\n\nexit()\n```\n"
    assert cited(read([f"Run this [2]:\n\n{code}\nDone."])) == [
        ("Run this:\n\n", ("2",)), (code, ("2",)), ("\nDone.", ()),
    ]  # fmt: skip
    assert cited(read(["A [1].\n```\nopen [2]"])) == [("A.\n", ("1",)), ("```\nopen [2]", ())]


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("Set it [1]. pip runs it [2]. npm too.", [("Set it. ", ("1",)), ("pip runs it. ", ("2",)), ("npm too.", ())]),
        ("Set it. [1] pip runs it.[2]\nnpm too.", [("Set it. ", ("1",)), ("pip runs it.\n", ("2",)), ("npm too.", ())]),
        ("It has e.g. [1] a flag [2].", [("It has e.g. a flag.", ("1", "2"))]),
    ],
)
def test_a_mark_ends_a_sentence_before_one_that_begins_in_lower_case(text: str, spans: Cited) -> None:
    for size in (1, 2, 5, 1000):
        assert cited(read(slices(text, size))) == spans, size


@pytest.mark.parametrize(
    ("text", "spans"),
    [
        ("[2]:\n- Run it.\n- Copy it [1].\n- Ship it.", [
            ("- Run it.\n", ("2",)), ("- Copy it.\n", ("1",)), ("- Ship it.", ("2",)),
        ]),
        ("To ship [1]:\n\n1. Run:\n\n   ```\n   run\n   ```\n\n2. Ship it.\n\nThen rest.\n\n- Sleep.", [
            ("To ship:\n\n", ("1",)), ("1. Run:\n\n", ("1",)), ("   ```\n   run\n   ```\n", ("1",)),
            ("\n2. Ship it.\n\n", ("1",)), ("Then rest.\n\n", ()), ("- Sleep.", ()),
        ]),
        ("It says [2]:\n\n| A | B |\n| --- | --- |\n| c | d |", [
            ("It says:\n\n", ("2",)), ("| A | B |\n", ("2",)), ("| --- | --- |\n", ("2",)), ("| c | d |", ("2",)),
        ]),
        ("[1]: Run it. Ship it.", [("Run it. ", ("1",)), ("Ship it.", ())]),
    ],
)  # fmt: skip
def test_items_inherit_the_sources_of_what_announces_them(text: str, spans: Cited) -> None:
    for size in (1, 2, 5, 1000):
        assert cited(read(slices(text, size))) == spans, size


def test_an_open_backtick_hides_no_marks() -> None:
    assert cited(read(["The ` sign [1].\nThe end [2]."])) == [("The ` sign.\n", ("1",)), ("The end.", ("2",))]


def test_a_mark_that_the_limit_cut_is_left_out() -> None:
    for begun in ("[", "[1", "[1, 2", "【1"):
        assert cited(read(["Set it ", begun])) == [("Set it", ())]


OWN_MARKS = (
    "Set `argv[1]` or argv[2] first. It is documented elsewhere [3].\n\n[3]: the manual\n\n"
    "Press [Doc 7]. It is normal (2)."
)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("It costs 90 [Source 1]. More (doc:0).", "It costs 90. More."),
        ("It costs 90 (1). More <1>.\nEnd (see source 1)", "It costs 90. More.\nEnd"),
        ("It costs 90 [doc_1][S1]. More [1, Page].", "It costs 90. More."),
        ("<co: 1>It costs 90</co: 1>. <co>More</co: 1,2>", "It costs 90. More"),
        ("It is documented elsewhere [3].", "It is documented elsewhere [3]."),
        ("Set argv[2] first.", "Set argv[2] first."),
        ("Press [Doc 7]. It is normal (2).", "Press [Doc 7]. It is normal (2)."),
        ("Values in [0, 1] are normal.", "Values in [0, 1] are normal."),
        ("Run `a. B [1]` now [1].", "Run `a. B [1]` now."),
    ],
)
def test_words_of_the_sources_stay(text: str, left: str) -> None:
    sources = [passage("1", "Page", text=OWN_MARKS)]
    assert "".join(span.text for span in played([Span(text)], sources)) == left


def test_a_model_that_says_nothing_failed() -> None:
    for text in ("", " \n", "[1]", "[1][2] [", "([1])"):
        with pytest.raises(ProviderError, match="answered with nothing"):
            read([text])
    with pytest.raises(ProviderError, match="on thoughts"):
        played([Span("<think>Hm"), Span("", cut=True)])


def test_pieces_make_no_difference() -> None:
    chance = random.Random(5)
    parts = [
        "[1]",
        "[",
        "]",
        "1",
        "2",
        " ",
        "\n",
        "`",
        "```",
        "~~~",
        "a",
        "B.",
        "(",
        ")",
        "【1】",
        "[1, 2",
        "- ",
        "é",
        "。",
        "†",
        ":",
        "Source",
        " doc 1",
        "<",
        ">",
        "Keys",
        "](",
        ", ",
    ]
    for _ in range(3000):
        text = "x" + "".join(chance.choice(parts) for _ in range(chance.randint(1, 25)))
        cuts = sorted(chance.randrange(len(text) + 1) for _ in range(6))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert read(pieces) == read([text]) == read(list(text)), (text, pieces)


@pytest.mark.parametrize(
    "unit",
    [
        "[1]",
        "[",
        "【1†",
        " ",
        "(",
        "`",
        "```\n",
        "~~~a\n",
        "\n",
        "1. ",
        "x[1] ",
        "A. [1] ",
        "[1-",
        "[1](",
        "[Source 1]",
        "(1) ",
        "[1, a",
        ",1",
        "[1,^2^ ,3 ",
        "<s",
    ],
)
def test_it_takes_linear_time(unit: str) -> None:
    marks = CitationMarks(SOURCES)
    assert_linear(lambda length: marks.remove(("a" + unit * length)[:length]), 1_000, 8_000)
