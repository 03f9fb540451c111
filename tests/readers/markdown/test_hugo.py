"""Addresses of Hugo's pages. The expected ones were written by Hugo 0.168 from the same files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

import pytest

from chapterverse.ext.sources.markdown_folder import read_markdown_folder
from chapterverse.readers.site_pages import SitePages
from chapterverse.readers.urls import SiteGenerator

BASE = "https://t.example/docs/"

#: Front matter in YAML, and the address that Hugo makes; None for a file that becomes no page.
FILES: dict[str, tuple[str, str | None]] = {
    "_index.md": ("title: Home", ""),
    "plain.md": ("title: Plain", "plain/"),
    "Mixed Case/My Page.md": ("title: X", "mixed-case/my-page/"),
    "Mixed Case/Ünï & Co (2).md": ("title: X", "mixed-case/ünï--co-2/"),
    "Mixed Case/a -  b!.md": ("title: X", "mixed-case/a----b/"),
    "v1.2/notes.v3.md": ("title: X", "v1.2/notes.v3/"),
    "draft.md": ("draft: true", None),
    "future.md": ("date: 2099-01-01", None),
    "future2.md": ("publishDate: 2099-01-01T00:00:00Z", None),
    "expired.md": ("expiryDate: 2001-01-01", None),
    "sec/_index.md": ("title: Sec", "sec/"),
    "sec/a.md": ("slug: Hello World", "sec/hello-world/"),
    "sec/b.md": ("url: bee", "bee/"),
    "sec/c.md": ("url: /cee/page.html", "cee/page.html"),
    "sec/d.md": ("url: /Dee/Upper", "Dee/Upper/"),
    "sec/e.md": ("build: {render: never}", None),
    "sec/f.md": ("_build: {render: false}", None),
    "sec/g.md": ("build: {render: link}", None),
    "sec/h.md": ("build: {list: never}", "sec/h/"),
    "sec/i.md": ("slug: a/b", "sec/a/b/"),
    "sec/k.md": ("url: /../../out/", "out/"),
    "sec/j.md": ("outputs: [json]", None),
    "sec/Deep/Er/Page.md": ("title: Page", "sec/deep/er/page/"),
    "slugsec/_index.md": ("slug: other", "other/"),
    "slugsec/a.md": ("title: A", "other/a/"),
    "urlsec/_index.md": ("url: /moved/", "moved/"),
    "urlsec/a.md": ("title: A", "urlsec/a/"),
    "bundle/index.md": ("title: Bundle", "bundle/"),
    "bundle/resource.md": ("title: Resource", None),
    "bundle/sub/deeper.md": ("title: Resource", None),
    "bundle2/index.md": ("slug: bun-dle", "bun-dle/"),
    "headless/index.md": ("headless: true", None),
    "casc/_index.md": ("cascade: {build: {render: never}}", None),
    "casc/a.md": ("title: A", None),
    "casc/deep/b.md": ("title: B", None),
    "casc/deep/c.md": ("build: {render: always}", "casc/deep/c/"),
    "casc/over/_index.md": ("build: {render: always}\ncascade: {build: {render: always}}", "casc/over/"),
    "casc/over/x.md": ("title: X", "casc/over/x/"),
    "target/_index.md": ("cascade: [{target: {path: '/target/hid*'}, draft: true}]", "target/"),
    "target/hidden.md": ("title: H", None),
    "target/seen.md": ("title: S", "target/seen/"),
    "pages/_index.md": ("cascade: {target: {kind: page}, build: {render: never}}", "pages/"),
    "pages/a.md": ("title: A", None),
    "page.fr.md": ("title: Fr", "page.fr/"),
    "linktitle.md": ('url: "/a b/ü"', "a b/ü/"),
    "_under/a.md": ("title: A", "_under/a/"),
    "upper/PAGE.MD": ("title: P", "upper/page/"),
}


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def addresses(reading: SitePages) -> dict[str, str]:
    return {s.file_path: unquote(json.loads(s.context)[0]).removeprefix(BASE) for s in reading.sources}


def placed(folder: Path) -> dict[str, str]:
    return addresses(read_markdown_folder(folder, BASE, generator=SiteGenerator.HUGO))


def test_a_file_is_where_hugo_publishes_it(tmp_path: Path) -> None:
    write(tmp_path, {path: f"---\n{matter}\n---\nText.\n" for path, (matter, _) in FILES.items()})
    assert placed(tmp_path) == {path: address for path, (_, address) in FILES.items() if address is not None}


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ('+++\ntitle = "Toml"\ndate = 2020-01-02\nslug = "tom-l"\n+++\nText.\n', "tom-l/"),
        ('{\n"title": "Json",\n"url": "/jay/son/"\n}\nText.\n', "jay/son/"),
        ("# No front matter\n\nText.\n", "a/"),
        ("{{< note >}}\nText.\n", "a/"),
    ],
)
def test_front_matter_has_three_languages(tmp_path: Path, text: str, address: str) -> None:
    assert placed(write(tmp_path, {"a.md": text})) == {"a.md": address}


CONFIG = """
baseURL = "https://t.example/docs/"
defaultContentLanguage = "en"
[languages.en]
[languages.fr]
[permalinks.page]
posts = "/:year/:month/:slug/"
sec = "/s/:sections/:slugorcontentbasename"
odd = "/v/:sections[last]/:title"
[permalinks.section]
posts = "/articles/"
"""
CONFIGURED = {
    "page.md": ("title: En", "page/"),
    "page.fr.md": ("title: Fr", "fr/page/"),
    "sur.fr.md": ("url: /fruits/", "fruits/"),
    "tok.md": ("url: /x/:slug/\nslug: tik", "x/tik/"),
    "posts/_index.md": ("title: Articles", "articles/"),
    "posts/first.md": ("title: First Post!\ndate: 2020-03-04", "2020/03/first-post/"),
    "posts/nodate.md": ("title: No date", "1/01/no-date/"),
    "posts/deep/x.md": ("date: 2022-02-02\nslug: My Slug", "2022/02/my-slug/"),
    "sec/Deep/Er/Page.md": ("title: Page", "s/sec/page/"),
    "odd/a.md": ("title: A", None),
}


def test_the_configuration_counts_and_what_it_hides_is_told_once(tmp_path: Path) -> None:
    write(tmp_path, {"hugo.toml": CONFIG})
    files = {path: f"---\n{matter}\n---\nText.\n" for path, (matter, _) in CONFIGURED.items()}
    reading = read_markdown_folder(write(tmp_path / "content", files), BASE, generator=SiteGenerator.HUGO)
    assert addresses(reading) == {path: address for path, (_, address) in CONFIGURED.items() if address is not None}
    assert reading.warnings == (
        "1 pages are left out, as their files don't tell their `permalinks`: index the built site.",
    )


def test_a_translation_of_a_section_leaves_it_its_slug(tmp_path: Path) -> None:
    write(tmp_path, {"hugo.toml": "[languages.en]\n[languages.pt]\n"})
    files = {"sec/_index.md": "---\nslug: other\n---\n", "sec/_index.pt.md": "---\ntitle: S\n---\n", "sec/a.md": "A."}
    assert placed(write(tmp_path / "content", files))["sec/a.md"] == "other/a/"


def test_ugly_addresses_are_those_of_pages_alone(tmp_path: Path) -> None:
    write(tmp_path, {"config/_default/hugo.yaml": "uglyURLs: true\n"})
    files = {"sec/_index.md": "---\ntitle: S\n---\n", "sec/a.md": "A.", "b.md": "---\nurl: bee\n---\nB."}
    assert placed(write(tmp_path / "content", files)) == {
        "sec/_index.md": "sec/",
        "sec/a.md": "sec/a.html",
        "b.md": "bee/",
    }


@pytest.mark.parametrize("config", ["[broken", "- a list\n", ""])
def test_a_configuration_that_is_none_changes_nothing(tmp_path: Path, config: str) -> None:
    write(tmp_path, {"hugo.toml": config, "hugo.yaml": config})
    assert placed(write(tmp_path / "content", {"a.md": "A."})) == {"a.md": "a/"}


@pytest.mark.parametrize(
    ("glob", "hidden"),
    [
        ("/a/b/c", True),
        ("/a/*", False),
        ("/a/**", True),
        ("/a/*/c", True),
        ("/**/c", True),
        ("**/c*", True),
        ("/a/?/c", True),
        ("{/x,/a}/**", True),
        ("/a/b", False),
        ("/*/b", False),
        ("**a" * 100, False),
        ("*" * 5000, False),
    ],
)
def test_a_cascade_is_for_the_pages_that_its_glob_matches(tmp_path: Path, glob: str, hidden: bool) -> None:
    section = json.dumps({"cascade": [{"target": {"path": glob}, "draft": True}]})
    write(tmp_path, {"_index.md": f"{section}\n", "a/b/c.md": "C.", "z.md": "Z."})
    assert ("a/b/c.md" not in placed(tmp_path)) is hidden


def test_text_that_only_a_build_has_is_told_once_with_the_number_of_pages(tmp_path: Path) -> None:
    include = '{{% include "/_common/x.md" %}}\n'
    reading = read_markdown_folder(
        write(tmp_path, {"a.md": include, "b.md": f"B.\n\n{include}", "c.md": "C."}), BASE, generator=SiteGenerator.HUGO
    )
    (warning,) = reading.warnings
    assert warning.startswith("2 pages take text from elsewhere when they are built")
