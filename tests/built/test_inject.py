"""The widget in built sites: one tag per page, no other byte changed, no file outside of the folder touched."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chapterverse.errors import InputError, UnsafePath
from chapterverse.site.delivery import widget_files
from chapterverse.site.inject import Injection, inject
from chapterverse.site.tags import TAG_MARK, open_frame, put
from growth import assert_linear

SITES = Path(__file__).parents[1] / "sites"
GENERATORS = ("mkdocs-material", "docusaurus", "vitepress", "sphinx")
API = "https://api.example.com"
TAG = '<script type="module" src="launcher.js" data-chapterverse></script>'
CONFIGURED = (
    '<script type="module" src="https://api.example/widget/launcher.js" data-title="Ask <us>" data-starters="A|B" '
    'data-endpoint="https://api.example" data-layout="side" data-consent="Is that well?" data-version="2.0"></script>'
)
PAGE = b"<!doctype html><html><head><title>T</title></head><body><p>x</p></body></html>"

CHANGES: list[tuple[dict[str, Any], str]] = [({}, ""), ({}, "2.0"), ({"layout": "side"}, ""), ({"scope": False}, "")]


def run(site: Path, endpoint: str = API) -> Injection:
    return inject(site, widget_files(endpoint))


def snapshot(site: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return content, mode and time of change of every file."""
    files = [p for p in site.rglob("*") if p.is_file()]
    return {str(p): (p.read_bytes(), p.stat().st_mode, p.stat().st_mtime_ns) for p in files}


def write(site: Path, path: str, content: bytes = PAGE) -> Path:
    file = site / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("generator", GENERATORS)
def test_every_page_of_every_generator_gets_one_tag_and_no_other_change(tmp_path: Path, generator: str) -> None:
    site = tmp_path / "site"
    shutil.copytree(SITES / generator, site)
    before = {p.relative_to(site): p.read_bytes() for p in site.rglob("*.html")}
    done = run(site)
    assert (done.changed, done.unchanged, done.skipped, done.warnings) == (len(before), 0, 0, ())
    for path, content in before.items():
        after = (site / path).read_bytes()
        (launcher,) = open_frame(after.decode("latin-1")).launchers
        assert after[: launcher.start] + after[launcher.end :] == content
        assert after[launcher.end :].startswith(b"</body>")
        if path.name != "404.html":
            assert (site / path.parent / launcher.src).is_file()


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_second_time_changes_nothing(tmp_path: Path, generator: str) -> None:
    site = tmp_path / "site"
    shutil.copytree(SITES / generator, site)
    first = run(site)
    before = snapshot(site)
    again = run(site)
    assert (again.changed, again.unchanged) == (0, first.changed)
    assert snapshot(site) == before


def test_another_endpoint_takes_the_place_of_the_first(tmp_path: Path) -> None:
    page = write(tmp_path, "a/index.html")
    old = run(tmp_path, "https://old.example").folder
    new = run(tmp_path, API).folder
    assert old != new
    assert [p.name for p in (tmp_path / "assets/chapterverse").iterdir()] == [new.rpartition("/")[2]]
    assert page.read_text().count(TAG_MARK) == 1
    assert f"../{new}/launcher.js" in page.read_text()
    config = (tmp_path / new / "config.js").read_text()
    assert f'"endpoint": "{API}"' in config


