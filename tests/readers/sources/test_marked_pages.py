"""The pages that a build has marked, as a preview holds them until they are parsed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from chapterverse.build_cache import BuildCache
from chapterverse.errors import UnreadablePage
from chapterverse.model import Source
from chapterverse.readers.html.dom import apply_edits
from chapterverse.readers.html.page_mark import PageMark, mark_content, seal
from chapterverse.readers.marked_pages import hold_changed, read_marked_pages
from chapterverse.readers.site_pages import SitePages


@dataclass(frozen=True, slots=True)
class Preview:
    """A site that is written and read again."""

    folder: Path

    def write(self, name: str, sentence: str) -> None:
        page = mark_content(f"<h1>{name}</h1><p>{sentence}</p>", PageMark(path=f"{name}.md", built=f"{name}.html"))
        page = f"<html lang=en><body>{page}</body></html>"
        (self.folder / f"{name}.html").write_text(apply_edits(page, seal(page)), "utf-8")

    def read(self) -> SitePages:
        paths = {f"{name}.html": f"{name}.md" for name in ("a", "b")}
        return read_marked_pages(self.folder, paths, {}, "https://e.com/", BuildCache(None), lambda _: "")


def held(reading: SitePages) -> dict[str, Source]:
    _, reading = hold_changed(reading, frozenset())
    return {source.file_path: source for source in reading.sources}


def text(source: Source) -> str:
    return " ".join(block.text for section in source.read().sections for block in section.blocks)


@pytest.fixture
def preview(tmp_path: Path) -> Preview:
    preview = Preview(tmp_path)
    preview.write("a", "Heat it slowly.")
    return preview


def test_a_page_is_parsed_as_the_build_wrote_it_though_another_build_writes_it_again(preview: Preview) -> None:
    sources = held(preview.read())
    preview.write("a", "Heat it fast.")
    assert text(sources["a.md"]) == "Heat it slowly."


def test_a_page_that_can_be_read_only_after_its_build_says_so_until_the_next_build(preview: Preview) -> None:
    (preview.folder / "b.html").write_bytes(b"\xff\xfe\x80")
    reading = preview.read()
    preview.write("b", "Cool it.")
    with pytest.raises(UnreadablePage, match=r"^b\.html is not encoded in UTF-8\.$"):
        held(reading)["b.html"].read()
    assert text(held(preview.read())["b.md"]) == "Cool it."
