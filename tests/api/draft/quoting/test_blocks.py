from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse_api.draft.quoting.blocks import QuotableBlock, read_blocks, sentences
from chapterverse_api.draft.quoting.quote import close_fence
from growth import assert_linear

PIECES = """A word. |and e.g. this|- item|1. step|  - nested|\n|\n\n|```|````sh|~~~|**Label**|**Note**\n\n|Text:|  |\t|\
\r\n|    code|# x|终。|é| |\x0b|\u2028|> q|: meaning|`c. D`""".split("|")
MARKDOWN = st.lists(st.sampled_from([*PIECES, "| a | b |", "| --- | --- |"]), max_size=40).map("".join)


def kinds(text: str) -> list[str]:
    return [block.kind for block in read_blocks(text)]


def parts(text: str) -> list[list[str]]:
    return [[text[part.start : part.end] for part in block.parts] for block in read_blocks(text)]


@given(st.one_of(MARKDOWN, st.text()))
def test_blocks_and_their_parts_stand_in_order_and_leave_out_nothing_but_white_space(text: str) -> None:
    blocks = read_blocks(text)
    at = 0
    for block in blocks:
        assert at <= block.start < block.end <= len(text)
        assert not text[at : block.start].strip()
        inner = block.start
        for part in block.parts:
            assert inner <= part.start <= part.end <= block.end
            inner = part.end
        at = block.end
    assert not text[at:].strip()


def test_a_paragraph_is_cut_at_sentences() -> None:
    text = "Set e.g. this. Then Quill 1.2 starts! (Does it?) It **does.** And 3 more."
    assert parts(text) == [["Set e.g. this.", "Then Quill 1.2 starts!", "(Does it?)", "It **does.**", "And 3 more."]]


def test_sentences_of_languages_without_spaces() -> None:
    assert list(sentences("运行它。然后停止！好吗？")) == ["运行它。", "然后停止！", "好吗？"]


def test_a_list_keeps_what_is_indented_below_an_item_and_nests() -> None:
    text = "- One. Two.\n  Three.\n\n  ```sh\n  - run\n\n  it\n  ```\n- Four.\n\n  - Five.\n- Six."
    assert kinds(text) == ["list"]
    assert parts(text) == [
        ["- One. Two.\n  Three.\n\n  ```sh\n  - run\n\n  it\n  ```", "- Four.", "  - Five.", "- Six."]
    ]
    assert [part.level for part in read_blocks(text)[0].parts] == [0, 0, 2, 0]


def test_a_list_may_follow_its_introduction_without_a_blank_line() -> None:
    assert parts("Steps:\n1. a\n2. b") == [["Steps:"], ["1. a", "2. b"]]


def test_definitions_are_the_entries_of_one_block() -> None:
    text = "**a**\n: One.\n\n  ```sh\n  x\n  ```\n\n**b**\n: Two."
    assert kinds(text) == ["entries"]
    assert parts(text) == [["**a**\n: One.\n\n  ```sh\n  x\n  ```", "**b**\n: Two."]]


def test_a_table_has_a_header_and_rows_also_where_chunks_cut_it() -> None:
    head = "| a | b |\n| --- | --- |"
    (block,) = read_blocks(f"{head}\n| 1 | 2 |\n\n{head}\n| 3 | 4 |")
    assert (block.kind, block.head, len(block.parts)) == ("table", head, 2)
    assert kinds(f"{head}\n| 1 | 2 |\nText.") == ["table", "paragraph"]


@pytest.mark.parametrize("fence", ["```", "~~~~"])
def test_code_is_one_block_whatever_it_holds(fence: str) -> None:
    code = f"{fence}sh\n# Not. A. Heading\n\n- no item\n| no | table |\n`` ` ~~\n{fence}"
    text = f"Before.\n{code}\nAfter. Word."
    assert kinds(text) == ["paragraph", "code", "paragraph"]
    assert (read_blocks(text)[1].head, read_blocks(text)[1].fence) == (f"{fence}sh", fence)


def test_a_fence_that_is_never_closed_goes_on_to_the_end() -> None:
    assert parts("Before.\n\n```sh\na. B\n\nc") == [["Before."], ["a. B", "", "c"]]


def test_a_longer_fence_closes_a_shorter_one_and_not_the_other_way_round() -> None:
    assert kinds("````\n```\n````\nx") == ["code", "paragraph"]
    assert kinds("```\r\na\r\n```\r\nx") == ["code", "paragraph"]


def test_a_piece_that_leaves_a_fence_open_gets_it_closed() -> None:
    assert close_fence("- a\n  ```sh\n  b") == "- a\n  ```sh\n  b\n  ```"
    assert close_fence("```\na\n```\nb") == "```\na\n```\nb"


@pytest.mark.parametrize(
    ("text", "announces", "label"),
    [
        ("Run:", True, False),
        ("运行：", True, False),
        ("For example...", True, False),
        ("**macOS**", True, True),
        ("> [!NOTE]", True, True),
        ("**macOS** runs.", False, False),
        ("Run.", False, False),
        ("- a:", True, False),
    ],
)
def test_what_announces(text: str, announces: bool, label: bool) -> None:
    block: QuotableBlock = read_blocks(text)[0]
    assert (block.announces, block.label) == (announces, label)


@pytest.mark.parametrize(
    "unit",
    ["a", "- a\n", "1. ", "```\n", "~~~", "**", ". ", ".  a", "| ", "\n", " \n", ":\n\n", "- \n  ", "。", "  a\n",
     "```", "> ", "| a\nb\n", "a\n: b\n\n", "  - a\n", "| -\n"],
)  # fmt: skip
def test_hostile_markdown_takes_linear_time(unit: str) -> None:
    assert_linear(lambda size: read_blocks(unit * (size // len(unit))), 5_000, 50_000)
