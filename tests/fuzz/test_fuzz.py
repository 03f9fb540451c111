"""The fuzzer's targets in the suite: hypothesis tries each on a few inputs, and on every captured page."""

from __future__ import annotations

import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chapterverse.indexing.chunking import ChunkSizes, chunk
from chapterverse.model import Block, BlockKind, Page, Scope, Section
from fuzz import run, targets
from fuzz.choices import Choices, html_of, markdown_of, page_of

TESTS = Path(__file__).parents[1]

# Bytes that mean something to a page, beside any.
SNIPPETS = st.sampled_from(
    "<p> </p> <li> <table><td> <pre> <h2 id='a'> <!-- --> &amp; ``` ### - > | <Tabs> {x} import {/* :::note !!! [^1]:"
    " \n \x00 é".split(" ")
).map(str.encode)
DATA = st.one_of(
    st.binary(max_size=400), st.lists(st.one_of(SNIPPETS, st.binary(max_size=6)), max_size=40).map(b"".join)
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DATA)
@pytest.mark.parametrize("name", targets.TARGETS)
def test_the_property_holds(name: str, data: bytes) -> None:
    targets.TARGETS[name](data)


@pytest.mark.parametrize("path", sorted((TESTS / "sites").rglob("*.html")), ids=lambda path: path.parent.name)
def test_the_properties_hold_for_captured_pages(path: Path) -> None:
    targets.any_html(path.read_bytes())


def test_the_fuzzer_knows_all_targets() -> None:
    assert set(run.TARGETS) == set(targets.TARGETS)
    assert all(next(run._seeds(name)) for name in run.SEEDS)


def test_bytes_make_pages_of_every_form() -> None:
    samples = [random.Random(seed).randbytes(300) for seed in range(60)]
    html = "".join(html_of(Choices(data)) for data in samples)
    assert all(f"<{name}" in html for name in "p h2 pre ul ol table dl blockquote details section".split())
    markdown = "\n".join(markdown_of(Choices(data)) for data in samples)
    assert all(mark in markdown for mark in ("```py", "| --- |", "- x", "> ", "!!! note", "## x"))
    kinds = {block.kind for data in samples for section in page_of(Choices(data)).sections for block in section.blocks}
    assert len(kinds) == 5


# Each property can fail


def page_of_one(text: str) -> Page:
    return Page("a.md", "https://docs.example/", "T", "en", (Section(None, 0, None, (), (paragraph(text),)),))


def paragraph(text: str) -> Block:
    return Block(BlockKind.PARAGRAPH, text)


def test_a_missing_character_is_noticed() -> None:
    with pytest.raises(AssertionError, match="lost"):
        targets._check_nothing_missing("seen and gone", page_of_one("seen"))
    targets._check_nothing_missing("seen", page_of_one("seen"))


def test_a_missing_block_is_noticed() -> None:
    hidden = Block(BlockKind.QUOTE, "> shown", parts=(paragraph("hidden"),))
    page = Page("a.md", "https://docs.example/", "T", "en", (Section(None, 0, None, (), (hidden,)),))
    with pytest.raises(AssertionError, match="lost 'hidden'"):
        targets._check_chunks(page)


def test_a_chunk_over_the_cap_is_noticed() -> None:
    found = chunk(page_of_one("word " * 100), Scope("docs"), "none/0")
    with pytest.raises(AssertionError, match="over the cap"):
        targets._check_sound(found, ChunkSizes(32, 64))


@pytest.mark.skipif(find_spec("atheris") is not None, reason="Atheris is installed")
def test_without_atheris_one_sentence_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-m", "fuzz.run"], cwd=TESTS, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "Atheris is missing: install tests/fuzz/requirements.txt (Linux, Python 3.11 to 3.13).\n"
