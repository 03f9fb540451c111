"""Simple baselines: recursive chunks of 512 tokens, searched by plain BM25 or by the model alone."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from langchain_text_splitters import RecursiveCharacterTextSplitter
from rank_bm25 import BM25Okapi
from scoring import Result

from chapterverse.model import MAX_CHUNK_TOKENS
from retrievers import DEPTH, OUR_CHUNKS, Chunker, headed, markdown_files, on_disk
from retrievers.model import MiniLM


class PlainBM25:
    def __init__(self, chunks: Chunker | None = None) -> None:
        self.name = "plain BM25" + (OUR_CHUNKS if chunks else "")
        self._chunks = chunks or _recursive

    def index(self, pages: Path, folder: Path) -> _Index:
        chunks = self._chunks(pages)
        words = BM25Okapi([_words(chunk.text) for chunk in chunks])
        return _Index(chunks, lambda question: words.get_scores(_words(question)), words, folder)


class DenseOnly:
    def __init__(self, model: MiniLM, chunks: Chunker | None = None) -> None:
        self.name = "dense only (MiniLM)" + (OUR_CHUNKS if chunks else "")
        self._model = model
        self._chunks = chunks or _recursive

    def index(self, pages: Path, folder: Path) -> _Index:
        chunks = self._chunks(pages)
        vectors = np.asarray(self._model.documents([chunk.text for chunk in chunks]), np.float32)
        return _Index(
            chunks, lambda question: vectors @ np.asarray(self._model.question(question), np.float32), vectors, folder
        )


@dataclass(frozen=True, slots=True)
class _Index:
    """Chunks, what scores them all for a question, and what that is made of."""

    chunks: Sequence[Result]
    scores: Callable[[str], np.ndarray]
    parts: object
    folder: Path

    def search(self, question: str) -> list[Result]:
        best = np.argsort(-self.scores(question), kind="stable")[:DEPTH]
        return [self.chunks[at] for at in best]

    def size(self) -> int:
        (self.folder / "index.pickle").write_bytes(pickle.dumps((self.chunks, self.parts)))
        return on_disk(self.folder)


def _recursive(pages: Path) -> list[Result]:
    splitter = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=MAX_CHUNK_TOKENS, chunk_overlap=0
    )
    return [headed(page, text) for page, source in markdown_files(pages) for text in splitter.split_text(source)]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
