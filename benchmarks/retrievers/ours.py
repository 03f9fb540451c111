"""Our retriever, run as by a user: `chapterverse index PAGES --source`, then the service behind `search`."""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from scoring import Result

from chapterverse import cli
from chapterverse.ext.fastembed import embedder as fastembed
from chapterverse.model import Chunk
from chapterverse.settings import Settings
from chapterverse_api.commands import ServiceSession
from retrievers import DEPTH, on_disk
from retrievers.model import Memory, remembering

BASE_URL = "https://docs.example/"


@dataclass(frozen=True, slots=True)
class ChapterVerse:
    """One configuration of ours; all other settings have their defaults."""

    name: str
    embedder: str = "none"
    reranker: str = "none"

    def index(self, pages: Path, folder: Path) -> _Index:
        settings = Settings(store=f"edge:{folder}", embedder=self.embedder, reranker=self.reranker)
        _index(pages, settings.store, self.embedder)
        return _Index(ServiceSession.open(settings), folder)


def ours(embedder: str, rerankers: list[str], memory: Memory) -> list[ChapterVerse]:
    """Return our default first, then with a reranker, with the model, and with both."""
    # The user's environment must not change the defaults.
    for name in [name for name in os.environ if name.startswith("CHAPTERVERSE_")]:
        del os.environ[name]
    # The only difference to a user's run: cached vectors.
    fastembed.FastEmbedder = remembering(memory)  # type: ignore[misc]
    dense = [("", "none"), (" + MiniLM", embedder)] if embedder else [("", "none")]
    return [
        ChapterVerse("Chapter & Verse" + with_model + with_reranker, model, reranker)
        for with_model, model in dense
        for with_reranker, reranker in [("", "none"), *((f" + {name} reranker", name) for name in rerankers)]
    ]


def our_chunks(pages: Path) -> list[Result]:
    """Return our chunks as they are indexed: each begins with its heading path."""
    with tempfile.TemporaryDirectory(prefix="chunks-") as folder:
        _index(pages, f"edge:{folder}/index", "none")
        _run("export", f"{folder}/chunks.jsonl", "--store", f"edge:{folder}/index")
        rows = [json.loads(line) for line in Path(folder, "chunks.jsonl").read_text("utf-8").splitlines()]
    chunks = [Chunk.from_payload(row) for row in rows if "head" not in row]
    return [Result(chunk.source_file_path, chunk.embed_text, chunk.heading_path) for chunk in chunks]


@dataclass(frozen=True, slots=True)
class _Index:
    service: ServiceSession
    folder: Path

    def search(self, question: str) -> list[Result]:
        hits = self.service.search(question, DEPTH, {})
        return [Result(row["source_file_path"], row["text"], tuple(row["heading_path"])) for row in hits]

    def size(self) -> int:
        return on_disk(self.folder)


def _index(pages: Path, store: str, embedder: str) -> None:
    _run("index", str(pages), "--source", "--base-url", BASE_URL, "--store", store, "--embedder", embedder)


def _run(*arguments: str) -> None:
    """Run the command line in this process, without the start of Python; print its output only if it failed."""
    output = io.StringIO()
    with contextlib.redirect_stderr(output), contextlib.redirect_stdout(output):
        try:
            cli.main(arguments)
        except SystemExit as end:
            if end.code:
                raise SystemExit(output.getvalue()) from None
