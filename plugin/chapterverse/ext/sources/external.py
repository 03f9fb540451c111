"""Reads one document from beyond the site: HTML, Markdown, plain text or PDF, by its server's type or its name."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from urllib.parse import unquote, urlsplit

from chapterverse.errors import UnreadablePage
from chapterverse.ext.sources.pdf import paragraphs, read_pdf
from chapterverse.model import Page
from chapterverse.readers.folder import declared_charset, is_binary, web_charset
from chapterverse.readers.html.metadata import read_metadata
from chapterverse.readers.sections.outline import title_from_path


class Format(StrEnum):
    """The format of a document."""

    HTML = "html"
    MARKDOWN = "markdown"
    TEXT = "text"
    PDF = "pdf"


_TYPES = {
    Format.HTML: "text/html application/xhtml+xml",
    Format.MARKDOWN: "text/markdown text/x-markdown",
    Format.TEXT: "text/plain",
    Format.PDF: "application/pdf",
}
_ENDINGS = {Format.HTML: "html htm", Format.MARKDOWN: "md markdown mdx", Format.TEXT: "txt text rst", Format.PDF: "pdf"}
_BY_TYPE = {kind: format_ for format_, kinds in _TYPES.items() for kind in kinds.split()}
_BY_ENDING = {ending: format_ for format_, endings in _ENDINGS.items() for ending in endings.split()}
#: Types that servers send for any file, so the name decides.
_VAGUE = {"", "text/plain", "application/octet-stream", "binary/octet-stream"}


@dataclass(frozen=True, slots=True)
class Media:
    """The format and encoding of a document.

    Attributes:
        charset: Python's name of the encoding that its server states; "" for UTF-8 or what the document states.
    """

    format: Format
    charset: str = ""

    @classmethod
    def of(cls, content_type: str, address: str, content: bytes) -> Media:
        """Return the media of a document.

        Args:
            content_type: the header of its server, "" for a file.
            address: its path or URL.

        Raises:
            UnreadablePage: it is in a format that can't be read.
        """
        kind, *parameters = (part.strip() for part in content_type.lower().split(";"))
        name = urlsplit(address).path.rpartition("/")[2].lower()
        format_ = Format.PDF if content.startswith(b"%PDF-") else None
        if format_ is None and kind in _VAGUE:
            format_ = _BY_ENDING.get(name.rpartition(".")[2] if "." in name else "")
            # A file without an ending is a text, such as README.
            format_ = format_ or (Format.TEXT if kind or "." not in name else None)
        format_ = format_ or _BY_TYPE.get(kind)
        if format_ is None or (format_ is not Format.PDF and is_binary(content)):
            raise UnreadablePage(f"{address} is no HTML, Markdown, plain text or PDF, which alone can be read.")
        # Not by `email`, whose parser takes quadratic time.
        charsets = (
            value for name, _, value in (part.partition("=") for part in parameters) if name.strip() == "charset"
        )
        label = next(charsets, "").strip().strip("\"'")
        return cls(format_, web_charset(label))

    def decode(self, content: bytes) -> str:
        """Return the text of a document. As in browsers, a wrong byte rejects no page, but becomes U+FFFD."""
        charset = self.charset or (declared_charset(content) if self.format is Format.HTML else "")
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(charset or "utf-8-sig")
        return content.decode(charset or "cp1252", "replace")

    def asks_not_to_be_indexed(self, content: bytes) -> bool:
        """Return whether a document is a page of HTML that asks search engines to leave it out."""
        return self.format is Format.HTML and read_metadata(self.decode(content)).noindex


def read_external(content: bytes, media: Media, path: str, url: str, language: str) -> Page:
    """Return a document as a page of the index; its chunks say `source: import`.

    Args:
        path: its path in the index and in messages.
        url: address for citations.
        language: the language of the site, which counts if the document states none.

    Raises:
        UnreadablePage: it can't be read.
    """
    # Loaded only if a document changed.
    from chapterverse.readers.sections.html_page import read_document, read_fragment

    page = partial(Page, path, url, facts={"source": "import"})
    title = title_from_path(unquote(urlsplit(path).path.strip("/"))) or urlsplit(path).netloc
    if media.format is Format.PDF:
        pdf_title, html = read_pdf(content, path)
        title = pdf_title or title
        return page(title, language, read_fragment(html, title))
    text = media.decode(content).replace("\0", "\ufffd")
    if media.format is Format.TEXT:
        return page(title, language, read_fragment(paragraphs(text), title))
    if media.format is Format.MARKDOWN:
        from chapterverse.ext.sources.markdown.page import read_markdown

        source = read_markdown(text, path)
        matter = source.front_matter
        language = matter.language or language
        return page(source.title, language, source.sections, tags=matter.tags, created_at=matter.created_at)
    built = read_document(text)
    title = built.title or title
    return page(title, built.language, built.sections, tags=built.tags, created_at=built.created_at)
