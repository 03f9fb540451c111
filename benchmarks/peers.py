"""The peers that `chunking.py` measures, configured by their own documentation for Markdown at 512 cl100k tokens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import tiktoken
import tiktoken.registry

from chapterverse.model import MAX_CHUNK_TOKENS
from chapterverse.text import tokens


@dataclass(frozen=True, slots=True)
class Piece:
    """A peer's chunk, or ours.

    Attributes:
        path: headings that come with it, outside of its text.
        embedded: the text that counts against the budget, if it is more than `text`.
    """

    text: str
    path: str = ""
    embedded: str = ""


Splitter = Callable[[str], list[Piece]]


def peers() -> dict[str, Splitter]:
    """Return every peer by name, without a cache of an earlier call."""
    encoding = offline_encoding()
    return {
        "LangChain headers + recursive": _langchain(),
        "LlamaIndex Markdown + sentence": _llama_index("SentenceSplitter", encoding),
        "LlamaIndex Markdown + token": _llama_index("TokenTextSplitter", encoding),
        "chonkie recursive, Markdown rules": _chonkie(encoding, markdown=True),
        "chonkie recursive, its own rules": _chonkie(encoding, markdown=False),
        "semantic-text-splitter Markdown": _semantic(),
    }


def offline_encoding() -> tiktoken.Encoding:
    """Return cl100k and register it for the peers, which would download the same encoding."""
    encoding = tokens._encoding()
    tiktoken.registry.ENCODINGS["cl100k_base"] = encoding
    return encoding


def _langchain() -> Splitter:
    from langchain_text_splitters import MarkdownHeaderTextSplitter, RecursiveCharacterTextSplitter

    headers = MarkdownHeaderTextSplitter([("#" * level, f"h{level}") for level in range(1, 7)])
    recursive = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        "cl100k_base", chunk_size=MAX_CHUNK_TOKENS, chunk_overlap=0
    )

    def split(text: str) -> list[Piece]:
        documents = recursive.split_documents(headers.split_text(text))
        return [Piece(d.page_content, " > ".join(d.metadata.values())) for d in documents]

    return split


def _llama_index(splitter: str, encoding: tiktoken.Encoding) -> Splitter:
    from llama_index.core import node_parser
    from llama_index.core.schema import Document

    sections = node_parser.MarkdownNodeParser()
    sizes = getattr(node_parser, splitter)(
        chunk_size=MAX_CHUNK_TOKENS, chunk_overlap=0, tokenizer=encoding.encode_ordinary
    )

    def split(text: str) -> list[Piece]:
        nodes = sizes.get_nodes_from_documents(sections.get_nodes_from_documents([Document(text=text)]))
        return [Piece(node.text, node.metadata.get("header_path", "")) for node in nodes]

    return split


def _chonkie(encoding: tiktoken.Encoding, *, markdown: bool) -> Splitter:
    from chonkie import RecursiveChunker, RecursiveLevel, RecursiveRules

    # Its Markdown recipe would be downloaded; these are its levels.
    headings = [f"\n{'#' * level} " for level in range(1, 7)]
    levels = [
        RecursiveLevel(delimiters=headings, include_delim="next"),
        RecursiveLevel(delimiters=["\n\n", "\r\n", "\n", "\r"]),
        RecursiveLevel(delimiters=[". ", "! ", "? "]),
        RecursiveLevel(whitespace=True),
        RecursiveLevel(),
    ]
    rules = RecursiveRules(levels=levels) if markdown else RecursiveRules()
    chunker = RecursiveChunker(tokenizer=encoding, chunk_size=MAX_CHUNK_TOKENS, rules=rules)
    return lambda text: [Piece(chunk.text) for chunk in chunker.chunk(text)]


def _semantic() -> Splitter:
    from semantic_text_splitter import MarkdownSplitter

    splitter = MarkdownSplitter.from_tiktoken_model("gpt-4", MAX_CHUNK_TOKENS)
    return lambda text: [Piece(chunk) for chunk in splitter.chunks(text)]
