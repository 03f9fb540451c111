"""The files that are read, and those that never are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from chapterverse.errors import InputError, UnreadablePage, UnsafePath
from chapterverse.readers.folder import MAX_FILE_BYTES, list_files, read_page, real_path

PAGES = (".html",)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "guide").mkdir(parents=True)
    for name in ("index.html", "guide/a.html", "guide/B.HTML", "style.css"):
        (folder / name).write_text(name)
    (tmp_path / "secret.html").write_text("secret")
    return folder


def test_files_are_listed_sorted_and_relative(site: Path) -> None:
    assert list_files(site, PAGES).files == ["guide/B.HTML", "guide/a.html", "index.html"]


def test_hidden_and_generated_folders_are_not_listed(site: Path) -> None:
    for name in (".git", "node_modules", "_static", "_modules"):
        (site / name).mkdir()
        (site / name / "x.html").write_text("x")
    assert len(list_files(site, PAGES).files) == 3


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        list_files(tmp_path / "none", PAGES)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        list_files(tmp_path / "file", PAGES)


@pytest.mark.parametrize(
    "target", ["/proc/self/environ", "../secret.html", "/etc/passwd", "../../none.html", "/dev/null"]
)
def test_a_link_out_of_the_folder_is_never_read(site: Path, target: str) -> None:
    (site / "leak.html").symlink_to(target)
    # It costs no other page.
    assert list_files(site, PAGES).files == ["guide/B.HTML", "guide/a.html", "index.html", "leak.html"]
    with pytest.raises(
        UnsafePath, match=r"^leak\.html leads out of the project, so it is not read: put the file there\.$"
    ):
        read_page(site, "leak.html")
    with pytest.raises(UnsafePath, match=r"^leak\.html is a link that leads out of its folder: remove it\.$"):
        real_path(site, "leak.html")


def test_a_link_into_the_project_is_read_but_never_published(site: Path, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (site / "page.html").symlink_to("../secret.html")
    assert read_page(site, "page.html") == b"secret"
    with pytest.raises(UnsafePath):
        real_path(site, "page.html")


def test_a_linked_folder_outside_is_not_read(site: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.html").write_text("a")
    (site / "docs").symlink_to(tmp_path / "other")
    listing = list_files(site, PAGES)
    assert len(listing.files) == 3
    assert listing.warnings == ["docs is a link to a folder outside, whose pages are not read: move the folder here."]


def test_a_folder_beside_with_a_longer_name_is_outside(site: Path, tmp_path: Path) -> None:
    (tmp_path / "site-secrets").mkdir()
    (tmp_path / "site-secrets" / "a.html").write_text("secret")
    (site / "leak.html").symlink_to("../site-secrets/a.html")
    with pytest.raises(UnsafePath):
        read_page(site, "leak.html")


def test_links_in_circles(site: Path) -> None:
    (site / "a.html").symlink_to("b.html")
    (site / "b.html").symlink_to("a.html")
    assert "a.html" in list_files(site, PAGES).files
    with pytest.raises(UnsafePath, match="leads in a circle"):
        read_page(site, "a.html")


def test_a_pipe_is_never_opened(site: Path) -> None:
    os.mkfifo(site / "pipe.html")
    (site / "a.html").symlink_to("pipe.html")
    for name in ("pipe.html", "a.html"):
        assert name in list_files(site, PAGES).files
        with pytest.raises(UnsafePath, match=rf"^{name} is a pipe, a device"):
            read_page(site, name)


def test_links_inside(site: Path) -> None:
    (site / "copy.html").symlink_to("guide/a.html")
    (site / "latest").symlink_to("guide")
    (site / "loop").symlink_to(".")
    (site / "gone.html").symlink_to("nothing.html")
    listing = list_files(site, PAGES)
    assert listing.files == ["copy.html", "gone.html", "guide/B.HTML", "guide/a.html", "index.html"]
    assert sorted(w.partition(" is ")[0] for w in listing.warnings) == ["latest", "loop"]
    with pytest.raises(UnreadablePage, match=r"^gone\.html is a link that leads nowhere: remove it\.$"):
        read_page(site, "gone.html")
    assert read_page(site, "copy.html") == b"guide/a.html"


def test_links_that_are_no_pages_do_not_matter(site: Path) -> None:
    (site / "style.map").symlink_to("/etc/passwd")
    assert len(list_files(site, PAGES).files) == 3


def test_the_folder_itself_may_be_a_link(site: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("site")
    assert len(list_files(tmp_path / "link", PAGES).files) == 3
    assert read_page(tmp_path / "link", "index.html") == b"index.html"


def test_a_path_that_climbs_out_is_never_opened(site: Path) -> None:
    with pytest.raises(UnsafePath):
        read_page(site, "../secret.html")


def test_a_file_swapped_for_a_link_after_the_listing(site: Path) -> None:
    list_files(site, PAGES)
    (site / "index.html").unlink()
    (site / "index.html").symlink_to("/proc/self/environ")
    with pytest.raises(UnsafePath):
        read_page(site, "index.html")


def test_paths_that_can_be_no_identity(site: Path) -> None:
    deep = site / ("d" * 200) / ("e" * 200)
    deep.mkdir(parents=True)
    (deep / ("f" * 200 + ".html")).write_text("x")
    (site / "new\nline.html").write_text("x")
    (site / os.fsdecode(b"latin-\xe9.html")).write_text("x")
    listing = list_files(site, PAGES)
    assert len(listing.files) == 3
    assert len(listing.warnings) == 3
    assert all(warning.isprintable() for warning in listing.warnings)


def test_files_that_cannot_be_read(site: Path) -> None:
    with pytest.raises(UnreadablePage, match=r"^none\.html can't be read: No such file"):
        read_page(site, "none.html")


def test_a_file_that_is_too_large(site: Path) -> None:
    with (site / "big.html").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    with pytest.raises(UnreadablePage, match=r"^big\.html is larger than 50 MB"):
        read_page(site, "big.html")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_files_and_folders_that_may_not_be_read(site: Path) -> None:
    (site / "index.html").chmod(0)
    (site / "guide").chmod(0)
    with pytest.raises(InputError, match=r"^The folder guide/ can't be read: Permission denied\.$"):
        list_files(site, PAGES)
    (site / "guide").chmod(0o700)
    with pytest.raises(UnreadablePage, match=r"^index\.html can't be read: Permission denied\.$"):
        read_page(site, "index.html")
