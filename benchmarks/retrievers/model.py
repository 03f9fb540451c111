"""The dense model of all retrievers, with a cache of its vectors: a second run embeds only questions.

Each text is embedded alone, because int8 vectors depend on the other texts of a batch.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from chapterverse.embedding import Vector
from chapterverse.errors import TextTooLong
from chapterverse.ext.fastembed.embedder import FastEmbedder

#: Tokens of a text that all-MiniLM-L6-v2 reads.
LIMIT = 256
#: Texts per write, so that an interrupted run loses few.
_SLICE = 64


class Memory:
    """A cache of vectors by content, in one file."""

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        # Our embedder runs in its own thread, one call at a time.
        self._rows = sqlite3.connect(file, check_same_thread=False, timeout=60)
        self._rows.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")

    def vectors(self, space: str, texts: Sequence[str], make: Callable[[list[str]], Sequence[Vector]]) -> list[Vector]:
        """Return a vector for each text; `make` embeds new ones."""
        keys = [hashlib.sha256(f"{space}\n{text}".encode()).digest() for text in texts]
        by_key = {key: self._held(key) for key in keys}
        new = {key: text for key, text in zip(keys, texts, strict=True) if by_key[key] is None}
        for at in range(0, len(new), _SLICE):
            part = dict(list(new.items())[at : at + _SLICE])
            new_vectors = dict(zip(part, make(list(part.values())), strict=True))
            by_key.update(new_vectors)
            with self._rows:
                rows = [(key, np.asarray(vector, np.float32).tobytes()) for key, vector in new_vectors.items()]
                self._rows.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)
        return [vector for key in keys if (vector := by_key[key]) is not None]

    def _held(self, key: bytes) -> Vector | None:
        row = self._rows.execute("SELECT vector FROM vectors WHERE key = ?", (key,)).fetchone()
        return tuple(np.frombuffer(row[0], np.float32).tolist()) if row else None


class MiniLM:
    """The model as the peers use it: it truncates a text to `LIMIT` tokens, as is usual for them."""

    def __init__(self, folder: Path, memory: Memory) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        self._session = onnxruntime.InferenceSession(folder / "model.onnx")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(LIMIT)
        self._memory = memory
        self._space = f"truncated {folder.name}"

    def documents(self, texts: Sequence[str]) -> list[Vector]:
        return self._memory.vectors(self._space, texts, lambda new: [self.question(text) for text in new])

    def question(self, text: str) -> Vector:
        read = self._tokenizer.encode(text)
        inputs = {"input_ids": read.ids, "attention_mask": read.attention_mask, "token_type_ids": read.type_ids}
        names = {node.name for node in self._session.get_inputs()}
        (answer, *_) = self._session.run(None, {k: np.array([v], np.int64) for k, v in inputs.items() if k in names})
        return tuple((answer[0] / np.linalg.norm(answer[0])).tolist())


def model_folder(model: Path, tokenizer: Path, home: Path) -> Path:
    """Return a folder in the layout for `fastembed:PATH`, with links to the two files."""
    digest = hashlib.sha256(f"{model.resolve()}\n{tokenizer.resolve()}".encode()).hexdigest()[:16]
    folder = home / f"model-{digest}"
    folder.mkdir(parents=True, exist_ok=True)
    for name, file in (("model.onnx", model), ("tokenizer.json", tokenizer)):
        if not (folder / name).exists():
            (folder / name).symlink_to(file.resolve())
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": LIMIT, "pad_token": "[PAD]"}))
    return folder


def remembering(memory: Memory) -> type[FastEmbedder]:
    """Return our embedder with a cache of document vectors; questions are always embedded."""

    class Remembering(FastEmbedder):
        def embed_documents(self, texts: Sequence[str]) -> list[Vector]:
            new_texts: list[str] = []

            def make(new: list[str]) -> list[Vector]:
                new_texts[:] = new
                return FastEmbedder.embed_documents(self, new)

            try:
                return memory.vectors(self.card.space, texts, make)
            except TextTooLong as error:
                # Map the position among the new texts to one among all.
                raise TextTooLong(str(error), position=list(texts).index(new_texts[error.position])) from error

    return Remembering
