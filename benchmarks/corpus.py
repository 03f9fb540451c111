"""A folder of Markdown in the forms that `chunking.py` measures: source, HTML, blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt
from peers import Piece, Splitter
from quality import without_front_matter

from chapterverse.ext.sources.markdown.page import read_markdown
from chapterverse.indexing.chunking import chunk
from chapterverse.model import Page, Scope, Section
from chapterverse.readers.sections.html_page import read_document
from chapterverse.readers.urls import SiteGenerator

_SCOPE = Scope("docs")


@dataclass(frozen=True, slots=True)
class File:
    """One page: `body` is its Markdown without front matter, `html` a build's output for it."""

    path: str
    markdown: str
    body: str
    html: str
    blocks: Page


@dataclass(frozen=True, slots=True)
class Corpus:
    files: tuple[File, ...]

    @classmethod
    def read(cls, folder: Path) -> Corpus:
        render = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render
        files = []
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".md", ".mdx") and p.is_file()):
            text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
            name, body = str(path.relative_to(folder)), without_front_matter(text)
            html = f"<!doctype html><html lang=en><title>x</title><body><main>{render(body)}</main></body></html>"
            files.append(File(name, text, body, html, _read(name, text)))
        return cls(tuple(files))

    @property
    def markdown_size(self) -> int:
        return sum(len(file.markdown.encode()) for file in self.files)

    @property
    def html_size(self) -> int:
        return sum(len(file.html.encode()) for file in self.files)

    def chunks(self, file: File) -> list[Piece]:
        chunks = chunk(file.blocks, _SCOPE, "none/0")
        return [Piece(c.text, " > ".join(c.heading_path), c.embed_text) for c in chunks]

    def of_text(self, split: Splitter) -> Callable[[File], list[Piece]]:
        return lambda file: split(file.markdown)

    def from_markdown(self, file: File) -> object:
        return chunk(_read(file.path, file.markdown), _SCOPE, "none/0")

    def from_html(self, file: File) -> object:
        document = read_document(file.html)
        return chunk(_page(file.path, document.title, document.sections), _SCOPE, "none/0")


def _read(path: str, text: str) -> Page:
    document = read_markdown(text, path, SiteGenerator.GITHUB)
    return _page(path, document.title, document.sections)


def _page(path: str, title: str, sections: tuple[Section, ...]) -> Page:
    return Page(path, f"https://docs.example/{path}", title, "en", sections)
