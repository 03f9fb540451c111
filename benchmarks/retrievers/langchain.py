"""LangChain's hybrid: `EnsembleRetriever` over BM25 and FAISS, sections by its Markdown splitter, cut to 512 tokens."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter
from scoring import Result

from chapterverse.model import MAX_CHUNK_TOKENS
from retrievers import DEPTH, OUR_CHUNKS, Chunker, headed, markdown_files, on_disk
from retrievers.model import MiniLM

with warnings.catch_warnings():
    # The package announces its end, but LangChain's BM25 and FAISS are still in it.
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_community.vectorstores import FAISS


class LangChainEnsemble:
    def __init__(self, model: MiniLM, chunks: Chunker | None = None) -> None:
        self.name = "LangChain ensemble" + (OUR_CHUNKS if chunks else "")
        self._model = _Model(model)
        self._documents = _own_documents if chunks is None else lambda pages: map(_document, chunks(pages))

    def index(self, pages: Path, folder: Path) -> _Index:
        documents = list(self._documents(pages))
        words = BM25Retriever.from_documents(documents, k=DEPTH)
        vectors = FAISS.from_documents(documents, self._model)
        both = [words, vectors.as_retriever(search_kwargs={"k": DEPTH})]
        return _Index(EnsembleRetriever(retrievers=both, weights=[0.5, 0.5]), words, vectors, folder)


@dataclass(frozen=True, slots=True)
class _Index:
    retriever: EnsembleRetriever
    words: BM25Retriever
    vectors: FAISS
    folder: Path

    def search(self, question: str) -> list[Result]:
        documents = self.retriever.invoke(question)[:DEPTH]
        return [headed(d.metadata["page"], d.page_content, *_path(d)) for d in documents]

    def size(self) -> int:
        self.vectors.save_local(str(self.folder / "vectors"))
        (self.folder / "words.pickle").write_bytes(pickle.dumps(self.words))
        return on_disk(self.folder)


class _Model(Embeddings):
    def __init__(self, model: MiniLM) -> None:
        self._model = model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [list(vector) for vector in self._model.documents(texts)]

    def embed_query(self, text: str) -> list[float]:
        return list(self._model.question(text))


def _own_documents(pages: Path) -> Iterator[Document]:
    levels = [("#" * level, f"h{level}") for level in range(1, 7)]
    sections = MarkdownHeaderTextSplitter(levels, strip_headers=False)
    recursive = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=MAX_CHUNK_TOKENS, chunk_overlap=0
    )
    for page, source in markdown_files(pages):
        for document in recursive.split_documents(sections.split_text(source)):
            document.metadata["page"] = page
            yield document


def _document(chunk: Result) -> Document:
    levels = {f"h{level}": heading for level, heading in enumerate(chunk.heading_path, 1)}
    return Document(chunk.text, metadata={"page": chunk.page, **levels})


def _path(document: Document) -> list[str]:
    return [document.metadata[level] for level in sorted(document.metadata) if level != "page"]
