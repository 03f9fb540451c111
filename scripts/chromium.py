"""Prints the path of a Chromium that starts, and installs one if there is none and that is possible.

CHAPTERVERSE_CHROMIUM names one; otherwise PATH, /Applications and Playwright's own are tried.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

from browser import ROOT, Browser, packaged

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

#: Prints the path of Playwright's own Chromium, installed or not.
ASKS = """
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    print(playwright.chromium.executable_path)
"""


def others() -> Iterator[str]:
    yield "/Applications/Chromium.app/Contents/MacOS/Chromium"
    yield "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    # In a separate process: if Playwright's driver does not start, two threads write tracebacks.
    yield from subprocess.run([sys.executable, "-c", ASKS], capture_output=True, text=True).stdout.splitlines()


def installers() -> Iterator[list[str]]:
    dependencies = ["--with-deps"] if ROOT and sys.platform == "linux" else []
    yield [sys.executable, "-m", "playwright", "install", *dependencies, "chromium"]
    yield from packaged("chromium")


if __name__ == "__main__":
    print(Browser("Chromium", COMMANDS, others, installers, "chromium").path())
