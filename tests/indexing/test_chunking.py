from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from chapterverse.indexing.chunking import ChunkSizes, chunk
from chapterverse.model import (
    MAX_CHUNK_TOKENS,
    TARGET_CHUNK_TOKENS,
    Block,
    BlockKind,
    Chunk,
    Page,
    Scope,
    Section,
    join_blocks,
    replace_unstorable,
)
from chapterverse.text import tokens
from fakes.docs import SCOPE, page, paragraph, prose, section
from growth import assert_linear
from readers.seen import ink, is_within, leaf_texts

FINGERPRINT = "none/0"
SMALL = ChunkSizes(24, 48)


def chunks_of(*blocks: Block, path: tuple[str, ...] = ("Title", "Heading")) -> list[Chunk]:
    made = page("a.md", Section(path[-1] if path else None, 2, "heading", path, blocks))
    return chunk(made, SCOPE, FINGERPRINT)


def fence(lines: list[str], language: str = "python") -> Block:
    head = f"```{language}"
    return Block(BlockKind.CODE, "\n".join((head, *lines, "```")), head, "```")


def table(rows: list[str]) -> Block:
    head = "| Name | Meaning |\n| --- | --- |"
    return Block(BlockKind.TABLE, "\n".join((head, *rows)), head)


def admonition(title: str, parts: tuple[Block, ...]) -> Block:
    return Block(BlockKind.ADMONITION, f"{title}\n\n{join_blocks(parts)}", title, parts=parts)


# Random trees of blocks, of the shapes that readers make

LINES = st.one_of(
    st.text(st.sampled_from("abc DE01.,!?_-#`|*é日語😀\t"), min_size=1, max_size=60).map(str.strip),
    st.builds(str.__mul__, st.sampled_from(["word", "x.y", "----", "日本", "({[", "…"]), st.integers(1, 40)),
    st.integers(1, 80).map(lambda n: prose(n, n)),
    st.text(max_size=40).map(lambda s: " ".join(s.split())),
).filter(bool)

PARAGRAPHS = st.lists(LINES, min_size=1, max_size=6).map("\n".join).map(paragraph)
FENCES = st.tuples(st.lists(st.one_of(LINES, st.just("")), max_size=25), st.sampled_from(["", "py", "x" * 90])).map(
    lambda made: fence(*made)
)
TABLES = st.lists(LINES.map(lambda line: f"| {line} | y |"), max_size=25).map(table)
LEAVES = st.one_of(PARAGRAPHS, FENCES, TABLES, LINES.map(lambda line: Block(BlockKind.LIST_ITEM, f"- {line}")))


def containers(inner: st.SearchStrategy[Block]) -> st.SearchStrategy[Block]:
    heads = st.one_of(st.just("**Note: Mind the gap**"), LINES, st.integers(1, 90).map(lambda n: prose(n, n)))
    return st.builds(admonition, heads, st.lists(inner, min_size=1, max_size=5).map(tuple))


BLOCKS = st.recursive(LEAVES, containers, max_leaves=12)
HEADINGS = st.one_of(LINES, st.integers(1, 120).map(lambda n: prose(n, n)))
PATHS = st.lists(HEADINGS, max_size=4).map(tuple)


@st.composite
def pages(draw: st.DrawFn) -> Page:
    sections = []
    for i in range(draw(st.integers(0, 3))):
        path = draw(PATHS)
        heading = path[-1] if path else None
        blocks = tuple(draw(st.lists(BLOCKS, max_size=6)))
        sections.append(Section(heading, draw(st.integers(0, 3)), f"s{i}", path, blocks, draw(st.booleans())))
    return page("a.md", *sections, title=draw(LINES))


ANYTHING = st.characters(codec=None)
SIZES = st.sampled_from(
    [ChunkSizes(), SMALL, ChunkSizes(16, 32), ChunkSizes(512, 512), ChunkSizes(32, 512), ChunkSizes(200, 200)]
)

HEAVY = [HealthCheck.too_slow, HealthCheck.data_too_large]
thorough = settings(max_examples=60, deadline=None, suppress_health_check=HEAVY)


