"""Secrets in the files of a site: the values that this build was given, and what looks like a key of a known service.

A build has keys at hand, and a mistake (a link to `/proc/self/environ`, a debug page, a bundled `.env`) publishes them.
Each value is searched for as it is and as HTML, JSON and addresses write it, in every file, and in gzip files unpacked.
What is encoded, cut in pieces or inside an archive is left to a scanner of secrets, such as gitleaks.
"""

from __future__ import annotations

import gzip
import html
import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast
from urllib.parse import quote

from chapterverse.site.key_shapes import find_keys

#: Bytes searched at once, and how many of them are searched again with the next ones: more than any secret has.
_WINDOW, _OVERLAP = 8_000_000, 16_000
#: Bytes that one file may unpack to.
_MOST = 2_000_000_000

#: Which variables hold a secret, by their names; a path or an address of one is none.
_SECRET_NAME = re.compile(r"API_?KEY|ACCESS_KEY|SIGNING_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD")
_NO_SECRET = re.compile(r"_(?:FILE|PATH|DIR|ARN|URL|URI|ID)$")
_PASSWORD = re.compile(r"[\w+.-]+://[^:/@]*:([^/@]+)@")
_SHORTEST = 12

_GZIP = b"\x1f\x8b"
_HIDDEN = "…".encode()


class TooMuch(Exception):
    """A file unpacks to more than is searched."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret in a file: where it is and what it is, and never the secret itself.

    Attributes:
        line: 0 where it is in the file's name.
    """

    file: str
    line: int
    what: str

    @property
    def says(self) -> str:
        if self.line:
            return f"{self.file} line {self.line} holds {self.what}."
        return f"{self.file} has {self.what} in its name."


class Scanner:
    """Searches files for secrets.

    Args:
        environ: whose secret-looking values are searched for; None is this process's own.
        secrets: further values by name, whatever that is.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, secrets: Mapping[str, str] | None = None) -> None:
        found = _values(os.environ if environ is None else environ, secrets or {})
        self._values = [(f"the value of {name}", _forms(value)) for name, value in found]

    def scan(self, site: Path, path: str) -> Iterator[Leak]:
        """Yield the leaks of a file and of its name, each kind once; a file of any size, in bounded memory.

        Raises:
            OSError: it can't be read.
            TooMuch: after what was found.
        """
        named = dict(self._find(path.encode(errors="surrogateescape")))
        yield from (Leak(path, 0, what) for what in named)
        lines: dict[str, int] = {}
        whole = True
        with (site / path).open("rb") as file:
            self._search(file, lines)
            file.seek(0)
            if file.read(len(_GZIP)) == _GZIP:
                file.seek(0)
                # What is damaged was searched as it is.
                with suppress(EOFError, zlib.error, gzip.BadGzipFile):
                    whole = self._search(cast(IO[bytes], gzip.GzipFile(fileobj=file)), lines, _MOST)
        yield from (Leak(path, line, what) for what, line in sorted(lines.items()))
        if not whole:
            raise TooMuch(path)

    def scrubbed(self, text: str) -> str:
        """Return a text without the secrets that are in it."""
        content = text.encode(errors="surrogateescape")
        found = [*(form for _, forms in self._values for form in forms), *(key for _, key, _ in find_keys(content))]
        for secret in found:
            content = content.replace(secret, _HIDDEN)
        return content.decode(errors="replace")

    def _search(self, file: IO[bytes], lines: dict[str, int], most: float = float("inf")) -> bool:
        """Note the line of each kind of secret that is not noted yet; return False where `most` bytes ended it."""
        line, content = 1, file.read(_WINDOW)
        while content and most >= 0:
            for what, at in self._find(content):
                lines.setdefault(what, line + content.count(b"\n", 0, at))
            more = file.read(_WINDOW)
            most -= len(more)
            kept = content[-_OVERLAP:] if more else b""
            line += content.count(b"\n") - kept.count(b"\n")
            content = kept + more
        return most >= 0

    def _find(self, content: bytes) -> Iterator[tuple[str, int]]:
        """Yield what a piece of a file holds, and where."""
        for what, forms in self._values:
            if (at := next((at for form in forms if (at := content.find(form)) >= 0), -1)) >= 0:
                yield what, at
        yield from ((what, at) for what, _, at in find_keys(content))


def walk(site: Path) -> Iterator[str]:
    """Yield the paths of all files and links below a folder, hidden ones too; no link is followed."""
    for folder, folders, names in os.walk(site):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted(names + links):
            yield (Path(folder) / name).relative_to(site).as_posix()


def _values(environ: Mapping[str, str], secrets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and values that nobody may read: those of variables that are called so, and passwords in addresses.

    Args:
        secrets: what is secret whatever it is called; of several that commas part, each is one.
    """
    for name, value in sorted({**environ, **secrets}.items()):
        named = _SECRET_NAME.search(name) and not _NO_SECRET.search(name)
        found = [value, *value.split(",")] if named or name in secrets else []
        if password := _PASSWORD.match(value):
            found.append(password[1])
        for one in dict.fromkeys(part.strip() for part in found):
            if len(one) >= _SHORTEST and len(set(one)) >= 5 and not one.startswith("/"):
                yield name, one


def _forms(value: str) -> tuple[bytes, ...]:
    """Return a secret as it may stand in a file: as it is, and quoted for HTML, JSON or an address."""
    raw = value.encode(errors="surrogateescape")
    quoted = (html.escape(value), json.dumps(value)[1:-1], quote(raw, safe=""))
    return tuple(dict.fromkeys([raw, *(text.encode(errors="replace") for text in quoted)]))
