"""The service against its own OpenAPI, by Schemathesis:  python -m fuzz.openapi [--help]

Run in `tests/`. The service answers on loopback, from a real index and with every route that there is; Schemathesis
asks it what the document allows, and much that it doesn't, and holds each response against the document. The tool lives
in an environment of its own, `.cache/openapi`, made of what `fuzz/openapi.txt` locks.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from api import quill
from api.scripted import serving
from chapterverse_api.app import create_app
from chapterverse_api.commands import ServiceSession

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / ".cache" / "openapi"
HERE = Path(__file__).parent

#: Cases of one operation in a round, and rounds at most: each has another seed, and makes some 2,500 cases.
EXAMPLES, ROUNDS = 200, 40
#: Seconds after which a round has hung.
SECONDS = 1200


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.openapi", description="Hold the service against its OpenAPI.")
    parser.add_argument("--cases", type=int, default=10_000, help="at least so many (default 10,000)")
    parser.add_argument("--seed", type=int, default=1, help="of the first round; each further one adds 1")
    options = parser.parse_args()
    tool = _installed()
    with tempfile.TemporaryDirectory() as folder:
        # A client may not ask so often; that it may not is tested elsewhere.
        settings = quill.publish(Path(folder)).override(rates="off", records=f"sqlite:{folder}/records.db")
        with serving(create_app(ServiceSession.open(settings))) as address:
            sys.exit(_rounds(tool, address, options.cases, options.seed))


def _installed() -> Path:
    """Return the program, after making its environment anew if the lock has changed."""
    lock, mark, bin_ = HERE / "openapi.txt", HOME / "lock", HOME / ("Scripts" if sys.platform == "win32" else "bin")
    if not mark.exists() or mark.read_bytes() != lock.read_bytes():
        venv.create(HOME, clear=True, with_pip=True)
        install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--require-hashes",
            "-r",
            str(lock),
        ]
        subprocess.run([bin_ / "python", *install], check=True)
        mark.write_bytes(lock.read_bytes())
    return bin_ / "schemathesis"


def _rounds(tool: Path, address: str, wanted: int, seed: int) -> int:
    """Run rounds until there were enough cases; return 1 with what was found at the first that finds something."""
    total = 0
    hooked = os.environ | {"SCHEMATHESIS_HOOKS": "openapi_hooks", "PYTHONPATH": str(HERE)}
    for turn in range(ROUNDS):
        command = [str(tool), "--config-file", str(HERE / "openapi.toml"), "run", f"{address}/openapi.json"]
        command += ["--max-examples", str(EXAMPLES), "--seed", str(seed + turn), "--continue-on-failure", "--no-color"]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command, cwd=folder, env=hooked, capture_output=True, text=True, timeout=SECONDS)
        made = re.search(r"([\d,]+) generated", done.stdout)
        total += int(made[1].replace(",", "")) if made else 0
        if done.returncode or not made:
            sys.stdout.write(f"{done.stdout}\n{done.stderr}\n")
            return 1
        sys.stdout.write(f"seed {seed + turn}: {total:,} cases so far, 0 failures\n")
        sys.stdout.flush()
        if total >= wanted:
            return 0
    sys.stdout.write(f"Only {total:,} cases in {ROUNDS} rounds.\n")
    return 1


if __name__ == "__main__":
    main()
