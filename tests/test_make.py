"""Every task of the Makefile, in a checkout in which nothing was run before."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TARGETS = set(re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE))
#: Tests of each kind that the Makefile tells apart, instead of all: the tasks are to be tried, and not the tests.
FEW = (
    "tests/readers/test_page_globs.py tests/test_compare.py::test_what_cannot_be_compared_is_one_sentence "
    "tests/widget/test_place.py::test_a_small_window_offers_neither "
    "tests/widget/test_place.py::test_at_400_percent_half_of_the_height_is_for_the_conversation"
)
NO_CREDENTIALS = {
    "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}  # fmt: skip
#: Of the tests that run around this one.
OTHERS = ("CHAPTERVERSE_", "AWS_", "PYTEST_", "MAKE", "MFLAGS", "VIRTUAL_ENV", "COV_", "QDRANT_")
pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="needs a clone, to make another one")


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    browsers = {n: os.environ[n] for n in ("CHAPTERVERSE_CHROMIUM", "CHAPTERVERSE_FIREFOX") if os.environ.get(n)}
    return {**kept, **browsers, **NO_CREDENTIALS, "CI": "", "PYTEST_ADDOPTS": FEW, **more}


def git(*arguments: str, folder: Path = ROOT) -> str:
    return subprocess.run(("git", *arguments), cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of this checkout with what is changed in it, in which nothing was run."""
    folder = tmp_path_factory.mktemp("pristine") / "project"
    git("clone", "--quiet", str(ROOT), str(folder))
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
        elif name:
            (folder / name).unlink(missing_ok=True)
    git("add", "--all", folder=folder)
    return folder


@pytest.fixture
def clone(pristine: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of it for one test, on the disk: with what the tasks set up it has a gigabyte."""
    folder = tmp_path_factory.mktemp("clone") / "project"
    yield Path(shutil.copytree(pristine, folder, symlinks=True))
    shutil.rmtree(folder, ignore_errors=True)


def make(folder: Path, *arguments: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ("make", "--no-print-directory", *arguments), cwd=folder, env=environment(**more), stdin=subprocess.DEVNULL,
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    return done


def sentence(folder: Path, *arguments: str, **more: str) -> str:
    """Return the last line that a task said before it failed, without that of make."""
    said = make(folder, *arguments, code=2, **more).stderr.splitlines()
    return [line for line in said if not line.startswith("make: ")][-1]


def test_every_task_is_tried_here() -> None:
    tried = Path(__file__).read_text()
    assert {target for target in TARGETS if f'"{target}"' not in tried} == set()


def test_help_needs_nothing(clone: Path) -> None:
    assert {line.split()[1] for line in make(clone, "help").stdout.splitlines()} == TARGETS
    assert git("status", "--porcelain", "--ignored", folder=clone) == git("status", "--porcelain", folder=clone)


def test_tour_is_one_script(clone: Path) -> None:
    # It takes minutes and a browser: whoever changes the widget runs it, and looks at what it took.
    assert make(clone, "--dry-run", "tour").stdout.rstrip().endswith("scripts/tour.py")


def test_demo_answers(clone: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with subprocess.Popen(
        ("make", "demo", f"PORT={port}"), cwd=clone, env=environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    ) as running:  # fmt: skip
        try:
            while running.poll() is None:
                try:
                    health = urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/health", timeout=5)
                    break
                except OSError:
                    time.sleep(0.5)
            assert json.load(health) == {"status": "ok"}
        finally:
            os.killpg(running.pid, signal.SIGINT)


def test_package_packs_what_lambda_runs(clone: Path) -> None:
    said = make(clone, "package").stderr
    assert (clone / "dist" / "lambda.zip").stat().st_size > 5_000_000
    assert ("Warning: there is no Python 3.13" in said) is (not [*clone.glob("dist/lambda/**/*.pyc")])


def test_deploy_packs_and_then_asks_for_credentials(clone: Path) -> None:
    assert sentence(clone, "deploy").startswith("There are no AWS credentials: run `aws configure`")
    assert (clone / "dist" / "lambda.zip").exists()


def test_the_keys_and_the_end_of_what_was_never_deployed(clone: Path) -> None:
    nothing = f"There is no {clone}/infra/samconfig.toml, so nothing was deployed from here."
    assert sentence(clone, "secret", "NAME=COHERE_API_KEY") == nothing
    assert sentence(clone, "secret").startswith("Name the variable that the key is for")
    assert sentence(clone, "destroy") == nothing


def test_the_locks_are_resolved_anew(clone: Path) -> None:
    make(clone, "lock")
    changed = git("diff", "--name-only", folder=clone).split()
    assert [name for name in changed if not name.endswith(".txt")] == []


def test_a_release_is_made(clone: Path) -> None:
    assert sentence(clone, "release", REPOSITORY="", CONTACT="").startswith("Give --repository, the address")
    make(clone, "release", REPOSITORY="https://git.example/tea", CONTACT="tea@example.com")
    assert (clone / "dist" / "release" / "SHA256SUMS").read_text().count("\n") == 7


def test_the_tests_run_with_nothing_made_before_and_clean_removes_all(clone: Path) -> None:
    before = git("status", "--porcelain", folder=clone)
    assert " passed" in make(clone, "test").stdout
    for task in ("test-rest", "test-all"):
        assert " passed" in make(clone, task).stdout
    assert " passed" in make(clone, "quick").stdout
    assert " passed" in make(clone, "room", "ROOM=work", PYTEST_ADDOPTS="tests/api/limits/test_proof_of_work.py").stdout
    make(clone, "lint")
    make(clone, "types")
    make(clone, "format")
    assert "one question, warm" in make(clone, "count").stdout
    assert git("status", "--porcelain", folder=clone) == before
    make(clone, "clean")
    assert git("status", "--porcelain", "--ignored", folder=clone) == before


def test_nightly_names_what_there_is(clone: Path) -> None:
    """It takes many hours, so it is only planned here; its parts have tests of their own."""
    plan = make(clone, "--dry-run", "nightly").stdout
    named = set(re.findall(r"(?:benchmarks|requirements|tests|scripts)/[\w./-]+\.(?:py|txt)|[\w-]+\.py", plan))
    assert {"cold_start.py", "opening.py", "load.py", "tests/fuzz/requirements.txt"} <= named
    assert [name for name in named if not any((clone / at / name).exists() for at in ("", "benchmarks"))] == []
