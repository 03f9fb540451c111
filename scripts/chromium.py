"""Prints the path of a Chromium that starts, installing one if there is none.

CHAPTERVERSE_CHROMIUM names one; else what is on PATH or in /Applications is taken, else Playwright's own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from browser import Browser, packaged

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def others() -> Iterator[str]:
    yield "/Applications/Chromium.app/Contents/MacOS/Chromium"
    yield "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.executable_path


def installers(superuser: list[str] | None) -> Iterator[list[str]]:
    dependencies = ["--with-deps"] if superuser == [] and sys.platform == "linux" else []
    yield [sys.executable, "-m", "playwright", "install", *dependencies, "chromium"]
    yield from packaged(superuser, "chromium")


if __name__ == "__main__":
    print(Browser("Chromium", COMMANDS, others, installers).path())