def test_an_older_release_is_removed_and_foreign_folders_stay(tmp_path: Path) -> None:
    tag = '<script type="module" src="assets/chapterverse/0.0.9-12345678/launcher.js" data-chapterverse></script>'
    page = write(tmp_path, "index.html", PAGE.replace(b"</body>", tag.encode() + b"</body>"))
    write(tmp_path, "assets/chapterverse/0.0.9-12345678/launcher.js", b"old")
    write(tmp_path, "assets/chapterverse/0.1.0/launcher.js", b"the plugin's")
    write(tmp_path, "assets/chapterverse/mine/x.js", b"mine")
    done = run(tmp_path)
    names = {p.name for p in (tmp_path / "assets/chapterverse").iterdir()}
    assert names == {done.folder.rpartition("/")[2], "0.1.0", "mine"}
    assert page.read_text().count("launcher.js") == 1


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<body>a</body></html>", f"<body>a{TAG}</body></html>"),
        ("<BODY>a</BoDy >\n", f"<BODY>a{TAG}</BoDy >\n"),
        ("<body>a</body>b</body>", f"<body>a</body>b{TAG}</body>"),
        ('<body><script>let a = "</body>"</script>b</body>', f'<body><script>let a = "</body>"</script>b{TAG}</body>'),
        ("<body>a</body></html><!-- </body> -->", f"<body>a{TAG}</body></html><!-- </body> -->"),
        ("<body><!-- </body> --><p>a", f"<body><!-- </body> --><p>a{TAG}"),
        ('<body><p title="</body>">a</p>', f'<body><p title="</body>">a</p>{TAG}'),
        ("<body><textarea></body></textarea>a</body>", f"<body><textarea></body></textarea>a{TAG}</body>"),
        ("<html><p>a</html>", f"<html><p>a{TAG}</html>"),
        ("<!DOCTYPE html><p>a", f"<!DOCTYPE html><p>a{TAG}"),
        ("<body>a<!-- never ends </body></html>", f"<body>a{TAG}<!-- never ends </body></html>"),
        ("<body>a<script>never ends </body></html>", f"<body>a{TAG}<script>never ends </body></html>"),
        ('<body>a<p title="never ends </body>', f'<body>a{TAG}<p title="never ends </body>'),
    ],
)
def test_the_tag_stands_where_a_browser_runs_it(page: str, expected: str) -> None:
    once = put(page, open_frame(page), "launcher.js")
    assert once == expected
    assert put(once, open_frame(once), "launcher.js") == once
    assert put(once, open_frame(once), None) == page


def test_a_hostile_page_takes_time_linear_in_its_length() -> None:
    def frame_of(piece: str, size: int) -> None:
        open_frame(piece * size)

    for piece in ("<a ", "<!--", "<script>", "</body>", '<p title="', "<svg>"):
        assert_linear(partial(frame_of, piece), 2_000, 32_000)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + PAGE,
        PAGE.replace(b"><", b">\r\n<"),
        PAGE.replace(b"x", "é ü".encode("latin-1")),
        PAGE.replace(b"x", "日本語".encode("shift_jis")),
        PAGE.replace(b"x", "日本語 \u2028".encode()),
        PAGE.replace(b"x", b"\xff\xfe\x80 broken"),
    ],
    ids=["bom", "crlf", "latin-1", "shift-jis", "utf-8", "broken"],
)
def test_every_byte_of_a_page_stays(tmp_path: Path, content: bytes) -> None:
    page = write(tmp_path, "index.html", content)
    done = run(tmp_path)
    tag = f'<script type="module" src="{done.folder}/launcher.js" {TAG_MARK}></script>'.encode()
    assert page.read_bytes() == content.replace(b"</body>", tag + b"</body>")


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_a_page_in_utf_16_is_changed_in_utf_16(tmp_path: Path, codec: str) -> None:
    text = "\ufeff" + PAGE.decode().replace("x", "日本 \U0001f600")
    page = write(tmp_path, "index.html", text.encode(codec))
    done = run(tmp_path)
    tag = f'<script type="module" src="{done.folder}/launcher.js" {TAG_MARK}></script>'
    assert page.read_bytes().decode(codec) == text.replace("</body>", f"{tag}</body>")
    assert run(tmp_path).unchanged == 1


def test_what_is_no_page_is_told_and_left(tmp_path: Path) -> None:
    write(tmp_path, "index.html")
    pieces = {
        "google1.html": b"google-site-verification: google1.html",
        "binary.html": b"<html>\0\1\2",
        "odd.html": b"\xff\xfe<\0h",
        "lone.html": b"\xff\xfe" + "<html>".encode("utf-16-le") + b"x",
    }
    for name, content in pieces.items():
        write(tmp_path, name, content)
    done = run(tmp_path)
    assert (done.changed, done.skipped, len(done.warnings)) == (1, 4, 4)
    assert "google1.html is a piece of HTML and no page, so it got no widget." in done.warnings
    assert "binary.html is not a text file." in done.warnings
    assert "lone.html is not the UTF-16 that it says it is, so it got no widget." in done.warnings
    assert all((tmp_path / name).read_bytes() == pieces[name] for name in pieces)


def test_mode_stays_and_nothing_is_left_lying_about(tmp_path: Path) -> None:
    page = write(tmp_path, "index.html")
    page.chmod(0o640)
    done = run(tmp_path)
    assert page.stat().st_mode & 0o777 == 0o640
    assert {p.name for p in tmp_path.iterdir()} == {"index.html", "assets"}
    folder = tmp_path / done.folder
    assert {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()} == set(widget_files(API))


