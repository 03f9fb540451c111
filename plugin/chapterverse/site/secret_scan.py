"""Secrets in the files of a site: the values that this build was given, and what looks like a key of a known service.

A build has keys at hand, and a mistake (a link to `/proc/self/environ`, a debug page, a bundled `.env`) publishes them.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from chapterverse.site.secret_forms import embedded, forms, joined, plain_forms, readable, squeezed, values
from chapterverse.site.key_shapes import KINDS
from chapterverse.site.unpacking import DAMAGES, unpacked

#: Bytes searched at once, and how many of them are searched again with the next ones: more than any secret has.
_WINDOW, _OVERLAP = 8_000_000, 16_000
#: Archives in archives that are looked into, and the bytes that one file may unpack to.
_DEPTH, _MOST = 4, 2_000_000_000

_HIDDEN = "…".encode()


class TooMuch(Exception):
    """A file unpacks to more than is searched."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret in a file: where it is and what it is. Never the secret itself, but for the names of files.

    Attributes:
        line: 0 where it is in the file's name.
        inside: names of files that the file holds, from the outside in.
    """

    file: str
    line: int
    what: str
    inside: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        where = " › ".join((self.file, *self.inside))
        return f"{where} line {self.line} holds {self.what}." if self.line else f"{where} has {self.what} in its name."


class Scanner:
    """Searches files for secrets.

    Args:
        environ: whose secret-looking values are searched for, as they are and in the usual encodings; None is this
            process's own.
        secrets: further values by name, whatever that is.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, secrets: Mapping[str, str] | None = None) -> None:
        found = list(values(os.environ if environ is None else environ, secrets or {}))
        self._values = [(f"the value of {name}", forms(value)) for name, value in found]
        self._plain = [(f"the value of {name}", plain_forms(value)) for name, value in found]
        self._squeezed = [(what, tuple(map(squeezed, some))) for what, some in self._plain]

    def scan(self, site: Path, path: str) -> Iterator[Leak]:
        """Yield the leaks of a file and of its name, each kind once; a file of any size, in bounded memory.

        Raises:
            OSError: it can't be read.
            TooMuch: after what was found.
        """
        yield from (Leak(path, 0, what) for what in self._in(path.encode(errors="surrogateescape")))
        search = _Search(self._in)
        with (site / path).open("rb") as file:
            search.run(file)
        yield from (Leak(path, line, what, inside) for what, (inside, line) in sorted(search.found.items()))
        if search.left < 0:
            raise TooMuch(path)

    def scrubbed(self, text: str) -> str:
        """Return a text without the secrets that are in it."""
        content = text.encode(errors="surrogateescape")
        for form in (form for _, some in self._values for form in some):
            content = content.replace(form, _HIDDEN)
        for match in [match for kind in KINDS for match in kind.found(content)]:
            content = content.replace(match[match.lastindex or 0], _HIDDEN)
        # What is written in a way of its own can't be cut out of it.
        return (_HIDDEN if self._in(content) else content).decode(errors="replace")

    def _in(self, content: bytes) -> dict[str, int]:
        """Return what a piece of a file holds and where; the end of it, where it is not there as it is."""
        found: dict[str, int] = {}
        _note_values(found, content, self._values)
        if content.count(b"\0", 0, 8000) > len(content[:8000]) // 4:
            # Text in UTF-16.
            content = content.replace(b"\0", b"")
        _note_kinds(found, content)
        if b"\0" in content[:8000]:
            _note_values(found, content, self._squeezed, squeezed)
            return found
        text = readable(content)
        _note_values(found, content, self._plain, readable, text)
        _note_kinds(found, text, len(content))
        _note_values(found, content, self._squeezed, lambda some: squeezed(readable(some)), squeezed(text))
        _note_values(found, content, self._squeezed, joined)
        for at, part in embedded(content):
            found = {**dict.fromkeys(self._in(part), at), **found}
        return found


def _note_values(
    found: dict[str, int],
    content: bytes,
    values: Iterable[tuple[str, tuple[bytes, ...]]],
    read: Callable[[bytes], bytes] | None = None,
    text: bytes = b"",
) -> None:
    """Note values that are not found yet, in the content or in what `read` makes of it, `text` where that is known."""
    text = text or (read(content) if read else content)
    for what, some in values:
        form = next((form for form in some if form in text), None) if what not in found else None
        if form is not None:
            found[what] = _end(content, form, read) if read else text.index(form)


def _end(content: bytes, form: bytes, read: Callable[[bytes], bytes]) -> int:
    """Return where that is read whole for the first time which is found in all of the content."""
    return bisect_left(range(len(content)), True, key=lambda end: form in read(content[:end])) - 1


def _note_kinds(found: dict[str, int], content: bytes, at: int | None = None) -> None:
    for kind in KINDS:
        if kind.name not in found and (match := next(kind.found(content), None)):
            found[kind.name] = match.start() if at is None else at


class _Search:
    """A search of one file and of all that is packed in it.

    Attributes:
        found: what there is, with the names of the parts that it is in and its line.
        left: bytes that may still be unpacked.
    """

    def __init__(self, look: Callable[[bytes], Mapping[str, int]]) -> None:
        self.found: dict[str, tuple[tuple[str, ...], int]] = {}
        self.left = _MOST
        self._look = look

    def run(self, file: IO[bytes], inside: tuple[str, ...] = (), depth: int = _DEPTH) -> None:
        lines, content = 1, file.read(_WINDOW)
        while content and self.left >= 0:
            self.left -= len(content) if depth < _DEPTH else 0
            for what, at in self._look(content).items():
                self.found.setdefault(what, (inside, lines + content.count(b"\n", 0, at)))
            more = file.read(_WINDOW)
            kept = content[-_OVERLAP:] if more else b""
            lines += content.count(b"\n") - kept.count(b"\n")
            content = kept + more
        for name, part in unpacked(file) if depth and self.left >= 0 else ():
            within = (*inside, name) if name else inside
            for what in self._look(name.encode(errors="surrogateescape")):
                self.found.setdefault(what, (within, 0))
            with suppress(*DAMAGES):
                self.run(part, within, depth - 1)


def walk(site: Path) -> Iterator[str]:
    """Yield the paths of all files and links below a folder, hidden ones too; no link is followed."""
    for folder, folders, names in os.walk(site):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted(names + links):
            yield (Path(folder) / name).relative_to(site).as_posix()
