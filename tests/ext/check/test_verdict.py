"""The one function that judges a sentence: supports, contradicts or silent; and what makes an answer partial."""

from __future__ import annotations

import time

import pytest

from chapterverse_api.draft.draft import Span
from chapterverse_api.ext.check.analyzed_text import AnalyzedPassage, AnalyzedSentence
from chapterverse_api.ext.check.results import VerifiedDraft
from chapterverse_api.ext.check.verdict import judge, load_model
from chapterverse_api.ext.check.verifier import verify
from ext.check.passages import equal_weights, passage

PATH = ("Quill", "Caching")
CACHE = (
    "The cache is kept in `.quill/cache` for 30 days by default. A build reads it before it renders a page.\n\n"
    "| Command | What it does |\n| --- | --- |\n| `quill cache clean` | Removes every entry of the cache. |\n"
    "| `quill cache list` | Prints every entry of the cache. |\n\n"
    "Do _not_ remove the folder while a build runs.\n\n"
    "```sh\nquill build --out <folder>\nquill deploy --to production\n```\n"
)


def outcome(said: str, text: str = CACHE, kind: str = "prose") -> str:
    sentence = AnalyzedSentence(said, kind, "en", {})
    return judge(sentence, [AnalyzedPassage(passage("1", text, PATH), "en")], [], load_model()).outcome


@pytest.mark.parametrize(
    "said",
    [
        "The cache is kept in `.quill/cache` for 30 days by default.",
        "By default the cache is kept for 30 days in `.quill/cache`.",
        "`quill cache clean` removes every entry of the cache.",
        "Before a build renders a page, it reads the cache.",
        "Do not remove the folder while a build runs.",
    ],
)
def test_what_a_passage_says_is_supported(said: str) -> None:
    assert outcome(said) == "supports"


@pytest.mark.parametrize(
    "said",
    [
        "The cache is kept in `.quill/cache` for 60 days by default.",
        "The cache is kept in `.quill/cache` for 30 hours by default.",
        "The cache is not kept in `.quill/cache` for 30 days by default.",
        "A build reads it after it renders a page.",
    ],
)
def test_what_a_passage_says_otherwise_is_contradicted(said: str) -> None:
    assert outcome(said) == "contradicts"


@pytest.mark.parametrize(
    "said",
    [
        "",
        "Every penguin inherits golden bicycles from the ministry.",
        "The cache is kept in `.quill/store` for 30 days by default.",
        "Plugins are written in Rust and compiled to WebAssembly.",
    ],
)
def test_of_the_rest_a_passage_is_silent(said: str) -> None:
    assert outcome(said) == "silent"


@pytest.mark.parametrize(
    ("source", "said", "expected"),
    [
        ("22 workers", "twenty-two workers", "supports"),
        ("twenty-two workers", "22 workers", "supports"),
        ("20 workers", "twenty-two workers", "contradicts"),
        ("twenty-two workers", "twenty workers", "contradicts"),
        ("a pool of 2 days", "a two-day pool", "supports"),
        ("a pool of 2 days", "a three-day pool", "contradicts"),
        ("a two-day pool", "a 2-day pool", "supports"),
        ("a 2-day pool", "a two-day pool", "supports"),
        ("a pool of 2 days", "a 2-day pool", "supports"),
        ("a two-day pool", "a 3-day pool", "contradicts"),
        ("a 2-hour pool", "a two-day pool", "contradicts"),
        ("a 2-hour pool", "a 2-day pool", "contradicts"),
        ("21 workers", "twenty-one workers", "supports"),
        ("20 workers", "twenty-one workers", "contradicts"),
        ("75 workers", "seventy-five workers", "supports"),
        ("80 workers", "seventy workers", "contradicts"),
    ],
)
def test_a_number_in_words_is_that_number(source: str, said: str, expected: str) -> None:
    sentence = "To render all pages of the manual it takes {} on the server."
    assert outcome(sentence.format(said), sentence.format(source)) == expected


@pytest.mark.parametrize("stress", ["*not*", "**not**", "_not_", "__not__"])
def test_stress_hides_no_negation(stress: str) -> None:
    source = f"You should {stress} remove the folder while a build runs on the server."
    assert outcome("You should not remove the folder while a build runs on the server.", source) == "supports"
    assert outcome("You should remove the folder while a build runs on the server.", source) == "contradicts"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("quill build --out dist", "silent"),
        ("quill build --out <dir>\nquill deploy --to production", "supports"),
        ("quill build --out OUT_DIR", "supports"),
        ("quill deploy --to production\nquill build --out <folder>", "silent"),
        ("quill deploy --to staging", "silent"),
        ("quill cache clean", "supports"),
    ],
)
def test_code_is_compared_line_by_line_in_order(code: str, expected: str) -> None:
    assert outcome(f"```sh\n{code}\n```", kind="code") == expected


