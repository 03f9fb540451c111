"""What a sealed folder says about itself, so that damage is found before the engine sees it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from chapterverse.errors import IndexCorrupt
from chapterverse.store import files

_NAME = "manifest.json"
#: Places of replaced points that a shard may hold beside those of its own number of chunks.
_SPARE = 1000


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of one folder.

    Attributes:
        files: the size of every file that readers don't rewrite, by its path in the folder.
        slots: places of points, those of replaced and deleted ones included: the engine never uses one twice.
    """

    files: Mapping[str, int]
    slots: int

    @classmethod
    def of(cls, folder: Path, slots: int) -> Manifest:
        """Return the description of a folder as it is now."""
        return cls(_sizes(folder), slots)

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        return cls(**json.loads((folder / _NAME).read_bytes()))

    def save(self, folder: Path) -> None:
        (folder / _NAME).write_text(json.dumps(asdict(self), indent=1, sort_keys=True), encoding="utf-8")

    def check(self, folder: Path) -> None:
        """Raises `IndexCorrupt` if a file is missing, cut short or strange."""
        if _sizes(folder) != self.files:
            raise IndexCorrupt(f"Files in {folder} are missing or cut short: build it again.")

    def worn(self, chunks: int) -> bool:
        """Return whether most of a shard with so many chunks is places of points that are gone."""
        return self.slots > 2 * chunks + _SPARE


def _sizes(folder: Path) -> dict[str, int]:
    return {path: size for path, size in files.sizes(folder).items() if path != _NAME}
