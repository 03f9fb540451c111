"""LlamaIndex's hybrid: `QueryFusionRetriever` over BM25 and vectors, by reciprocal rank and without a language model.

Its Markdown parser makes the sections and its sentence splitter cuts them to 512 tokens. The file's path is metadata of
each, which both sides read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser import MarkdownNodeParser, SentenceSplitter
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import BaseNode, Document, TextNode
from llama_index.retrievers.bm25 import BM25Retriever
from peers import offline_encoding
from pydantic import PrivateAttr
from scoring import Result

from chapterverse.model import MAX_CHUNK_TOKENS
from retrievers import DEPTH, OUR_CHUNKS, Chunker, headed, markdown_files, on_disk
from retrievers.model import MiniLM


class LlamaIndexFusion:
    def __init__(self, model: MiniLM, chunks: Chunker | None = None) -> None:
        self.name = "LlamaIndex fusion" + (OUR_CHUNKS if chunks else "")
        self._model = _Model(model)
        self._nodes = _own_nodes if chunks is None else lambda pages: [_node(chunk) for chunk in chunks(pages)]

    def index(self, pages: Path, folder: Path) -> _Index:
        nodes = self._nodes(pages)
        vectors = VectorStoreIndex(nodes, embed_model=self._model)
        words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=DEPTH)
        fusion = QueryFusionRetriever(
            [vectors.as_retriever(similarity_top_k=DEPTH), words],
            # It requires a model even without rewriting questions.
            llm=MockLLM(),
            similarity_top_k=DEPTH,
            num_queries=1,
            mode="reciprocal_rerank",
            use_async=False,
        )
        return _Index(fusion, words, vectors, folder)


@dataclass(frozen=True, slots=True)
class _Index:
    retriever: QueryFusionRetriever
    words: BM25Retriever
    vectors: VectorStoreIndex
    folder: Path

    def search(self, question: str) -> list[Result]:
        return [
            headed(hit.node.metadata["file_path"], hit.node.text, *hit.node.metadata["header_path"].split("/"))
            for hit in self.retriever.retrieve(question)
        ]

    def size(self) -> int:
        self.vectors.storage_context.persist(str(self.folder))
        self.words.persist(str(self.folder / "words"), show_progress=False)
        return on_disk(self.folder)


class _Model(BaseEmbedding):
    _model: MiniLM = PrivateAttr()

    def __init__(self, model: MiniLM) -> None:
        super().__init__(model_name="MiniLM")
        self._model = model

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return [list(vector) for vector in self._model.documents(texts)]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(self._model.question(query))

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


def _own_nodes(pages: Path) -> list[BaseNode]:
    documents = [Document(text=source, metadata={"file_path": page}) for page, source in markdown_files(pages)]
    splitter = SentenceSplitter(
        chunk_size=MAX_CHUNK_TOKENS, chunk_overlap=0, tokenizer=offline_encoding().encode_ordinary
    )
    nodes: list[BaseNode] = splitter.get_nodes_from_documents(MarkdownNodeParser().get_nodes_from_documents(documents))
    return nodes


def _node(chunk: Result) -> TextNode:
    path = "/".join(heading.replace("/", " ") for heading in chunk.heading_path)
    # The text starts with the path already, so the metadata must not repeat it.
    metadata = {"file_path": chunk.page, "header_path": path}
    return TextNode(text=chunk.text, metadata=metadata, excluded_embed_metadata_keys=["header_path"])
