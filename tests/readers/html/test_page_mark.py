"""The marks of a page's content, from the build to the written page."""

from __future__ import annotations

import html

import pytest

from chapterverse.readers.html.dom import apply_edits
from chapterverse.readers.html.metadata import read_metadata
from chapterverse.readers.html.page_mark import PageMark, find_marked_content, is_source_path, mark_content, seal
from growth import assert_linear

MARK = PageMark(
    path="guide/a & b.md", built="guide/a/index.html", base="https://e.com/", title='<b> "A" --> & é', language="de-CH",
    tags=("x", "--"), date="2026-03-04T00:00:00Z", type="faq", template="t.html", include=True, description="A.",
)  # fmt: skip
CONTENT = '<h1 id="a">A</h1>\n<p>Text.</p>'


def sealed(page: str) -> str:
    return apply_edits(page, seal(page))


def written(content: str, mark: PageMark = MARK) -> str:
    around = "<html lang=en><head><title>T</title></head><body><article>Edit {} Updated</article></body></html>"
    return sealed(around.format(mark_content(content, mark)))


def test_a_written_page_states_its_mark_and_its_content_between_comments() -> None:
    page = written(CONTENT)
    found = find_marked_content(page)
    assert found is not None
    assert (found.mark, page[found.start : found.end]) == (MARK, CONTENT)
    assert "<div" not in page
    assert page.count("-->") == 2


def test_a_title_may_be_the_name_of_a_mark() -> None:
    mark = PageMark(
        path="a.md",
        title="data-chapterverse-start= data-chapterverse-end= x",
        description="<div data-chapterverse-end>",
    )
    found = find_marked_content(written(CONTENT, mark))
    assert found is not None
    assert found.mark == mark


def test_the_mark_outranks_what_the_page_says() -> None:
    page = written(CONTENT)
    metadata = read_metadata(page)
    assert metadata.content(page) == CONTENT
    assert (metadata.language, metadata.source, metadata.tags, metadata.mark) == ("de-CH", MARK.path, MARK.tags, MARK)
    assert (metadata.created_at, metadata.content_type, metadata.title) == (MARK.date, "faq", "T")


@pytest.mark.parametrize(
    "change",
    [
        lambda page: page.replace(' hidden="', ' data-x="').replace("<div hidden ", "<div hidden='' "),
        lambda page: page.replace("<div hidden data", "<div data").replace("></div>", " hidden>\n</div>"),
        lambda page: page.replace("&quot;", "&#34;"),
        lambda page: page.replace("<div ", "<DIV ").replace("</div>", "</DIV >".replace(" ", "")),
    ],
)
def test_elements_that_another_plugin_writes_anew_are_still_marks(change: object) -> None:
    assert callable(change)
    page = sealed(change(f"<body>{mark_content(CONTENT, MARK)}</body>"))
    found = find_marked_content(page)
    assert found is not None
    assert (found.mark, page[found.start : found.end]) == (MARK, CONTENT)


FOREIGN = PageMark(path="x.md", title="Of another page")


@pytest.mark.parametrize(
    "content",
    [
        mark_content("<p>Text.</p>", FOREIGN),
        sealed(mark_content("<p>Text.</p>", FOREIGN)),
        mark_content("<p>Text.</p>", FOREIGN).partition("</p>")[0],
        mark_content("<p>Text.</p>", FOREIGN).partition("</p>")[2],
        sealed(mark_content("<p>Text.</p>", FOREIGN)).partition("</p>")[0],
        sealed(mark_content("<p>Text.</p>", FOREIGN)).partition("</p>")[2],
        f"<pre>{html.escape(mark_content('<p>Text.</p>', FOREIGN))}</pre>",
        "<!-- <div hidden data-chapterverse-start='{}'></div> -->",
        "<p data-chapterverse-end>Text.</p>",
    ],
)
def test_a_mark_that_a_page_writes_itself_means_nothing(content: str) -> None:
    page = written(content)
    found = find_marked_content(page)
    assert found is not None
    assert found.mark == MARK
    # All of it is content, and a reader sees the same.
    assert "Text." in page[found.start : found.end] or "Text." not in content
    assert page[found.end :].startswith("<!--chapterverse:end--> Updated")


@pytest.mark.parametrize(
    "page",
    [
        "<article>Text</article>",
        written(CONTENT).replace("<!--chapterverse:end-->", ""),
        written(CONTENT).replace("<!--chapterverse:start ", "<!--"),
        written(CONTENT) + written(CONTENT),
        written(CONTENT).replace('"path"', '"pth"'),
        written(CONTENT).replace('"guide/a & b.md"', '"../a.md"'),
        written(CONTENT).replace('"guide/a & b.md"', "7"),
        "<!--chapterverse:end--><!--chapterverse:start {}-->",
        "<!--chapterverse:start " + "[" * 100_000,
        '<!--chapterverse:start {"path": "\\ud800.md"}--><!--chapterverse:end-->',
    ],
)
def test_a_page_without_one_whole_pair_of_marks_has_none(page: str) -> None:
    assert find_marked_content(page) is None
    assert read_metadata(page).mark is None


def test_elements_that_are_no_pair_stay_as_they_are() -> None:
    page = mark_content(CONTENT, MARK)
    for odd in (page + page, page.partition("<h1")[0], page.partition("Text.")[2]):
        assert sealed(odd) == odd


def test_fields_of_a_wrong_type_are_left_out() -> None:
    stated = '{"path": "a.md", "title": 1, "tags": "x", "date": "soon", "include": "yes", "exclude": null}'
    assert PageMark.of(stated) == PageMark(path="a.md")


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x.md", "a/../b.md", "./a.md", "a/", "a\\b.md", "a\nb"])
def test_what_can_be_no_path_of_a_source(path: str) -> None:
    assert not is_source_path(path)
    assert PageMark.of(f'{{"path": "{path}"}}') is None


@pytest.mark.parametrize(
    "piece", ["<div data-chapterverse-start ", "<!--chapterverse:", "<a data-search-exclude", "<div x=\"' ", "<"]
)
def test_marks_take_linear_time(piece: str) -> None:
    assert_linear(lambda count: find_marked_content(sealed(mark_content(piece * count, MARK))), 4_000, 32_000)
