"""Shared fixtures: a folder in memory, a browser and a Node."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from fakes.dynamodb_server import DynamoServer

ROOT = Path(__file__).parents[1]

# Before Playwright is started by anyone.
sys.path.append(str(ROOT / "scripts"))
from browser import NODE  # noqa: E402

from browsers import browser_path  # noqa: E402

# Our own pull requests are built there too, and no test may depend on whether it is one.
os.environ.pop("GITHUB_EVENT_NAME", None)

# Started in the background by a script, the tests would have every program that they start ignore Ctrl+C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Where Python may not keep what it compiled, each of hundreds of programs would compile its libraries anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)

#: Files and folders whose tests `make test` leaves to `make test-rest`: kills, races, mutations, large hostile corpora,
#: whole deployments. What a change breaks most, units and contracts, is not here.
SLOW = (
    "faults/", "fuzz/", "e2e/", "generators/", "questions/", "reading/test_processors",
    "infra/test_stack", "infra/test_package", "infra/test_keys", "infra/test_template",
    "store/test_qdrant_", "store/test_s3.py", "store/test_edge", "store/test_takeover",
    "ledger/test_postgres", "ext/conversations/test_postgres",
    "indexing/test_history", "indexing/test_races", "indexing/test_publish_policy",
    "test_site_example.py", "test_release", "test_make", "test_sphinx_extension", "test_multilingual",
    "api/index/test_live_index",
    "embedding/test_bedrock", "api/draft/test_bedrock",
    "cli/test_external_sources", "embedding/test_storms", "embedding/test_fingerprints", "embedding/test_mutations",
    "evaluation/test_observations", "evaluation/test_command", "readers/test_properties", "test_compare",
    "lambdas/test_malformed", "lambdas/test_function",
    "ext/check/test_injections", "ext/check/test_lies", "api/http/guard/test_hostile", "api/limits/test_races",
    "ext/server/test_connections", "api/test_outages", "ext/check/test_mutations", "lambdas/test_runtime",
    "api/test_addresses_of",
    "cli/test_serve", "cli/test_mcp", "store/test_preallocation",
    "ext/conversations/test_dynamodb",
    "api/search/rerankers/test_mutations", "widget/test_firefox", "widget/test_hostile", "widget/test_commonmark",
)  # fmt: skip
#: Contracts of stores, and by the parameter's name the stores on which they are slow.
_CONTRACTS = {"store/test_store_contract.py", "ext/conversations/test_table.py", "indexing/test_tuning.py"}
SLOW_STORES = ("s3", "qdrant", "dynamodb")

#: Folders whose files hold few tests, and long ones.
_LONG = ("faults", "store", "indexing")

_MEMORY = Path("/dev/shm")
#: Bytes that must be free there: an index that is written takes 90 MB in memory, and a test makes a few.
_ENOUGH = 4 << 30
#: Now, as some tests set it.
_ELSEWHERE = "TMPDIR" in os.environ


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--room", help="only the tests that import a room of ext/, by its name; `core`: those of no room")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the browser tests and put them last, and first what takes long, or one process would be left with it.

    Playwright keeps an event loop running in the main thread for as long as its browser lives, and `asyncio.run` in a
    test that came later would refuse to start beside it.
    """
    if room := config.getoption("--room"):
        every = items[:]
        items[:] = [item for item in every if room in (_rooms(item.path) or {"core"})]
        config.hook.pytest_deselected(items=[item for item in every if room not in (_rooms(item.path) or {"core"})])
    seen = set[Path]()
    for item in items:
        if _drives_a_browser(item):
            item.add_marker("browser")
            # The first test of a module goes its whole way through the widget once; `make test` runs no other.
            if item.path in seen:
                item.add_marker("slow")
            seen.add(item.path)
        if _is_slow(item):
            item.add_marker("slow")
    items.sort(key=lambda item: (_drives_a_browser(item), item.path.parent.name not in _LONG))


@cache
def _rooms(file: Path) -> set[str]:
    """Return the rooms that the tests of a file import, or below whose folder they stand."""
    named = f"{file.relative_to(ROOT)}\n{file.read_text(encoding='utf-8')}"
    return set(re.findall(r"(?:\bchapterverse(?:_api)?\.ext\.|^tests/ext/)(\w+)", named))


def pytest_collection_finish() -> None:
    """Spare the collector a look at thousands of tests and their libraries, which live to the end, at every round."""
    gc.collect()
    gc.freeze()


def _is_slow(item: pytest.Item) -> bool:
    path = item.path.relative_to(ROOT / "tests").as_posix()
    on = item.name.partition("[")[2]
    return path.startswith(SLOW) or (path in _CONTRACTS and on.startswith(SLOW_STORES))


def _drives_a_browser(item: pytest.Item) -> bool:
    return "chromium" in getattr(item, "fixturenames", ())


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the test, in memory if there is enough: an index syncs a thousand times to a disk.

    It is removed at once. To inspect a test's files, name a folder by TMPDIR, where pytest keeps them all.
    """
    if not _in_memory():
        yield tmp_path_factory.mktemp("test")
        return
    made = Path(tempfile.mkdtemp(prefix="test-", dir=_MEMORY))
    yield made
    shutil.rmtree(made, ignore_errors=True)


def _in_memory() -> bool:
    if _ELSEWHERE or not os.access(_MEMORY, os.W_OK):
        return False
    # Some tests run programs that they write.
    allowed = not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC
    return allowed and shutil.disk_usage(_MEMORY).free > _ENOUGH


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A headless Chromium for the whole run. Where there is none, a test that needs it is skipped, or fails in CI."""
    from playwright.sync_api import expect, sync_playwright

    # Chromium's own sandbox doesn't work as root, as in most containers.
    arguments = [*ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else list(ARGUMENTS)
    path = browser_path("chromium")
    # A machine that is busy with other work is slow, and that is no fault of the widget.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def node() -> Path:
    """The Node that came with the test environment."""
    return NODE


@pytest.fixture
def dynamodb(monkeypatch: pytest.MonkeyPatch) -> Iterator[DynamoServer]:
    """The server, which this process's environment names."""
    from fakes import dynamodb_server

    server = dynamodb_server.shared()
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    yield server
    server.reset()
