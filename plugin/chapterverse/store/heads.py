"""The file that names the live generation of one scope: replaced as a whole, and only when all it names is durable."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import asdict
from pathlib import Path

from chapterverse.errors import IndexCorrupt, IndexMismatch, IndexMissing
from chapterverse.model import FORMAT, EmbedderCard, Head
from chapterverse.store import files

HEAD = "head.json"
_NEXT = "head.new"


def read_head(path: Path) -> tuple[Head, str]:
    """Return a head and the name of its generation's folder."""
    try:
        raw = json.loads(path.read_text("utf-8"))
        fields = raw["head"]
        if int(fields["format"]) > FORMAT:
            raise IndexMismatch(
                f"The index is in format {fields['format']}, this release reads up to {FORMAT}: upgrade chapterverse."
            )
        parts = {"embedder": EmbedderCard(**fields["embedder"]), "languages": tuple(fields["languages"])}
        return Head(**{**fields, **parts}), str(raw["folder"])
    except (FileNotFoundError, NotADirectoryError):
        raise IndexMissing("Nothing was published there yet.") from None
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise IndexCorrupt(f"{path} can't be read ({type(error).__name__}): build it again.") from None


def write_head(folder: Path, head: Head, name: str) -> None:
    with (folder / _NEXT).open("w", encoding="utf-8") as file:
        json.dump({"folder": name, "head": asdict(head)}, file, ensure_ascii=False, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    (folder / _NEXT).replace(folder / HEAD)
    files.sync_folder(folder)


def live_name(folder: Path) -> str:
    """Return the name of the live generation's folder; "" where there is none that can be read."""
    with contextlib.suppress(IndexMissing, IndexCorrupt):
        return read_head(folder / HEAD)[1]
    return ""