@pytest.mark.parametrize(
    "said",
    [
        "A build always reads the whole cache before it renders all pages.",
        "Every build must always read the cache before it renders all pages.",
    ],
)
def test_what_goes_further_than_a_passage_is_not_supported(said: str) -> None:
    assert outcome(said, "A build reads the cache before it renders a page.") == "silent"


@pytest.mark.parametrize(("name", "longer"), [("-x", "foo-x"), ("--out", "--out-dir"), ("_bar", "foo_bar")])
def test_a_name_is_not_said_by_a_longer_one(name: str, longer: str) -> None:
    sentence = "The tool `{}` prints every entry of the cache."
    assert outcome(sentence.format(name), sentence.format(longer)) == "silent"
    assert outcome(sentence.format(name), sentence.format(name)) == "supports"


def test_a_variable_may_stand_behind_letters() -> None:
    sentence = "The tool `{}` prints every entry of the cache."
    assert outcome(sentence.format("$HOME"), sentence.format("x$HOME")) == "supports"
    assert outcome(sentence.format("HOME"), sentence.format("xHOME")) == "silent"


COMPOSE = (
    "1. Write `compose.yaml`:\n\n"
    "   ```yaml\n   services:\n     quill:\n       labels:\n"
    '         - "quill.http=true"  # shown to readers\n         - "quill.port=8080"\n       command:\n'
    "         - serve\n   ```\n\n"
    "2. Open a shell:\n\n   ```pycon\n   >>> import quill\n   >>> quill.serve()\n   ```\n\n"
    "3. In a notebook:\n\n   ```\n   ! quill build --out\u00a0site\n   ```\n"
)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ('labels:\n  - "quill.http=true"\n  - "quill.port=8080"', "supports"),
        ('- "quill.port=8080"\ncommand:\n  - serve', "supports"),
        ('labels:\n* "quill.http=true"', "supports"),
        ('- "quill.port=9090"', "silent"),
        ('- "quill.http=true"  # hidden from readers', "silent"),
        (">>> import quill\n>>> quill.serve()", "supports"),
        ("import quill\nquill.serve()", "supports"),
        (">>> import quill\n>>> quill.stop()", "silent"),
        ("quill build --out site", "supports"),
        ("! quill build --out site", "supports"),
        ("> - \n* -", "silent"),
    ],
)
def test_marks_of_items_and_prompts_are_no_part_of_a_line_on_either_side(code: str, expected: str) -> None:
    assert outcome(f"```\n{code}\n```", COMPOSE, kind="code") == expected


OPTIONS = (
    "| Option | Type | Required | Default | Description |\n| --- | --- | --- | --- | --- |\n"
    "| `port` | number | No | 3000 | The port that the server listens on. |\n"
    "| `token` | string | **Yes** | – | The token by which a reader signs in. |\n"
    "| `theme` | `a \\| b` | ✗ | light | The colors of the pages that readers see. |\n\n"
    "| Plan | Search | Export to PDF | Price |\n| --- | --- | --- | --- |\n"
    "| Free | Yes | No | 0 |\n| Team | ✅ | ✔️ | 20 |\n\n"
    "| Flag | Mandatory | Deprecated | Meaning |\n| --- | --- | --- | --- |\n"
    "| `--region` | Yes | No | Where the bucket lies. |\n| `--dry` | No | ✓ | Prints the plan. |\n"
)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("`port` is the port that the server listens on, 3000 by default.", "supports"),
        ("The `port` option is not required.", "supports"),
        ("`port` is optional and defaults to 3000.", "supports"),
        ("The optional `theme` setting chooses the colors of the pages.", "supports"),
        ("The `token` option is required.", "supports"),
        ("The Free plan has search but no export to PDF.", "supports"),
        ("The Free plan does not include export to PDF.", "supports"),
        ("The Team plan has export to PDF.", "supports"),
        ("The `port` option is required.", "contradicts"),
        ("The `theme` option is required.", "contradicts"),
        ("The `token` option is not required.", "contradicts"),
        ("The Free plan has export to PDF.", "contradicts"),
        ("The Team plan has no export to PDF.", "contradicts"),
        ("`token` is optional.", "contradicts"),
        ("`--dry` is deprecated.", "supports"),
        ("`--region` is mandatory and says where the bucket lies.", "supports"),
        ("`--region` is deprecated.", "contradicts"),
    ],
)
def test_a_bare_cell_is_the_value_of_its_column(said: str, expected: str) -> None:
    assert outcome(said, OPTIONS) == expected


