"""Models by setting."""

from __future__ import annotations

import pytest

from chapterverse.errors import ConfigurationError
from chapterverse.ext.embedders.models import EmbeddingModel, ModelChoice, Spelling

MODELS = {
    "small": EmbeddingModel(64, 512),
    "large:0": EmbeddingModel(1536, 8192, 0.1, sizes=(256, 512, 1536)),
    "twin-a": EmbeddingModel(64, 512, family="twin"),
    "twin-b": EmbeddingModel(64, 512, family="twin"),
}


@pytest.mark.parametrize(
    ("setting", "spelling"),
    [
        ("large:0", Spelling("large:0")),
        ("large:0/512", Spelling("large:0", 512)),
        ("large:0@int8", Spelling("large:0", int8=True)),
        ("large:0/512@int8", Spelling("large:0", 512, int8=True)),
        ("org/model-v1.5", Spelling("org/model-v1.5")),
        ("org/model/64", Spelling("org/model", 64)),
        ("model@q8_0", Spelling("model@q8_0")),
        ("model@int8/64", Spelling("model@int8", 64)),
        ("", Spelling("")),
        ("a\nb", Spelling("a\nb")),
    ],
)
def test_a_setting_is_read(setting: str, spelling: Spelling) -> None:
    assert Spelling.read(setting) == spelling


@pytest.mark.parametrize("setting", ["small", "small@int8", "large:0", "large:0/512", "large:0/512@int8"])
def test_a_choice_is_spelled_as_it_was_set(setting: str) -> None:
    assert str(ModelChoice.of(setting, MODELS, "Quill")) == setting


def test_a_models_own_size_need_not_be_said() -> None:
    assert ModelChoice.of("large:0/1536", MODELS, "Quill") == ModelChoice.of("large:0", MODELS, "Quill")
    assert ModelChoice.of("small/64", MODELS, "Quill").size == 64


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("huge", "There is no Quill embedding model 'huge': use one of small, large:0, twin-a, twin-b."),
        ("small@int4", "There is no Quill embedding model 'small@int4': use one of small, large:0, twin-a, twin-b."),
        ("small/32", "small makes no vectors of 32 numbers: use one of 64."),
        ("large:0/257", "large:0 makes no vectors of 257 numbers: use one of 256, 512, 1536."),
    ],
)
def test_what_there_is_not_is_one_sentence(setting: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        ModelChoice.of(setting, MODELS, "Quill")
    assert str(caught.value) == sentence


def test_a_space_is_a_models_or_its_familys() -> None:
    spaces = {
        s: ModelChoice.of(s, MODELS, "Quill").space for s in ("small", "small@int8", "twin-a", "twin-b", "twin-b@int8")
    }
    assert spaces["twin-a"] == spaces["twin-b"]
    assert len(set(spaces.values())) == 4
