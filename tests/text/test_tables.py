"""Tables of a chunk's text, read back as the reader of HTML wrote them."""

from __future__ import annotations

from pathlib import Path

from chapterverse.ext.sources.markdown_folder import read_markdown_folder
from chapterverse.indexing.chunking import chunk
from chapterverse.model import Chunk, Page, Scope
from chapterverse.readers.sections.html_page import read_document
from chapterverse.text.tables import tables

TABLE = (
    "<table><caption>Sizes in cm</caption><tr><th>Part</th><th>Width</th></tr>"
    "<tr><td>Door | open</td><td>60</td></tr><tr><td><code>a|b</code></td></tr></table>"
)


def chunks(html: str) -> list[Chunk]:
    page = read_document(f"<html lang=en><main><h1 id=t>Oven</h1>{html}</main></html>")
    made = Page("a.html", "https://x.example/a/", page.title, "en", page.sections)
    return list(chunk(made, Scope("s"), "none/0"))


def test_headers_and_rows_come_back_from_the_text_of_a_chunk() -> None:
    for html in (
        TABLE,
        f"<blockquote>{TABLE}</blockquote>",
        f"<div class=admonition><p class=admonition-title>N</p>{TABLE}</div>",
    ):
        (made,) = chunks(html)
        (table,) = tables(made.text)
        assert table.headers == ("Part", "Width")
        assert table.rows == (("Door | open", "60"), ("`a|b`", ""))
        assert dict(made.captions)[table.line] == "Sizes in cm"


def test_a_long_table_is_cut_into_tables_of_one_name() -> None:
    rows = "".join(f"<tr><td>part {n}</td><td>{n}</td></tr>" for n in range(300))
    html = TABLE.replace("</table>", f"{rows}</table>")
    made = chunks(html)
    read = [(c, table) for c in made for table in tables(c.text)]
    assert len(made) > 5
    assert sum(len(table.rows) for _, table in read) == 302
    assert {dict(c.captions).get(table.line) for c, table in read} == {"Sizes in cm"}


def test_code_and_signs_are_no_tables() -> None:
    assert not list(tables("```\n| a |\n| --- |\n```\n\n~~~~\n| a |\n| --- |\n~~~\n~~~~\n| a | b |\ntext\n| --- |"))


def test_images_have_addresses_and_go_to_the_chunk_that_names_them() -> None:
    made = chunks(
        "<p>One.</p><h2 id=a>A</h2><p>"
        + "word " * 200
        + '</p><p>See <img src="../i/door.png" alt="The door" title="Front"> and '
        '<img src="b.png" alt="">, <img src="data:image/png;base64,AA" alt="inline">, '
        '<img src="javascript:x" alt="script">, '
        '<img src="https://img.shields.io/badge/x" alt="build">, <img src="http://[" alt="broken">, '
        '<img src="c.png"></p>'
    )
    by_text = {c.text: c.images for c in made if c.images}
    door = {"url": "https://x.example/i/door.png", "alt": "The door", "title": "Front"}
    assert [door in images for text, images in by_text.items() if "The door" in text] == [True]
    every = [image["url"] for images in by_text.values() for image in images]
    assert sorted(every) == ["https://x.example/a/c.png", "https://x.example/i/door.png"]


def test_a_gallery_is_bounded() -> None:
    made = chunks("".join(f'<p><img src="{n}.png" alt="Picture {n}"></p>' for n in range(3_000)))
    assert sum(len(c.images) for c in made) <= 50
    assert max(len(c.images) for c in made) <= 10


def test_images_of_a_source_start_from_its_file(tmp_path: Path) -> None:
    (tmp_path / "guide").mkdir()
    text = '# Guide\n\nSee ![The door](../i/door.png "Front") and ![Here](a%20b.png).\n'
    (tmp_path / "guide" / "oven.md").write_text(text, encoding="utf-8")
    (source,) = read_markdown_folder(tmp_path, "https://x.example/docs/").sources
    (made,) = chunk(source.read(), Scope("s"), "none/0")
    assert made.url == "https://x.example/docs/guide/oven/"
    assert [(image["url"], image["alt"]) for image in made.images] == [
        ("https://x.example/docs/i/door.png", "The door"),
        ("https://x.example/docs/guide/a%20b.png", "Here"),
    ]
