"""Folders of Markdown and MDX."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from chapterverse.errors import UnsafePath
from chapterverse.ext.sources.markdown_folder import locale_folders, read_markdown_folder
from chapterverse.readers.urls import SiteGenerator
from readers.sources.test_built_site import complaints, write


@pytest.mark.parametrize(
    ("files", "locales"),
    [
        (["index.md", "fr/index.md", "pt_BR/index.md"], {"fr": "fr", "pt_BR": "pt-BR"}),
        (["en/index.md", "en/guide/a.md", "de/index.md", "de/guide/a.mdx"], {"en": "en", "de": "de"}),
        (["guide/a.md", "zh-CN/guide/a.md", "zh-CN/guide/b.md"], {"zh-CN": "zh-CN"}),
        (["index.md", "id/tokens.md", "is/true.md"], {}),
        (["index.md", "api/index.md", "guide/index.md"], {}),
        (["index.md", "fr/index.md", "fr/a.md", "fr/b.md"], {}),
    ],
)
def test_a_name_alone_proves_nothing(files: list[str], locales: dict[str, str]) -> None:
    assert locale_folders(files) == locales


def test_markdown_folder(tmp_path: Path) -> None:
    write(
        tmp_path,
        index_md="# Home\n",
        guide__setup_md="---\ntags: [a]\ndate: 2024-01-02\n---\n# Set up\n\n## Über\n\ntext\n",
        draft_md="---\ndraft: true\n---\nx",
        broken_md="---\na: [\n---\nx",
        **{"page.mdx": "export const tide = 'high';\n\n<Note>The tide is {tide}.</Note>\n"},
    )
    reading = read_markdown_folder(tmp_path, "https://e.com/docs", generator=SiteGenerator.VITEPRESS)
    assert (reading.left_out, reading.warnings) == ({"draft.md": "asks not to be indexed"}, ())
    assert complaints(reading) == {"broken.md": "The front matter of broken.md is not valid YAML."}
    _, setup, home, mdx = reading.sources
    assert [block.text for block in mdx.read().sections[0].blocks] == ["The tide is high."]
    assert setup.content_hash == hashlib.sha256((tmp_path / "guide/setup.md").read_bytes()).hexdigest()
    read = setup.read()
    assert (read.url, read.title, read.tags, read.created_at) == (
        "https://e.com/docs/guide/setup.html", "Set up", ("a",), "2024-01-02T00:00:00Z",
    )  # fmt: skip
    assert [(s.anchor, s.anchor_verified) for s in read.sections] == [("set-up", False), ("uber", False)]
    assert home.read().url == "https://e.com/docs/"


def test_the_language_and_the_place_of_a_source(tmp_path: Path) -> None:
    write(
        tmp_path,
        index_md="# Home",
        fr__index_md="# Accueil",
        de__index_md="---\nlang: de_AT\n---\n# Start",
        **{"02-tour/_part.mdx": "x", "02-tour/01-leg.mdx": "---\nslug: one\n---\nx", "02-tour/last.md": "x"},
    )
    reading = read_markdown_folder(tmp_path, "https://e.com/", generator=SiteGenerator.GITHUB)
    assert {s.file_path: (s.read().url, s.read().language) for s in reading.sources} == {
        "02-tour/01-leg.mdx": ("https://e.com/tour/one/", "en"),
        "02-tour/last.md": ("https://e.com/tour/last/", "en"),
        "de/index.md": ("https://e.com/de/", "de-AT"),
        "fr/index.md": ("https://e.com/fr/", "fr"),
        "index.md": ("https://e.com/", "en"),
    }
    assert reading.left_out == {"02-tour/_part.mdx": "no page of the site"}


def test_a_generator_may_state_the_addresses_of_sources(tmp_path: Path) -> None:
    write(tmp_path, docs__a_md="# A\n\nx\n", docs__b_mdx="# B\n\ny\n", node_modules__c_md="# C\n\nz\n")
    listed = {"docs/a.md": "start", "docs/b.mdx": "", "docs/gone.md": "gone", "docs/made.json": "made"}
    reading = read_markdown_folder(
        tmp_path, "http://localhost:3000/d/", generator=SiteGenerator.DOCUSAURUS, listed=listed
    )
    assert {source.file_path: source.read().url for source in reading.sources} == {
        "docs/a.md": "http://localhost:3000/d/start",
        "docs/b.mdx": "http://localhost:3000/d/",
    }


def test_a_generator_states_files_beside_its_folder(tmp_path: Path) -> None:
    write(tmp_path, secret_md="# S\n\nx\n", in__a_md="# A\n\nx\n", docs__b_md="# B\n\nx\n", docs__c__d_md="# D\n\nx\n")
    for link in ("in/link.md", "docs/link.md"):
        (tmp_path / link).symlink_to(tmp_path / "secret.md")
    listed = {path: path for path in ("a.md", "link.md", "../docs/b.md", "../docs/c/d.md", "../docs/link.md")}
    reading = read_markdown_folder(tmp_path / "in", "https://e.com/", listed=listed)
    pages: dict[str, str] = {}
    for source in reading.sources:
        try:
            pages[source.file_path] = source.read().title
        except UnsafePath:
            pages[source.file_path] = ""
    assert pages == {"a.md": "A", "link.md": "", "../docs/b.md": "B", "../docs/c/d.md": "D", "../docs/link.md": ""}


_COMMENTED = (
    "# Paths\n\n{/* internal */}\n\nJoined.\n\n{/*\n## Old\n\nold text\n*/}\n\n"
    '<!-- hidden -->\n\nThe set {"{a, b}"} of braces.\n\n`{/* code */}`\n'
)


@pytest.mark.parametrize(
    ("config", "front_matter", "is_mdx"),
    [
        ("", "", True),
        ("export default { markdown: { format: 'mdx' } };", "", True),
        ("export default {\n  markdown: {\n    format: 'detect',\n  },\n};", "", False),
        ('module.exports = {markdown: {"format": "md"}}', "", False),
        ("  // format: 'md'", "", True),
        ("export default { markdown: { format: 'detect' } };", "---\nmdx:\n  format: mdx\n---\n", True),
        ("", "---\nmdx:\n  format: md\n---\n", False),
    ],
)
def test_docusaurus_reads_md_as_mdx_unless_told_otherwise(
    tmp_path: Path, config: str, front_matter: str, is_mdx: bool
) -> None:
    write(tmp_path, **{"docs/a.md": front_matter + _COMMENTED, "docusaurus.config.ts": config})
    reading = read_markdown_folder(tmp_path / "docs", "https://e.com/", generator=SiteGenerator.DOCUSAURUS)
    text = "\n".join(block.text for section in reading.sources[0].read().sections for block in section.blocks)
    assert "Joined." in text
    assert "`{/* code */}`" in text
    assert ("The set {a, b} of braces." in text) is is_mdx
    assert ("internal" not in text and "old text" not in text) is is_mdx
    assert "hidden" not in text


def test_other_readers_of_markdown_show_the_comments_of_mdx(tmp_path: Path) -> None:
    write(tmp_path, **{"a.md": _COMMENTED})
    reading = read_markdown_folder(tmp_path, "https://e.com/", generator=SiteGenerator.VITEPRESS)
    assert "internal" in str(reading.sources[0].read().sections)