@thorough
@given(pages(), SIZES)
def test_no_chunk_is_over_the_cap(made: Page, sizes: ChunkSizes) -> None:
    for c in chunk(made, SCOPE, FINGERPRINT, sizes):
        assert tokens.count(c.embed_text) <= sizes.cap


@thorough
@given(pages(), SIZES)
def test_no_text_is_lost(made: Page, sizes: ChunkSizes) -> None:
    held = [ink(c.text) for c in chunk(made, SCOPE, FINGERPRINT, sizes)]
    for part in made.sections:
        for text in leaf_texts(part.blocks):
            # What was cut stands in consecutive chunks, heads and tails between its pieces.
            assert is_within(ink(replace_unstorable(text)), "".join(held))


@thorough
@given(pages(), SIZES)
def test_a_block_that_fits_is_whole_in_one_chunk(made: Page, sizes: ChunkSizes) -> None:
    found = chunk(made, SCOPE, FINGERPRINT, sizes)
    for part in made.sections:
        room = min((sizes.cap - tokens.count(c.embed_text.removesuffix(c.text)) for c in found), default=0)
        for block in part.blocks:
            text = replace_unstorable(block.text).strip()
            if text and tokens.fits(text, room):
                assert any(text in c.text for c in found)


@thorough
@given(st.lists(st.integers(1, 120), min_size=1, max_size=30), PATHS, SIZES)
def test_only_a_single_block_is_over_the_target(lengths: list[int], path: tuple[str, ...], sizes: ChunkSizes) -> None:
    blocks = tuple(paragraph(prose((i, n), n)) for i, n in enumerate(lengths))
    for c in chunk(page("a.md", Section(None, 0, None, path, blocks)), SCOPE, FINGERPRINT, sizes):
        # A path that takes more than half of the target leaves the text at least the other half.
        allowed = max(sizes.target, tokens.count(c.embed_text) - tokens.count(c.text) + sizes.target // 2)
        assert tokens.count(c.embed_text) <= allowed or "\n\n" not in c.text


@thorough
@given(pages(), SIZES)
def test_chunks_are_numbered_named_and_the_same_again(made: Page, sizes: ChunkSizes) -> None:
    found = chunk(made, SCOPE, FINGERPRINT, sizes)
    assert found == chunk(made, SCOPE, FINGERPRINT, sizes)
    assert [c.chunk_index for c in found] == list(range(len(found)))
    assert len({c.chunk_id for c in found}) == len(found)
    assert all(c.text.strip() and c.text == c.text.rstrip() for c in found)


@settings(deadline=None)
@given(st.lists(st.text(ANYTHING, max_size=30), min_size=1, max_size=6), st.text(ANYTHING))
@example(["a\x00b", "\ud800\udc00", "\udfff"], "\ud83d")
def test_what_no_store_can_hold_is_replaced(lines: list[str], title: str) -> None:
    text = "\n".join(lines)
    made = Page(
        "a.md", f"https://x.example/{title}", title, "en", (Section(title, 1, title, (title,), (paragraph(text),)),)
    )
    for c in chunk(made, SCOPE, FINGERPRINT):
        for value in (c.text, c.chapter_title, c.url, c.section_heading or "", *c.heading_path):
            value.encode()
            assert "\x00" not in value
    assert ink(replace_unstorable(text)) in ink("".join(c.text for c in chunk(made, SCOPE, FINGERPRINT)))


# Where a block is cut


def test_small_blocks_share_a_chunk_up_to_the_target() -> None:
    found = chunks_of(*(paragraph(prose(i, 20)) for i in range(9)))
    assert len(found) == 2
    assert all(len(c.embed_text) <= 3.6 * TARGET_CHUNK_TOKENS for c in found)
    # As full as whole blocks allow: the next one would not have fitted.
    first = found[1].text.partition("\n\n")[0]
    assert len(f"{found[0].embed_text}\n\n{first}") > 3.6 * (TARGET_CHUNK_TOKENS - 10)


def test_a_paragraph_put_first_moves_few_borders_of_a_long_section() -> None:
    changed, lengths = [], []
    for seed in range(20):
        blocks = [paragraph(prose((seed, i), 40)) for i in range(120)]
        before = {c.embed_hash for c in chunks_of(*blocks)}
        after = chunks_of(paragraph(prose((seed, "new"), 40)), *blocks)
        changed.append(sum(c.embed_hash not in before for c in after))
        lengths.append(len(after))
    assert min(lengths) >= 25
    assert sum(changed) / len(changed) <= 2
    assert max(changed) <= 6


def test_blocks_of_many_tokens_a_byte_are_packed_again_at_half_the_target() -> None:
    blocks = [paragraph(" ".join(f"{i}.{n}" for n in range(30))) for i in range(20)]
    assert len(blocks[0].text) < 2 * tokens.count(blocks[0].text)
    found = [c.text for c in chunks_of(*blocks)]
    assert "\n\n".join(found) == join_blocks(blocks)
    assert all(MAX_CHUNK_TOKENS / 8 < tokens.count(text) <= MAX_CHUNK_TOKENS for text in found)


def test_sections_are_never_merged() -> None:
    made = page("a.md", section("One", "First."), section("Two", "Second."))
    found = chunk(made, SCOPE, FINGERPRINT)
    assert [(c.section_heading, c.text) for c in found] == [("One", "First."), ("Two", "Second.")]


def test_a_block_between_target_and_cap_is_kept_whole() -> None:
    code = fence([f"value_{i} = compute({i})" for i in range(40)])
    assert TARGET_CHUNK_TOKENS < tokens.count(code.text) < MAX_CHUNK_TOKENS - 10
    assert [c.text for c in chunks_of(code)] == [code.text]


def test_a_long_fence_is_cut_at_lines_with_its_fence_around_each_piece() -> None:
    lines = [f"value_{i} = compute({i})  # step" for i in range(200)]
    found = [c.text for c in chunks_of(fence(lines))]
    assert len(found) > 2
    assert all(text.startswith("```python\n") and text.endswith("\n```") for text in found)
    assert [line for text in found for line in text.split("\n")[1:-1]] == lines


def test_a_fence_inside_a_fence_keeps_its_lines() -> None:
    lines = ["```", "inner", "```"] * 120
    block = Block(BlockKind.CODE, "\n".join(("````md", *lines, "````")), "````md", "````")
    found = [c.text for c in chunks_of(block)]
    assert [line for text in found for line in text.split("\n")[1:-1]] == lines


def test_a_long_table_is_cut_at_rows_with_its_header_over_each_piece() -> None:
    rows = [f"| option_{i} | What option number {i} is good for. |" for i in range(120)]
    found = [c.text for c in chunks_of(table(rows))]
    header = "| Name | Meaning |\n| --- | --- |\n"
    assert len(found) > 2
    assert all(text.startswith(header) for text in found)
    assert [row for text in found for row in text.removeprefix(header).split("\n")] == rows


def test_a_long_admonition_is_cut_between_its_parts_under_its_title() -> None:
    parts = tuple(paragraph(prose(i, 60)) for i in range(12))
    found = [c.text for c in chunks_of(admonition("**Warning: Mind the gap**", parts))]
    assert len(found) > 1
    assert all(text.startswith("**Warning: Mind the gap**\n\n") for text in found)
    assert "\n\n".join(t.removeprefix("**Warning: Mind the gap**\n\n") for t in found) == join_blocks(parts)


def test_a_fence_in_an_admonition_in_a_tab_carries_all_three_heads() -> None:
    code = fence([f"value_{i} = compute({i})" for i in range(150)])
    tab = Block(BlockKind.TAB, "", "=== Linux", parts=(admonition("**Note**", (code,)),))
    tab = replace(tab, text=f"{tab.head}\n\n{join_blocks(tab.parts)}")
    found = [c.text for c in chunks_of(tab)]
    assert len(found) > 2
    assert all(re.match(r"=== Linux\n\n\*\*Note\*\*\n\n```python\n", text) and text.endswith("\n```") for text in found)


def test_a_title_too_long_to_repeat_stands_once() -> None:
    title = prose("title", 400)
    found = [c.text for c in chunks_of(admonition(title, tuple(paragraph(prose(i, 60)) for i in range(9))))]
    assert ink("".join(found)).count(ink(title)) == 1


def test_a_fence_line_too_long_to_repeat_stands_once() -> None:
    language = "python " + " ".join(f'key{i}="{i}"' for i in range(200))
    found = "\n".join(c.text for c in chunks_of(fence(["a = 1"] * 300, language)))
    assert found.count('key199="199"') == 1
    assert found.count("a = 1") == 300


def test_long_prose_is_cut_after_sentences() -> None:
    text = " ".join(prose(i, 12) for i in range(120))
    found = [c.text for c in chunks_of(paragraph(text))]
    assert len(found) > 2
    assert all(t.endswith(".") for t in found)
    assert " ".join(found) == text


def test_a_long_sentence_is_cut_between_words() -> None:
    text = prose("one", 3000).rstrip(".")
    found = [c.text for c in chunks_of(paragraph(text))]
    assert " ".join(found) == text


def test_containers_nested_beyond_reason_are_cut_as_text() -> None:
    block = paragraph("word " * 3000)
    for _ in range(300):
        block = Block(BlockKind.QUOTE, block.text, parts=(block,))
    found = chunks_of(block)
    assert sum(c.text.count("word") for c in found) == 3000


def test_heads_nested_beyond_the_cap_leave_room_for_text() -> None:
    block = paragraph("word " * 3000)
    for i in range(15):
        block = admonition(prose(i, 60), (block,))
    found = chunks_of(block)
    assert sum(c.text.count("word ") + c.text.endswith("word") for c in found) >= 3000
    assert all(tokens.count(c.embed_text) <= MAX_CHUNK_TOKENS for c in found)


# Headings and paths


def test_the_path_is_embedded_first() -> None:
    (found,) = chunks_of(paragraph("Text."), path=("Guide", "Install", "Linux"))
    assert found.embed_text == "Guide > Install > Linux\n\nText."
    assert found.heading_path == ("Guide", "Install", "Linux")


def test_a_path_that_crowds_out_the_text_is_shortened_from_the_middle() -> None:
    path = ("Guide", *(prose(i, 30) for i in range(8)), "Linux")
    (found,) = chunks_of(paragraph("Text."), path=path)
    assert found.heading_path == ("Guide", "Linux")


def test_a_heading_longer_than_its_share_is_cut() -> None:
    path = (prose("title", 500), prose("heading", 500))
    for found in chunks_of(paragraph("Text."), path=path):
        assert tokens.count(" > ".join(found.heading_path)) <= MAX_CHUNK_TOKENS // 4 + 2
        assert all(whole.startswith(part) and part for whole, part in zip(path, found.heading_path, strict=True))


def test_a_heading_with_nothing_below_it_is_its_own_text() -> None:
    made = page("a.md", section("Deprecated since 1.4"), section("Next", "Text."))
    assert [c.text for c in chunk(made, SCOPE, FINGERPRINT)] == ["Deprecated since 1.4", "Text."]


def test_a_heading_over_deeper_ones_is_said_by_their_paths() -> None:
    deeper = Section("Deeper", 3, "deeper", ("Title", "Upper", "Deeper"), (paragraph("Text."),))
    made = page("a.md", section("Upper"), deeper)
    assert [c.text for c in chunk(made, SCOPE, FINGERPRINT)] == ["Text."]


def test_a_heading_that_no_later_path_holds_is_its_own_text() -> None:
    deeper = Section("Deeper", 6, "deeper", ("Title", "Deeper"), (paragraph("Text."),))
    made = page("a.md", Section("In a box", 2, "box", ("Title", "In a box")), deeper)
    assert [c.text for c in chunk(made, SCOPE, FINGERPRINT)] == ["In a box", "Text."]


def test_a_heading_that_its_path_does_not_hold_whole_stands_in_the_text() -> None:
    long = prose("heading", 400)
    made = page(
        "a.md",
        Section("Called otherwise", 1, "a", ("Title",), (paragraph("One."),)),
        Section(long, 2, "b", ("Title", long), (paragraph("Two."),)),
    )
    found = chunk(made, SCOPE, FINGERPRINT)
    assert found[0].text == "Called otherwise\n\nOne."
    assert ink(long) in ink("".join(c.text for c in found))


def test_blank_blocks_make_no_chunk() -> None:
    assert chunks_of(paragraph(" \n\n "), paragraph("\u2003"), path=()) == []


def test_the_url_has_the_anchor_only_where_it_was_seen() -> None:
    made = page("a.md", section("One", "Text."), replace(section("Two", "Text."), anchor_verified=False))
    found = chunk(made, SCOPE, FINGERPRINT)
    assert [(c.url, c.anchor_verified) for c in found] == [
        ("https://docs.example/a/#one", True),
        ("https://docs.example/a/", False),
    ]
    assert {c.source_domain for c in found} == {"docs.example"}


def test_a_malformed_url_has_no_domain() -> None:
    (found,) = chunk(replace(page("a.md", section("One", "Text.")), url="https://[broken"), SCOPE, FINGERPRINT)
    assert found.source_domain == ""


# Identity


def test_ids_are_the_same_on_every_machine() -> None:
    made = page("guide/setup.md", section("Install it", "Run `pip install chapterverse`."))
    (found,) = chunk(made, Scope("docs", "1.2"), FINGERPRINT)
    assert found.chunk_id == "56fd837c-5235-5d00-a352-043324fc3b8c"
    assert found.embed_hash == "4eb45c2d074a5de0a5f0848a85dbad96df345b73abaf2749894244e2ebbf80d7"


@pytest.mark.parametrize(
    "change",
    [
        {"file_path": "b.md"},
        {"language": "de"},
        {"sections": (section("Other", "Text."),)},
        {"sections": (section("One", "Text!"),)},
        {"sections": (section("Zero", "Text."), section("One", "Text."))},
    ],
)
def test_whatever_makes_a_chunk_another_changes_its_id(change: dict[str, object]) -> None:
    made = page("a.md", section("One", "Text."))
    last = chunk(replace(made, **change), SCOPE, FINGERPRINT)[-1]  # type: ignore[arg-type]
    assert last.chunk_id != chunk(made, SCOPE, FINGERPRINT)[0].chunk_id


def test_neither_address_nor_embedder_changes_an_id() -> None:
    made = page("a.md", section("One", "Text."))
    (first,) = chunk(made, SCOPE, "a/1")
    (moved,) = chunk(replace(made, url="https://b.example/"), SCOPE, "b/2")
    assert first.chunk_id == moved.chunk_id
    assert first.embed_hash != moved.embed_hash


def test_a_renamed_page_keeps_its_embed_hashes() -> None:
    before, after = (chunk(page(p, section("One", "Text.")), SCOPE, FINGERPRINT) for p in ("a.md", "b.md"))
    assert [c.embed_hash for c in before] == [c.embed_hash for c in after]


def test_a_smaller_budget_ends_at_the_least() -> None:
    sizes = ChunkSizes()
    for _ in range(20):
        sizes = sizes.smaller()
    assert sizes == ChunkSizes(16, 32) == sizes.smaller()


# Speed

HOSTILE = {
    "words": "lorem ipsum dolor ",
    "no spaces": "a",
    "spaces": " x" + " " * 500,
    "sentences": "Is it so? ",
    "wide": "字",
    "astral": "😀",
    "punctuation": "-=",
    "lines": "a b\n",
    "dots": "...",
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_huge_paragraph_takes_linear_time(kind: str) -> None:
    def work(size: int) -> None:
        text = (HOSTILE[kind] * size)[:size]
        found = chunks_of(paragraph(text))
        assert ink("".join(c.text for c in found)) == ink(text)

    tokens.count("warm up")
    assert_linear(work, 50_000, 400_000)


def test_a_page_of_five_megabytes_in_one_line() -> None:
    found = chunks_of(paragraph("lorem ipsum dolor sit amet. " * 180_000))
    assert len(found) > 2000


def test_this_project_reads_its_own_documents_without_cutting_a_fence() -> None:
    """Real prose and code: the fences of the README, as one block each, are whole in some chunk."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    fences = re.findall(r"^```.*?^```$", text, re.M | re.S)
    blocks = [Block(BlockKind.CODE, f, f.split("\n")[0], "```") for f in fences]
    found = chunks_of(*blocks)
    assert fences
    assert all(any(f in c.text for c in found) for f in fences if tokens.count(f) < MAX_CHUNK_TOKENS - 20)
