"""A release: what would be uploaded, made twice from this tree."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from chapterverse import __version__
from conftest import ROOT
from infra.conftest import Tool
from infra.conftest import tool as tool

sys.path.append(str(ROOT / "scripts"))
import release

REPOSITORY = "https://github.com/docs-chat/chapterverse"
NPM = {path.parent.name for path in ROOT.glob("npm/*/package.json")}
#: Seconds that an environment of its own may take on a machine with a network.
PATIENCE = 300.0


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    def made() -> Path:
        out = tmp_path_factory.mktemp("release") / "out"
        program, contact = ROOT / "scripts/release.py", "us@docs.example"
        command: list[str | Path] = [sys.executable, program, "--repository", REPOSITORY, "--email", contact]
        done = subprocess.run([*command, "--out", out], capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return out

    return made


@pytest.fixture(scope="module")
def made(make: Callable[[], Path]) -> Path:
    return make()


def test_it_is_the_same_bytes_every_time(made: Path, make: Callable[[], Path]) -> None:
    first, second = ({file.name: file.read_bytes() for file in out.iterdir()} for out in (made, make()))
    assert len(first) == 4 + len(NPM)
    assert [name for name in first if first[name] != second[name]] == []


def test_the_wheel_holds_every_file_of_the_packages(made: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "plugin", "lambda"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    wanted = {path.partition("/")[2] for path in tracked}
    with zipfile.ZipFile(made / f"chapterverse-{__version__}-py3-none-any.whl") as wheel:
        assert {name for name in wheel.namelist() if ".dist-info/" not in name} == wanted
    with tarfile.open(made / f"chapterverse-{__version__}.tar.gz") as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    assert names - set(tracked) == {"README.md", "CHANGELOG.md", "LICENSE", "PKG-INFO", "pyproject.toml"}


def test_a_wheel_of_a_clone_holds_the_same(made: Path, tmp_path: Path) -> None:
    # Not the copy that a release builds from: here .gitignore counts.
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path], cwd=ROOT, check=True,
        capture_output=True,
    )  # fmt: skip
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as one, zipfile.ZipFile(made / wheel.name) as other:
        assert set(one.namelist()) == set(other.namelist())


def test_twine_and_pyroma_have_nothing_to_say(made: Path, tool: Tool) -> None:
    files = [*made.glob("*.whl"), *made.glob("*.tar.gz")]
    done = tool("release", "twine", "--no-color", "check", "--strict", *files)
    assert done.stdout.count("PASSED") == 2, done.stdout
    done = tool("release", "pyroma", "--min", "10", *made.glob("*.tar.gz"))
    assert done.returncode == 0, done.stdout
    assert "Final rating: 10/10" in done.stdout


def test_the_page_of_the_package_has_no_dead_links(made: Path) -> None:
    with zipfile.ZipFile(made / f"chapterverse-{__version__}-py3-none-any.whl") as wheel:
        text = wheel.read(f"chapterverse-{__version__}.dist-info/METADATA").decode()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(links) > 10
    assert all(link.startswith(("https://", "#")) for link in links)
    views = re.findall(rf"\]\({re.escape(REPOSITORY)}/(?:blob|raw)/v{re.escape(__version__)}/([^)\s#]+)", text)
    assert [path for path in views if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("name", sorted(NPM))
def test_an_npm_package_holds_its_files_and_nothing_else(made: Path, name: str) -> None:
    folder = ROOT / "npm" / name
    with tarfile.open(made / f"{name}-{__version__}.tgz") as archive:
        files = {member.name.removeprefix("package/") for member in archive.getmembers()}
        opened = archive.extractfile("package/package.json")
        assert opened
        about = json.load(opened)
    assert files == {path.name for path in folder.iterdir() if path.is_file()} | {"LICENSE"}
    shown = {
        value
        for entry in about["exports"].values()
        for value in ([entry] if isinstance(entry, str) else entry.values())
    }
    assert {value.removeprefix("./") for value in shown} <= files
    assert (about["version"], about["repository"]["directory"]) == (__version__, f"npm/{name}")
    assert about.get("dependencies", {}).get("chapterverse", __version__) == __version__


def test_the_bill_of_materials_names_what_a_server_installs(made: Path) -> None:
    bill = json.loads((made / f"chapterverse-{__version__}.cdx.json").read_text("utf-8"))
    lock = (ROOT / "requirements/server.txt").read_text("utf-8")
    pinned = dict(re.findall(r"^([\w.-]+)(?:\[[^\]]*\])?==([^\s;]+)", lock, re.MULTILINE))
    assert bill["bomFormat"] == "CycloneDX"
    assert {part["name"] for part in bill["components"]} == pinned.keys()
    hashed = [part for part in bill["components"] if any(r.get("hashes") for r in part.get("externalReferences", []))]
    assert len(hashed) == len(bill["components"])


def test_uvx_runs_the_wheel_from_an_empty_cache(made: Path, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    wheel = made / f"chapterverse-{__version__}-py3-none-any.whl"
    environment = {**os.environ, "UV_CACHE_DIR": str(tmp_path / "cache"), "UV_TOOL_DIR": str(tmp_path / "tools")}
    command: list[str | Path] = [
        uv,
        "tool",
        "run",
        "--no-config",
        "--python",
        sys.executable,
        "--from",
        wheel,
        "chapterverse",
        "--help",
    ]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "index" in done.stdout
    # Of the processor, as a busy machine has little of it to give; alone it took 2.4 in all.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 10


# One version

_STATED = rf"(==|-|@|\")({re.escape(__version__)})(\"|-py3|\.tgz|\s)"


def test_the_version_comes_from_one_place() -> None:
    assert release.version() == __version__
    for path, pattern in release.stating().items():
        assert re.search(pattern.replace("VERSION", re.escape(__version__)), path.read_text("utf-8")), path
    places = {path.relative_to(ROOT).as_posix() for path in release.stating()}
    folders = ("npm", "plugin", "lambda", "site_example/docs", "README.md", "pyproject.toml")
    listed = subprocess.run(
        ["git", "grep", "--untracked", "-lE", _STATED, "--", *folders],
        cwd=ROOT, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    assert set(listed) - places == set()


def test_every_page_can_install_a_release_instead_of_a_clone() -> None:
    docs = ROOT / "site_example/docs"
    pages = {path.relative_to(docs).as_posix(): path.read_text("utf-8") for path in release.installing()}
    generators = {f"generators/{path.name}" for path in docs.glob("generators/*.md")} - {"generators/index.md"}
    assert pages.keys() >= {*generators, "getting-started/index.md", "running/deploy.md"}
    for name, text in pages.items():
        assert "install.md" not in text, name
        after = release.released(text)
        assert not re.search(r"vendor/chapterverse|\.\./chapterverse|no release|pip wheel|npm pack ", after), name
        # As many as were files of the clone, and nothing else of ours.
        names = re.findall(rf"(?<![\w/.-])chapterverse(?:\[[\w,]+\])?=={re.escape(__version__)}\b", after)
        assert len(names) == len(re.findall(r"\.whl", text)) > 0, name
        assert len(re.findall(rf"npm install \S+@{re.escape(__version__)}\n", after)) == text.count("$ npm pack"), name
        assert "```console\n```" not in after, name


def test_the_readme_says_how_to_install() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert readme.count("There is no release on PyPI or npm yet.") == 1
    after = release.released(readme)
    assert "no release" not in after
    assert after.count('pip install "chapterverse[') == readme.count('pip install "../chapterverse[') > 0
