"""Reads the text of a PDF, with pypdf in a process of its own.

A PDF is a program of a stranger: a few bytes can unpack to gigabytes or have a reader loop for hours. The process has a
limit of time and memory, so such a file is one unreadable page and not the end of a build.
"""

from __future__ import annotations

import contextlib
import html
import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from chapterverse.errors import UnreadablePage

#: Seconds for one file: a manual of 1,000 pages takes 20 on one core.
_SECONDS = 60
#: Bytes of memory, and characters of text after which the rest of a file is left out.
_MEMORY_BYTES = 2 * 1024**3
_MAX_CHARS = 5_000_000

_HYPHEN = re.compile(r"(?<=[^\W\d_])-\n(?=[a-zß-öø-ÿ])")
_BLANK = re.compile(r"\n\s*\n")


def read_pdf(content: bytes, name: str) -> tuple[str, str]:
    """Return the title that a PDF states, "" if none, and its text as HTML.

    Each page is a heading with the anchor that PDF viewers open (`page=3`), below the entry of the outline that it is
    in.

    Raises:
        UnreadablePage: pypdf is missing, or the file is encrypted, damaged, without text, or takes too long.
    """
    if importlib.util.find_spec("pypdf") is None:
        raise UnreadablePage(f'{name} is a PDF: pip install "chapterverse[pdf]" to read it.')
    program = [sys.executable, "-m", __name__]
    try:
        done = subprocess.run(program, input=content, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise UnreadablePage(f"{name} takes longer than {_SECONDS} seconds to read.") from None
    try:
        document = json.loads(done.stdout)
    except ValueError:
        raise UnreadablePage(f"{name} can't be read as a PDF: it is damaged or encrypted.") from None
    if not any(text.strip() for _, _, text in document["pages"]):
        raise UnreadablePage(f"{name} holds no text: its pages may be images.")
    return document["title"], "".join(_html(document["pages"]))


def _html(pages: Iterable[tuple[int, list[str], str]]) -> Iterator[str]:
    within = False
    for number, entries, text in pages:
        anchor = f'id="page={number}"'
        for entry in entries:
            yield f"<h2 {anchor}>{html.escape(entry)}</h2>"
        if not entries:
            level = 3 if within else 2
            yield f"<h{level} {anchor}>Page {number}</h{level}>"
        within = within or bool(entries)
        yield paragraphs(_HYPHEN.sub("", text))


def paragraphs(text: str) -> str:
    """Return plain text as HTML, a paragraph for each block of lines."""
    blocks = (" ".join(block.split()) for block in _BLANK.split(text))
    return "".join(f"<p>{html.escape(block)}</p>\n" for block in blocks if block)


def _extract(reader: Any) -> dict[str, Any]:
    title = ""
    outline: dict[int, list[str]] = {}
    # Both are often broken in files whose pages are fine.
    with contextlib.suppress(Exception):
        title = " ".join(str(reader.metadata.title or "").split())
    with contextlib.suppress(Exception):
        _collect(reader, reader.outline, outline)
    pages: list[tuple[int, list[str], str]] = []
    characters = 0
    for number, page in enumerate(reader.pages, 1):
        text = page.extract_text()[: _MAX_CHARS - characters]
        characters += len(text)
        pages.append((number, outline.get(number, []), text))
        if characters >= _MAX_CHARS:
            break
    return {"title": title, "pages": pages}


def _collect(reader: Any, entries: Iterable[Any], outline: dict[int, list[str]]) -> None:
    """Note the title of each entry of an outline at its page, counted from 1."""
    for entry in entries:
        if isinstance(entry, list):
            _collect(reader, entry, outline)
        elif (number := reader.get_destination_page_number(entry)) is not None:
            outline.setdefault(number + 1, []).append(" ".join(str(entry.title).split()) or f"Page {number + 1}")


def _main() -> None:
    import io
    import logging

    # Windows has no such limits.
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    logging.disable()
    from pypdf import PdfReader

    document = _extract(PdfReader(io.BytesIO(sys.stdin.buffer.read())))
    sys.stdout.write(json.dumps(document))


if __name__ == "__main__":
    _main()
