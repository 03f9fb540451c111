"""Searches the files of a site for secrets: the values given to this build, and keys of known services.

Every file is searched, also one that no page links to. Encoded, split, packed and archived secrets are left to a secret
scanner such as gitleaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from chapterverse.errors import UnsafePath
from chapterverse.ext.site_check.findings import Findings
from chapterverse.progress import Progress, track
from chapterverse.readers.folder import real_path
from chapterverse.site.delivery import SecretFilter, walk
from chapterverse.text.secrets_in_text import find_keys

#: Bytes searched at once, and bytes of overlap between two searches: more than any secret has.
_WINDOW, _OVERLAP = 8_000_000, 16_000


class SecretScanner(SecretFilter):
    """Searches files for secrets, whose values are those of the filter."""

    def note_files(self, site: Path, findings: Findings, progress: Progress) -> None:
        """Note secrets in files of any kind, and symbolic links that would publish a file from outside the site."""
        for path in track(progress, "Searching files", [*walk(site)]):
            try:
                if (site / path).is_symlink():
                    real_path(site, path)
                elif (site / path).is_file():
                    for says in self.scan(site, path):
                        findings.add("secret", path, says)
            except UnsafePath as error:
                findings.add("link_out", path, str(error))
            except OSError as error:
                findings.add("unreadable", path, f"{path} can't be read: {error.strerror}.")

    def scan(self, site: Path, path: str) -> Iterator[str]:
        """Yield a sentence for each kind of secret in a file and in its name, which never quotes the secret.

        Memory is bounded for files of any size.

        Raises:
            OSError: the file can't be read.
        """
        for what in dict(self._find(path.encode(errors="surrogateescape"))):
            yield f"{path} has {what} in its name."
        with (site / path).open("rb") as file:
            lines = self._search(file)
        for what, line in sorted(lines.items()):
            yield f"{path} line {line} holds {what}."

    def _search(self, file: IO[bytes]) -> dict[str, int]:
        """Return the first line of each kind of secret."""
        lines: dict[str, int] = {}
        line, content = 1, file.read(_WINDOW)
        while content:
            for what, at in self._find(content):
                lines.setdefault(what, line + content.count(b"\n", 0, at))
            more = file.read(_WINDOW)
            overlap = content[-_OVERLAP:] if more else b""
            line += content.count(b"\n") - overlap.count(b"\n")
            content = overlap + more
        return lines

    def _find(self, content: bytes) -> Iterator[tuple[str, int]]:
        """Yield kind and position of the secrets in a part of a file."""
        for what, forms in self._named_forms:
            if (at := next((at for form in forms if (at := content.find(form)) >= 0), -1)) >= 0:
                yield what, at
        yield from ((what, at) for what, _, at in find_keys(content))