def test_pages_with_the_widget_of_the_plugin_or_of_an_api_are_left(tmp_path: Path) -> None:
    own = PAGE.replace(
        b"</body>", b'<script src="assets/chapterverse/0.1.0/launcher.js" type="module"></script></body>'
    )
    api = PAGE.replace(b"</head>", b'<script type=module src="https://api.example/widget/launcher.js"></script></head>')
    configured = PAGE.replace(b"</body>", f"{CONFIGURED}</body>".encode())
    write(tmp_path, "a.html", own)
    write(tmp_path, "b.html", api)
    write(tmp_path, "c.html", configured)
    before = snapshot(tmp_path)
    done = run(tmp_path)
    assert snapshot(tmp_path) == before
    assert done.to_json() == {
        "pages": {"seen": 3, "changed": 0, "unchanged": 0, "skipped": 3},
        "folder": done.folder,
        "warnings": ["a.html and 2 more: the widget is there already by another way, so it was left."],
    }


def test_a_tag_that_configures_the_widget_is_a_launcher() -> None:
    (launcher,) = open_frame(f"<!doctype html><body>{CONFIGURED}</body>").launchers
    assert (launcher.src, launcher.injected, launcher.module) == ("https://api.example/widget/launcher.js", False, True)


def test_a_change_in_any_option_is_a_folder_of_its_own(tmp_path: Path) -> None:
    page = write(tmp_path, "index.html")
    folders = [inject(tmp_path, widget_files(API, options, version)).folder for options, version in CHANGES]
    assert len(set(folders)) == len(CHANGES)
    assert f'src="{folders[-1]}/launcher.js"' in page.read_text()
    assert (tmp_path / folders[-1] / "lang/more/en.js").is_file()


def test_an_error_page_is_reached_at_any_address(tmp_path: Path) -> None:
    write(tmp_path, "404.html")
    write(tmp_path, "index.html")
    urls = "".join(f"<url><loc>https://x.example/docs/{p}</loc></url>" for p in ("", "a/"))
    write(tmp_path, "sitemap.xml", f"<urlset>{urls}</urlset>".encode())
    write(tmp_path, "a/index.html")
    done = run(tmp_path)
    assert f'src="/docs/{done.folder}/launcher.js"' in (tmp_path / "404.html").read_text()
    assert f'src="../{done.folder}/launcher.js"' in (tmp_path / "a/index.html").read_text()


@pytest.mark.parametrize(
    ("base", "expected"), [("/", ""), ("../", ""), ("./", "../"), ("/docs/", ""), ("https://x.example/docs/", "")]
)
def test_a_base_element_is_heeded(tmp_path: Path, base: str, expected: str) -> None:
    page = write(tmp_path, "a/b.html", PAGE.replace(b"<title>", f'<base href="{base}"><title>'.encode()))
    done = run(tmp_path)
    assert f'src="{expected}{done.folder}/launcher.js"' in page.read_text()


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    site, other = tmp_path / "site", tmp_path / "other"
    write(site, "index.html")
    other.mkdir()
    secret = write(other, "secret.html")
    (site / "leak.html").symlink_to(secret)
    done = run(site)
    assert done.warnings == ("leak.html is a link that leads out of its folder: remove it.",)
    assert (done.changed, done.skipped) == (1, 1)
    (site / "leak.html").unlink()
    shutil.rmtree(site / "assets")
    (site / "assets").symlink_to(other)
    with pytest.raises(UnsafePath):
        run(site)
    assert secret.read_bytes() == PAGE
    assert [p.name for p in other.iterdir()] == ["secret.html"]


def test_a_link_to_a_page_of_the_site_stays_a_link(tmp_path: Path) -> None:
    write(tmp_path, "a.html")
    (tmp_path / "b.html").symlink_to("a.html")
    done = run(tmp_path)
    assert (tmp_path / "b.html").is_symlink()
    assert done.warnings == ("b.html is a link to another page, so only that page got the widget.",)


def test_a_folder_without_pages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no HTML page to change"):
        run(tmp_path)
    with pytest.raises(InputError, match="is not a folder"):
        run(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_cut_short_is_finished_by_the_next(tmp_path: Path) -> None:
    """After any interruption every page with a tag finds its files."""
    write(tmp_path, "a.html")
    write(tmp_path, "b.html")

    def stop(stage: str, done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        inject(tmp_path, widget_files("https://old.example"), stop)
    (launcher,) = open_frame((tmp_path / "a.html").read_text()).launchers
    assert (tmp_path / launcher.src).is_file()
    done = run(tmp_path)
    assert (done.changed, len(list((tmp_path / "assets/chapterverse").iterdir()))) == (2, 1)
