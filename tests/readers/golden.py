"""The sections of the captured sites as JSON for review; run it as a module to write them again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from chapterverse.model import Block, Section
from chapterverse.readers.sections.html_page import read_document

SITES = Path(__file__).parents[1] / "sites"
GOLDEN = SITES / "golden"


def pages() -> list[str]:
    """Return the captured pages, relative to the folder of sites."""
    return sorted(str(path.relative_to(SITES).as_posix()) for path in SITES.rglob("*.html"))


def golden_file(page: str) -> Path:
    return GOLDEN / f"{page.removesuffix('.html').replace('/', '__')}.json"


def as_json(html: str) -> dict[str, Any]:
    document = read_document(html)
    return {
        "title": document.title,
        "language": document.language,
        "canonical": document.canonical,
        "noindex": document.noindex,
        "sections": [_section(section) for section in document.sections],
    }


def _section(section: Section) -> dict[str, Any]:
    return {
        "heading": section.heading,
        "level": section.level,
        "anchor": section.anchor,
        "path": list(section.path),
        "blocks": [_block(block) for block in section.blocks],
    }


def _block(block: Block) -> dict[str, Any]:
    shown: dict[str, Any] = {"kind": block.kind.value, "text": block.text.split("\n")}
    if block.head:
        shown["head"] = block.head
    if block.tail:
        shown["tail"] = block.tail
    if block.parts:
        shown["parts"] = [f"{part.kind.value}: {part.text}" for part in block.parts]
    return shown


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for page in pages():
        found = as_json((SITES / page).read_text(encoding="utf-8"))
        golden_file(page).write_text(json.dumps(found, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
