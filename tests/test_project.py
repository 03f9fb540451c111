"""Which files a build may read."""

from __future__ import annotations

import tempfile
from contextlib import chdir
from pathlib import Path

import pytest

from chapterverse.project import leads_out


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The docs of a project, beside which other files of the project and of the machine are."""
    for place in ("repo/docs/guide.md", "repo/README.md", "repo/.env", "repo/.ci/token", "notes/private.md"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(place)
    return tmp_path / "repo/docs"


def reads(folder: Path, *places: str) -> list[str]:
    """Return those of the places, relative to a folder, that may be read."""
    return [place for place in places if not leads_out(folder / place, folder)]


PLACES = ("guide.md", "../README.md", "../.env", "../.ci/token", "../../notes/private.md")


def test_without_a_repository_only_the_folder_is_read(folder: Path) -> None:
    assert reads(folder, *PLACES) == ["guide.md"]


@pytest.mark.parametrize("is_worktree", [False, True])
def test_a_repository_is_read_but_for_hidden_files(folder: Path, is_worktree: bool) -> None:
    git = folder.parent / ".git"
    if is_worktree:
        git.write_text("gitdir: /elsewhere")
    else:
        git.mkdir()
        (git / "config").write_text("token")
    assert reads(folder, *PLACES, "../.git/config") == ["guide.md", "../README.md"]


def test_without_a_repository_the_working_directory_is_the_project(folder: Path) -> None:
    with chdir(folder.parent):
        assert reads(folder, *PLACES) == ["guide.md", "../README.md"]
    with chdir(folder.parents[1] / "notes"):
        assert reads(folder, *PLACES) == ["guide.md"]
    with chdir("/"):
        assert reads(folder, *PLACES) == ["guide.md"]


def test_a_home_is_no_project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder.parents[1]))
    (folder.parents[1] / ".git").mkdir()
    with chdir(folder.parents[1]):
        assert reads(folder, *PLACES) == ["guide.md"]


def test_a_hidden_folder_may_hold_the_site(folder: Path) -> None:
    (folder.parent / ".git").mkdir()
    assert not leads_out(folder.parent / ".ci/token", folder.parent / ".ci")


@pytest.mark.parametrize("place", ["/proc/self/environ", "/proc/1/cmdline", "/sys/kernel", "/dev/null", "/dev/fd/0"])
def test_nothing_of_the_kernel_is_read(place: str) -> None:
    assert leads_out(place, "/")
    assert leads_out(place, Path(place).parent)


def test_a_link_counts_as_the_file_that_it_leads_to(folder: Path) -> None:
    (folder / "leak.md").symlink_to(tempfile.gettempdir())
    (folder / "inside.md").symlink_to("guide.md")
    assert reads(folder, "leak.md", "inside.md") == ["inside.md"]
