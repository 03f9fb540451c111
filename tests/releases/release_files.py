"""What an earlier release wrote, unpacked for a test: see `freeze`."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from projects import Project

HERE = Path(__file__).parent

#: Stores, each with its ledger: of the plugin, of the plugin with Cohere's vectors, and of `index site`.
PLAIN, DENSE, SITE = "written/plain", "written/dense", "written/site"
#: The whole export of the second.
EXPORT = "written/dense-whole.jsonl"
RECORDS, SESSION = "records.sqlite", "session.json"
#: Signs the session. It protects nothing.
SIGNING_KEY = "1f0e2d3c4b5a69788796a5b4c3d2e1f0"


def export_path(store: str) -> str:
    """Return the place of a store's canonical export."""
    return f"{store}.jsonl"


@dataclass(frozen=True)
class ReleaseFiles(Project):
    """The project of a release in a folder, with all that the release wrote."""

    @classmethod
    def unpack(cls, version: str, root: Path) -> Self:
        shutil.copytree(HERE / version / "project", root, dirs_exist_ok=True)
        with tarfile.open(HERE / version / "written.tar.xz") as archive:
            for entry in archive:
                _write(archive, entry, root / entry.name)
        return cls(root)

    def export(self, store: str) -> str:
        return (self.root / export_path(store)).read_text("utf-8")

    def session(self) -> dict[str, Any]:
        session: dict[str, Any] = json.loads((self.root / SESSION).read_text("utf-8"))
        return session


def _write(archive: tarfile.TarFile, entry: tarfile.TarInfo, path: Path) -> None:
    """Write a file with a hole at its end if that is empty, as the engine does: three stores take 60 MB otherwise."""
    if entry.isdir():
        path.mkdir(parents=True, exist_ok=True)
    elif source := archive.extractfile(entry):
        path.write_bytes(source.read().rstrip(b"\0"))
        os.truncate(path, entry.size)
