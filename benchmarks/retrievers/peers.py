"""The peers, each with its own splitter at 512 tokens and as its own documentation says; all with the one model."""

from __future__ import annotations

from pathlib import Path

from peers import offline_encoding

from retrievers import Chunker, Retriever
from retrievers.langchain import LangChainEnsemble
from retrievers.llama_index import LlamaIndexFusion
from retrievers.model import Memory, MiniLM
from retrievers.ours import our_chunks
from retrievers.plain import DenseOnly, PlainBM25


def peers(folder: Path, memory: Memory, *, with_our_chunks: bool) -> list[Retriever]:
    """Return them all; `folder` is the model's.

    Args:
        with_our_chunks: have each of them a second time with our chunks, to tell what ranks from what cuts.
    """
    offline_encoding()
    model = MiniLM(folder, memory)
    cutting: list[Chunker | None] = [None, our_chunks] if with_our_chunks else [None]
    return [
        retriever
        for chunks in cutting
        for retriever in (
            PlainBM25(chunks),
            DenseOnly(model, chunks),
            LangChainEnsemble(model, chunks),
            LlamaIndexFusion(model, chunks),
        )
    ]
