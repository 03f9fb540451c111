"""A documentation project in its own folder: its files, and what a build leaves in its index and its site."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chapterverse.ext.site_check.check import check as check
from chapterverse.ext.site_check.findings import Findings
from chapterverse.model import Chunk
from chapterverse.settings import Settings
from chapterverse.store import open_store

STORE = ".cache/plugin/chapterverse"
#: A store that is down: nobody listens at this port.
DOWN: dict[str, Any] = {"CHAPTERVERSE_STORE": "qdrant:http://127.0.0.1:9", "CHAPTERVERSE_PUBLISH": "1"}


@dataclass(frozen=True)
class Project:
    root: Path

    def write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text, encoding="utf-8")

    def settings(self, store: str = STORE) -> Settings:
        return Settings(store=f"edge:{self.root / store}")

    def chunks(self, store: str = STORE) -> list[Chunk]:
        """Return the chunks of the store's only head."""
        opened = open_store(self.settings(store))
        (head,) = opened.heads()
        return [point.chunk for point in opened.snapshot(head.scope).points()]

    def check(self) -> Findings:
        """Return what `check` finds in the site and its index."""
        return check(self.root / "site", self.settings(), environ={})

    def pages(self) -> set[str]:
        return {chunk.source_file_path for chunk in self.chunks()}


def chat_in(folder: Path) -> dict[str, Any]:
    """Return the configuration of the only chat below a folder of a site, without the file that it names."""
    (file,) = folder.rglob("config.js")
    config = parse_config(file.read_text("utf-8"))
    assert (file.parent / config.pop("starters_file")).resolve() == folder / "starters.js"
    assert (folder / "starters.js").is_file()
    return config


def starters_in(folder: Path) -> dict[str, list[str]]:
    """Return the questions from the index that the chat below a folder offers, by language."""
    module = (folder / "starters.js").read_text("utf-8")
    found: dict[str, list[str]] = json.loads(module.split(" = ")[1].split(";\n")[0])
    return found


def parse_config(script: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(script.removeprefix("export default ").rstrip(";\n"))
    return config
