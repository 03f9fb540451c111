"""Prints the path of a Chromium that starts, installing one if there is none.

CHAPTERVERSE_CHROMIUM names one; else what is on PATH or in /Applications is taken, else Playwright's own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

COMMANDS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
APPLICATIONS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def main() -> None:
    named = os.environ.get("CHAPTERVERSE_CHROMIUM")
    if named:
        path = shutil.which(named) or named
        if not _starts(path):
            sys.exit(f"CHAPTERVERSE_CHROMIUM={named} is no Chromium that starts: name another, or leave it unset.")
    else:
        path = _found() or _installed()
    print(path)


def _found() -> str | None:
    return next((path for path in _candidates() if _starts(path)), None)


def _candidates() -> Iterator[str]:
    for command in COMMANDS:
        path = shutil.which(command)
        if path:
            yield path
    yield from APPLICATIONS
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.executable_path


def _starts(path: str) -> bool:
    # Ubuntu's `chromium-browser` may be a script that only asks for a snap.
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and "Chrom" in answer.stdout


def _installed() -> str:
    for command in _installers():
        print(f"No Chromium found; trying: {' '.join(command)}", file=sys.stderr, flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        # What an installer says goes to standard error: standard output is for the path alone.
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)
        path = _found()
        if path:
            return path
    sys.exit("There is no Chromium for the browser tests: install one, or name it with CHAPTERVERSE_CHROMIUM=/path.")


def _installers() -> Iterator[list[str]]:
    dependencies = ["--with-deps"] if ROOT and sys.platform == "linux" else []
    yield [sys.executable, "-m", "playwright", "install", *dependencies, "chromium"]
    sudo = [] if ROOT else ["sudo", "-n"]
    if shutil.which("apt-get") and (ROOT or _passwordless()):
        yield [*sudo, "apt-get", "update", "-qq"]
        yield [*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"]


def _passwordless() -> bool:
    return bool(shutil.which("sudo")) and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
