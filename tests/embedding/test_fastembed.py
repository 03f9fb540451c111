"""The local embedder with a real ONNX model from `CHAPTERVERSE_TEST_MODELS`."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chapterverse.embedding import open_embedder
from chapterverse.errors import ConfigurationError, TextTooLong
from chapterverse.ext.fastembed.embedder import FastEmbedder
from chapterverse.settings import Settings

pytest.importorskip("fastembed", reason="fastembed has no wheels for this platform")

MODELS = Path(
    os.environ.get("CHAPTERVERSE_TEST_MODELS") or Path(__file__).parents[3] / "shared" / "data" / "models"
).absolute()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ready model folder, made of the parts that the models folder holds."""
    if not (MODELS / "minilm-int8.onnx").is_file():
        pytest.skip("no local model: CHAPTERVERSE_TEST_MODELS names no folder with minilm-int8.onnx")
    place = tmp_path_factory.mktemp("minilm")
    shutil.copyfile(MODELS / "minilm-int8.onnx", place / "model.onnx")
    shutil.copyfile(MODELS / "minilm-tokenizer.json", place / "tokenizer.json")
    config = {"model_max_length": 256, "pad_token": "[PAD]"}
    (place / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def minilm(folder: Path) -> FastEmbedder:
    return FastEmbedder(str(folder))


def cosine(a: tuple[float, ...], b: tuple[float, ...]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def test_the_card_is_learned_from_the_model(minilm: FastEmbedder, folder: Path) -> None:
    assert (minilm.card.name, minilm.card.size, minilm.card.limit) == (f"fastembed:{folder}", 384, 256)


def test_vectors_are_unit_length_and_mean_something(minilm: FastEmbedder) -> None:
    cat, kitten, tax = minilm.embed_documents(["A cat sleeps.", "A kitten is napping.", "The tax office is closed."])
    assert all(math.isclose(cosine(v, v), 1, abs_tol=1e-5) for v in (cat, kitten, tax))
    assert cosine(cat, kitten) > cosine(cat, tax) + 0.2
    question = minilm.embed_query("What does the cat do?")
    assert cosine(question, cat) > cosine(question, tax) + 0.2


def test_a_vector_does_not_depend_on_its_neighbors(minilm: FastEmbedder) -> None:
    texts = ["Short.", "word " * 200, "A sentence of middling length about configuration files and their defaults."]
    together = minilm.embed_documents(texts)
    assert together == [minilm.embed_documents([text])[0] for text in texts]
    assert together[::-1] == minilm.embed_documents(texts[::-1])


def test_no_documents_are_no_vectors(minilm: FastEmbedder) -> None:
    assert minilm.embed_documents([]) == []


def test_a_long_text_is_refused_and_never_cut(minilm: FastEmbedder) -> None:
    # 254 words and the two marks around them are 256 tokens.
    assert len(minilm.embed_documents(["word " * 254])) == 1
    with pytest.raises(TextTooLong, match="256 tokens") as caught:
        minilm.embed_documents(["fine", "word " * 255, "word " * 300])
    assert caught.value.position == 1
    with pytest.raises(TextTooLong):
        minilm.embed_query("word " * 300)


def test_the_same_model_is_the_same_space_wherever_it_lies(minilm: FastEmbedder, folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "elsewhere")
    (copy / "model.onnx").rename(copy / "minilm.onnx")
    for place in (str(folder), str(copy / "minilm.onnx")):
        other = FastEmbedder(place)
        assert other.card.space == minilm.card.space
        assert other.embed_query("same") == minilm.embed_query("same")


def test_weights_in_a_file_of_their_own_are_part_of_the_space(
    minilm: FastEmbedder, folder: Path, tmp_path: Path
) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    # The graph's documentation string now names a file, as its tensors do where they are kept outside.
    with (copy / "model.onnx").open("ab") as graph:
        graph.write(b"\x32\x0bweights.bin")
    spaces = {minilm.card.space, FastEmbedder(str(copy)).card.space}
    for content in ("one", "other"):
        (copy / "weights.bin").write_text(content, encoding="utf-8")
        spaces.add(FastEmbedder(str(copy)).card.space)
    assert len(spaces) == 4
    (copy / "README.md").write_text("not of the model", encoding="utf-8")
    assert FastEmbedder(str(copy)).card.space in spaces


def test_a_local_model_costs_nothing(minilm: FastEmbedder) -> None:
    assert minilm.price == 0


def test_it_is_opened_by_name(folder: Path) -> None:
    embedder = open_embedder(Settings(embedder=f"fastembed:{folder}"))
    assert embedder is not None
    assert embedder.card.size == 384


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json", "tokenizer_config.json"])
def test_an_incomplete_folder_says_what_is_missing(folder: Path, tmp_path: Path, missing: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / missing).unlink()
    with pytest.raises(ConfigurationError, match=f"{missing} missing"):
        FastEmbedder(str(copy))


def test_junk_named_onnx_is_one_sentence(folder: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "model.onnx").write_bytes(b"\x00junk")
    with pytest.raises(ConfigurationError, match="can't be loaded") as caught:
        FastEmbedder(str(copy))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "nobody/no-such-model", "/no/such/folder", "no/such/model.onnx"])
def test_an_unknown_model_is_one_sentence(name: str) -> None:
    with pytest.raises(ConfigurationError, match="model"):
        FastEmbedder(name)


def run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout


def test_a_model_that_can_not_be_downloaded_is_one_sentence(tmp_path: Path) -> None:
    program = """
from chapterverse.ext.fastembed.embedder import FastEmbedder
from chapterverse.errors import ProviderError
try:
    FastEmbedder("BAAI/bge-small-en-v1.5")
except ProviderError as error:
    print(error.retryable, error)
"""
    said = run(program, HF_HUB_OFFLINE="1", FASTEMBED_CACHE_PATH=str(tmp_path))
    assert said.startswith("True The model 'BAAI/bge-small-en-v1.5' could not be downloaded")


def test_without_the_package_it_says_what_to_install() -> None:
    program = """
import sys
sys.modules["fastembed"] = None
from chapterverse.ext.fastembed.embedder import FastEmbedder
try:
    FastEmbedder("BAAI/bge-small-en-v1.5")
except Exception as error:
    print(type(error).__name__, error)
"""
    assert 'ConfigurationError The embedder fastembed needs a package: pip install "chapterverse[local]"' in run(
        program
    )


def test_importing_the_module_loads_no_runtime() -> None:
    program = (
        "import sys, chapterverse.ext.fastembed.embedder\nprint(sorted(sys.modules.keys() & {'fastembed', 'numpy'}))"
    )
    assert run(program).strip() == "[]"
