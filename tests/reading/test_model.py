"""The model tells answers from other passages and true claims from false ones, and what is wrong with its files."""

from __future__ import annotations

import hashlib
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.reading import ReadingModel, open_reading_model

pytest.importorskip("onnxruntime")

FOLDER = Path(__file__).parents[2] / "reading/chapterverse_reading"
PASSAGES = [
    (["Pools", "Limits"], ["A pool holds ten connections.", "Set `max_connections` to change that."]),
    (
        ["Pools", "Timeouts"],
        ["A read timeout ends a request after five seconds.", "Pass `timeout=None` to wait forever."],
    ),
    (["Changelog"], ["Pools are faster now."]),
]


@pytest.fixture(scope="module")
def model() -> ReadingModel:
    found = open_reading_model(str(FOLDER))
    assert found
    return found


def forever() -> float:
    return 600.0


def test_the_passage_and_the_part_that_answer_come_first(model: ReadingModel) -> None:
    readings = model.read_question("how long does it wait for a response", PASSAGES, forever)
    assert readings is not None
    relevance = [reading.relevance for reading, _ in readings]
    assert max(relevance) == relevance[1]
    timeouts = readings[1][0].parts
    assert len(timeouts) == 2
    assert max(cosine for _, cosine in readings) <= 1.001


def test_a_true_claim_is_told_from_a_false_one(model: ReadingModel) -> None:
    claims = "A pool holds ten connections by default.", "A pool holds two hundred connections by default."
    true, false = (model.read_question(claim, PASSAGES[:1], forever) or [] for claim in claims)
    assert true[0][0].support > false[0][0].support


def test_threads_get_the_same_numbers(model: ReadingModel) -> None:
    questions = ["how do i limit connections", "how long does it wait"] * 6
    alone = [model.read_question(question, PASSAGES, forever) for question in questions]
    with ThreadPoolExecutor(6) as threads:
        together = list(threads.map(lambda question: model.read_question(question, PASSAGES, forever), questions))
    assert together == alone


def test_what_comes_too_late_is_not_read(model: ReadingModel) -> None:
    assert model.read_question("limits", PASSAGES, lambda: 0.0) is None
    with model.queue.turn(1_000_000, forever):
        assert model.read_question("limits", PASSAGES, forever) is None
    assert model.read_question("limits", PASSAGES, forever)


def test_a_passage_without_words_is_read(model: ReadingModel) -> None:
    read = model.read_question("?", [([], [])], forever)
    assert read
    assert [reading.parts for reading, _ in read] == [{}]


def test_a_part_without_words_shifts_no_other(model: ReadingModel) -> None:
    read = model.read_question("how long", [(["Pools"], ["Ten seconds.", "<br>", "A minute."])], forever)
    assert read
    assert [sorted(reading.parts) for reading, _ in read] == [[0, 2]]


def test_none_and_nothing_installed_mean_no_model() -> None:
    assert open_reading_model("none") is None
    assert open_reading_model("auto") is None


@pytest.mark.parametrize("damage", ["half", "missing", "other version", "no list"])
def test_a_damaged_model_is_told_in_one_sentence(damage: str, tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    file = folder / "reader.onnx"
    if damage == "half":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    elif damage == "missing":
        file.unlink()
    elif damage == "other version":
        (folder / "vocabulary.txt").write_text("[PAD]\n", "utf-8")
    else:
        (folder / "SHA256SUMS").unlink()
    with pytest.raises(ConfigurationError, match="reading model") as caught:
        open_reading_model(str(folder))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_model_is_told_in_one_sentence(tmp_path: Path) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "model")
    (folder / "reader.onnx").write_bytes(b"no model")
    names = ["vocabulary.txt", "words.npy", "scales.npy", "vectors.onnx", "reader.onnx"]
    lines = (f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}" for name in names)
    (folder / "SHA256SUMS").write_text("\n".join(lines), "utf-8")
    with pytest.raises(ConfigurationError, match="can't be loaded"):
        open_reading_model(str(folder))
