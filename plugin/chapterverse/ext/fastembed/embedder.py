"""Local ONNX models, run by fastembed on the CPU. They need no key, and no network after the download."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chapterverse.embedding import Vector
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.ext.embedders.models import check_vectors
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings

if TYPE_CHECKING:
    from fastembed import TextEmbedding

#: A folder's model, where the setting names the folder and not the file.
_MODEL_FILES = ("model.onnx", "onnx/model.onnx")

#: What a folder must hold beside its model.
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")

# fastembed keeps custom models in one registry for the process and refuses a name that it knows already.
_registering = threading.Lock()


class FastEmbedder:
    """A model from a local folder or from fastembed's own list, which is downloaded once."""

    #: The processor is one's own.
    price = 0.0

    def __init__(self, model_or_path: str) -> None:
        """Load the model and embed one word to learn its size.

        Args:
            model_or_path: a folder with `model.onnx`, `tokenizer.json` and `tokenizer_config.json`; an `.onnx` file
                with the other two beside it; or a model's name in fastembed's list, such as `BAAI/bge-small-en-v1.5`.
                A local graph must pool by itself and answer with one vector for each text.

        Raises:
            ConfigurationError: fastembed is not installed, there is no such model, or its folder is not complete.
            ProviderError: the model could not be downloaded.
        """
        path = Path(model_or_path).expanduser()
        if path.exists() or path.suffix == ".onnx" or path.is_absolute():
            self._model, space = _load_local(path)
        else:
            self._model, space = _load_named(model_or_path)
        self._size = 0  # until the first answer tells
        self._size = len(self._probe(model_or_path))
        limit = int(self._tokenizer.truncation["max_length"])
        self._card = EmbedderCard(f"fastembed:{model_or_path}", self._size, limit, f"fastembed:{space}")

    @classmethod
    def from_settings(cls, _: Settings, model_or_path: str) -> FastEmbedder:
        return cls(model_or_path)

    @property
    def card(self) -> EmbedderCard:
        return self._card

    def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
        """Return one vector a text; see `Embedder`.

        Each text goes through the model alone: the vectors of an int8 model depend on what else is in the batch
        (cosine down to .984), and an index must not depend on which pages happened to change together.
        """
        for position, text in enumerate(texts):
            self._check_length(text, position)
        return self._vectors(self._model.passage_embed(texts, batch_size=1), len(texts))

    def embed_query(self, text: str) -> Vector:
        """Return a question's vector; see `Embedder`."""
        self._check_length(text, 0)
        return self._vectors(self._model.query_embed(text, batch_size=1), 1)[0]

    @property
    def _tokenizer(self) -> Any:
        return self._model.model.tokenizer  # type: ignore[attr-defined]

    def _check_length(self, text: str, position: int) -> None:
        # The tokenizer cuts at the model's limit by itself, and tells so only here.
        if self._tokenizer.encode(text).overflowing:
            raise TextTooLong(f"Text {position} is over the {self._card.limit} tokens of the model.", position=position)

    def _vectors(self, arrays: Iterable[Any], count: int) -> list[Vector]:
        vectors = [array.tolist() for array in arrays]
        return check_vectors(vectors, count, self._size or len(vectors[0]), "The local model")

    def _probe(self, name: str) -> Vector:
        try:
            return self.embed_query("size")
        # ONNX Runtime's errors share no public root; the graph is what a user pointed us to.
        except Exception as error:
            reason = "its graph must answer with one pooled vector for each text"
            raise ConfigurationError(f"The model {name!r} can't be used: {reason}.") from error


def _library() -> type[TextEmbedding]:
    try:
        from fastembed import TextEmbedding
    except ImportError as error:
        raise ConfigurationError(
            'The embedder fastembed needs a package: pip install "chapterverse[local]".'
        ) from error
    return TextEmbedding


def _load_local(path: Path) -> tuple[TextEmbedding, str]:
    library = _library()
    folder, file = _locate(path)
    space = f"local/{_digest(folder, file)}"
    try:
        return library(_register(library, f"{space}/{file}", file), specific_model_path=str(folder)), space
    except Exception as error:
        raise ConfigurationError(f"The model in {str(path)!r} can't be loaded: {_sentence(error)}") from error


def _locate(path: Path) -> tuple[Path, str]:
    """Return the folder of a local model and its graph's path within."""
    if path.is_file():
        folder, file = path.parent, path.name
    else:
        folder, file = path, next((f for f in _MODEL_FILES if (path / f).is_file()), _MODEL_FILES[0])
    missing = [f for f in (file, *_TOKENIZER_FILES) if not (folder / f).is_file()]
    if missing:
        raise ConfigurationError(f"There is no complete model at {str(path)!r}: {' and '.join(missing)} missing.")
    return folder, file


def _digest(folder: Path, file: str) -> str:
    """Name a model by its content: the same model is the same space on every machine, wherever it lies."""
    graph = (folder / file).read_bytes()
    content = hashlib.sha256(graph)
    content.update((folder / "tokenizer.json").read_bytes())
    beside = sorted(
        path for path in (folder / file).parent.iterdir() if path.is_file() and path.name != Path(file).name
    )
    for path in beside:
        # Large models keep their weights in files of their own, which the graph names.
        if path.name == "special_tokens_map.json" or path.name.encode() in graph:
            content.update(path.read_bytes())
    return content.hexdigest()[:16]


def _register(library: type[TextEmbedding], name: str, file: str) -> str:
    from fastembed.common.model_description import ModelSource, PoolingType

    with _registering:
        if any(entry["model"] == name for entry in library.list_supported_models()):
            return name
        # The size is learned from the model's first answer, so none is claimed here.
        library.add_custom_model(
            model=name, pooling=PoolingType.DISABLED, normalization=True, sources=ModelSource(hf=name), dim=0,
            model_file=file,
        )  # fmt: skip
    return name


def _load_named(name: str) -> tuple[TextEmbedding, str]:
    library = _library()
    names = {str(model["model"]).lower(): str(model["model"]) for model in library.list_supported_models()}
    if name.lower() not in names:
        raise ConfigurationError(
            f"fastembed knows no model {name!r}, and there is no such folder: use a name from its list of models."
        )
    try:
        model = library(name, cache_dir=str(_cache()))
    # fastembed reports a failed download as ValueError, OSError or the error of an HTTP library.
    except Exception as error:
        raise ProviderError(
            f"The model {name!r} could not be downloaded: check the network, or name a local folder.", retryable=True
        ) from error
    # Releases of fastembed have changed how they pool a model's output, which is what its class tells.
    return model, f"{names[name.lower()]} {type(model.model).__name__}"


def _cache() -> Path:
    """Return where downloads stay; fastembed's own default is a folder that every user of a machine may write to."""
    folder = os.environ.get("FASTEMBED_CACHE_PATH")
    return Path(folder) if folder else Path.home() / ".cache" / "chapterverse" / "models"


def _sentence(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".") + "."