SERVER = (
    "Run `quill migrate` before you upgrade. Never stop the server while the backup runs.\n\n"
    "The cache is kept for 30 days. At most 5 workers start. Plugins override themes.\n\n"
    "`quill build` writes the site, and `quill ship` copies it to the bucket.\n\n"
    "Use the `--force` flag only if the lock is stale. Calls to the server fail if the lock is stale.\n"
)


@pytest.mark.parametrize(
    "said",
    [
        "Avoid running `quill migrate` before you upgrade.",
        "Do anything but run `quill migrate` before you upgrade.",
        "It is false that plugins override themes.",
        "It is a mistake to run `quill migrate` before you upgrade.",
        "`quill build` fails to write the site.",
        "Plugins rarely override themes.",
        "Stop the server while the backup runs.",
        "At most 30 workers start.",
        "`quill ship` writes the site, and `quill build` copies it to the bucket.",
    ],
)
def test_what_turns_a_sentence_round_is_not_supported(said: str) -> None:
    assert outcome(said, SERVER) != "supports"


@pytest.mark.parametrize(
    "said",
    [
        "Before you upgrade, run `quill migrate`.",
        "Avoid stopping the server while the backup runs.",
        "Themes are overridden by plugins.",
        "The site is written by `quill build` and copied to the bucket by `quill ship`.",
        "If the lock is stale, calls to the server fail.",
        "Up to 5 workers start, and the cache is kept for 30 days.",
    ],
)
def test_other_words_for_the_same_are_supported(said: str) -> None:
    assert outcome(said, SERVER) == "supports"


def test_look_alikes_of_other_scripts_are_the_same_letters() -> None:
    said = "The c\u0430che is kept in `.quill/cache` for 30 d\u0430ys by default."
    assert outcome(said) == "supports"
    assert outcome(said.replace("is kept", "is n\u043et kept")) != "supports"


@pytest.mark.parametrize("mark", ["\u202e", "\u200f", "\u2067", "\u200b", "\ufeff"])
def test_marks_of_direction_and_of_nothing_change_nothing(mark: str) -> None:
    assert outcome(f"The cache is {mark}kept in `.quill/cache` for 30 days by default{mark}.") == "supports"
    assert outcome(f"The cache is {mark}not{mark} kept in `.quill/cache` for 30 days by default.") != "supports"


@pytest.mark.parametrize("word", ["alpha", "7", "`a`", "not", "cache", "\u0645\u0631\u062d\u0628\u0627", "a_b.c"])
def test_a_sentence_of_five_thousand_words_takes_bounded_time(word: str) -> None:
    text = " ".join([word] * 5_000)
    started = time.process_time()
    verify((Span(text, ("1",)),), [passage("1", CACHE, PATH), passage("2", text, PATH)], "en", equal_weights)
    assert time.process_time() - started < 2


def checked(*spans: Span) -> VerifiedDraft:
    return verify(spans, [passage("1", CACHE, PATH)], "en", equal_weights)


TRUE = "`quill cache clean` removes every entry of the cache. "
LIE = "Every penguin inherits golden bicycles from the ministry. "


@pytest.mark.parametrize(
    ("text", "partial"),
    [
        (TRUE, False),
        (f"Here are the steps:\n\n{TRUE}", False),
        # One alone, or no more than a fifth, is no reason.
        (TRUE + LIE, False),
        (TRUE * 8 + LIE * 2, False),
        (TRUE * 7 + LIE * 2, True),
        (f"{TRUE}The docs don't say how long that takes.", True),
        (f"{TRUE}The sources leave open whether `--force` helps.", True),
    ],
)
def test_when_an_answer_is_partial(text: str, partial: bool) -> None:
    assert bool(checked(Span(text, ("1",))).partial_reason) is partial


def test_a_cut_answer_is_partial() -> None:
    assert checked(Span(TRUE, ("1",), cut=True)).partial_reason == "cut"


@pytest.mark.parametrize(
    "said",
    [
        "The sources do not mention `worker_setup_hook`, or another hook.",
        "How to ship a module is left open.",
        "Whether a worker survives when its reference was passed on isn't covered.",
        "In `quill.toml`:",
        "Look in these places:",
    ],
)
def test_what_claims_nothing_is_not_judged(said: str) -> None:
    found = checked(Span(said))
    assert (found.claim_count, found.unsupported_count) == (0, 0)
