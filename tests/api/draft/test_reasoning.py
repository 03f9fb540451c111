"""A model's output without its reasoning, in whole characters."""

from __future__ import annotations

from collections.abc import Generator, Iterable

import pytest

from api.draft.drafts import slices
from chapterverse.errors import ProviderError
from chapterverse_api.ext.check.links.address_filter import strip_controls
from chapterverse_api.ext.models.reasoning import ReasoningFilter, join_surrogates
from chapterverse_api.ext.models.wire import MAX_ANSWER_CHARS, read_all


def model(pieces: Iterable[str], cut: bool = False) -> Generator[str, None, bool]:
    yield from pieces
    return cut


def aloud(pieces: Iterable[str]) -> tuple[str, int]:
    """Return what is said behind the last thoughts, and how often it was known too late that some were."""
    reasoning, said, restarts = ReasoningFilter(), "", 0
    for piece in (*pieces, None):
        text = reasoning.read(strip_controls(piece or ""), last=piece is None)
        restarts += reasoning.restarted
        said = text if reasoning.restarted else said + text
    return join_surrogates(said), restarts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("A key.", "A key."),
        (" \n A key.", "A key."),
        ("<think>Hm.</think>A key.", "A key."),
        ("\n<think>\n</think>\n\n<think>Or?</think> A key. <think>", "A key. <think>"),
        ("<thin air> is a key", "<thin air> is a key"),
        ("<think", "<think"),
        ("<thinking>Hm.</thinking>A key.", "A key."),
        ("<Reasoning>Hm.</reasoning>A key.", "A key."),
        ("[THINK]Hm.[/THINK]A key.", "A key."),
        ("<thought>Hm.</thought>A key.", "A key."),
        ("<seed:think>Hm.</seed:think>A key.", "A key."),
        ("◁think▷Hm. </think> Or?◁/think▷A key.", "A key."),
        ("<|begin_of_thought|>Hm.<|end_of_thought|>\n\n<|begin_of_solution|>A key.", "A key."),
        ("<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>A key.", "A key."),
        ("<|channel>thought\nHm.<channel|>A key.", "A key."),
        (
            (
                "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Or?<|end|>"
                "<|start|>assistant<|channel|>final<|message|>A key."
            ),
            "A key.",
        ),
        ("<|channel|>final <|constrain|>x<|message|>A key.", "A key."),
        ("<|start|>assistant<|channel|>final<|message|>A key.", "A key."),
        ("analysisWe need a key.assistantfinalA key.", "A key."),
        ("analysis of keys", "analysis of keys"),
        ("[1] A key", "[1] A key"),
        ("[THIN] A key", "[THIN] A key"),
        ("A <thing>, </thin", "A <thing>, </thin"),
        ("Up to `</think>` it thinks; '<think>' begins.", "Up to `</think>` it thinks; '<think>' begins."),
        ("A <think>key</think>.", "A <think>key</think>."),
        ("A\x00 \x1b[1mkey\x7f\x9b\r\n\tB", "A [1mkey\n\tB"),
        ("<think>Hm.</thin", ""),
        ("a \U0001f600", "a \U0001f600"),
        ("\ud83d", "\ufffd"),
        ("a\ud83db\ude00", "a\ufffdb\ufffd"),
    ],
)
def test_what_is_said_aloud(text: str, said: str) -> None:
    for size in (1, 2, 3, 7, 100):
        assert aloud(slices(text, size)) == (said, 0), size


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("Hm, keys.\n</think>\n\nA key.", "A key."),
        ("Hm.</THINKING>A key.", "A key."),
        ("</reasoning> A key.", "A key."),
        ("Hm.</think><think>Or?</think>\nA </think> key.", "key."),
        ("<think>a</think> b </think> c", "c"),
        ("Hm.</think>", ""),
        ("Hm.</think>\n<think>on and", ""),
        ("Hm.</think>\n</thi", "</thi"),
        ("Hm.[/THINK]A key.", "A key."),
        ("Hm.</seed:think>A key.", "A key."),
        ("Hm.<|end|><|start|>assistant<|channel|>final<|message|>A key.", "A key."),
    ],
)
def test_thoughts_without_a_beginning_end_the_answer_before(text: str, answer: str) -> None:
    for size in (1, 2, 3, 7, 100):
        said, restarts = aloud(slices(text, size))
        assert said == answer, size
        assert restarts
    assert answer == "" or read_all(model([text])) == answer


def test_words_are_not_held_back() -> None:
    reasoning = ReasoningFilter()
    assert [reasoning.read(piece) for piece in ("A", " key", ".")] == ["A", " key", "."]


def test_a_text_is_written_whole_or_failed() -> None:
    assert read_all(model([" A", " key.\n"])) == "A key."
    with pytest.raises(ProviderError, match=r"^The model answered with nothing: ask in other words\.$"):
        read_all(model([" ", "\n"]))
    with pytest.raises(ProviderError, match=r"^The model spent its whole answer on thoughts"):
        read_all(model(["<think>and"], cut=True))


def test_a_model_without_measure_is_left_before_its_end() -> None:
    def endless() -> Generator[str, None, bool]:
        while True:
            yield "word " * 100

    with pytest.raises(ProviderError, match=r"^The model answered with more than it was asked for\.$"):
        read_all(endless())
    assert len(read_all(model(["a" * MAX_ANSWER_CHARS]))) == MAX_ANSWER_CHARS
