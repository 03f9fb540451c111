"""The demo:  demo.py [PORT]

Builds `site_example` with the plugin, which indexes it, and serves the site with its API on one loopback address. Runs
on the system's Python with the standard library only; it sets up `.venv` first, which does the work.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import NoReturn

import environment

HOST = "127.0.0.1"
SITE = environment.ROOT / "site_example"
PROGRAM = environment.VENV / "bin" / "chapterverse"
READING_MODEL = environment.ROOT / "reading" / "chapterverse_reading"

#: Seconds for the server to answer for the first time, and to finish its answers when stopped.
START_SECONDS = 60
STOP_SECONDS = 5

QUESTIONS = (
    "How do I add the chat to a site that I already have?",
    "What happens when the answer is not in the docs?",
    "How can I check that a citation is real?",
)


def main(arguments: list[str]) -> None:
    port = _port(arguments)
    environment.ensure("demo")
    build(variables(), SITE / "site")
    _serve(port)


def _port(arguments: list[str]) -> int:
    """Return a free port, or exit with one sentence before anything takes time."""
    word = arguments[0] if arguments else "8765"
    if not word.isascii() or not word.isdigit() or not 1 <= int(word) <= 65535:
        sys.exit(f"{word!r} is no port: choose a number from 1 to 65535, such as `make demo PORT=8766`.")
    port = int(word)
    busy = f"Port {port} is busy: stop what uses it, or choose another with `make demo PORT={min(port + 1, 65535)}`."
    with socket.socket() as probe:
        # macOS lets two programs bind if one uses all addresses, so try to connect first.
        if probe.connect_ex((HOST, port)) == 0:
            sys.exit(busy)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except PermissionError:
            sys.exit(f"Port {port} needs more rights than you have: choose one above 1023 with PORT=.")
        except OSError:
            sys.exit(busy)
    return port


def variables() -> dict[str, str]:
    """Return the environment without settings of another site and without Material's note on MkDocs 2."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CHAPTERVERSE_")}
    store = environment.ROOT / ".cache" / "demo"
    own = {**inherited, "CHAPTERVERSE_STORE": f"edge:{store}", "NO_MKDOCS_2_WARNING": "1"}
    # On a machine without a package of the runtime, answers are found by words alone.
    runtime = any(environment.VENV.glob("lib/python3*/site-packages/onnxruntime"))
    return own | {"CHAPTERVERSE_READING_MODEL": str(READING_MODEL) if runtime else "none"}


def build(own: dict[str, str], folder: Path) -> None:
    """Build the site into a folder, with these variables, and its index where they say."""
    command = [str(environment.PYTHON), "-m", "mkdocs", "build", "--config-file", str(SITE / "mkdocs.yml")]
    if subprocess.run([*command, "--site-dir", str(folder)], cwd=environment.ROOT, env=own).returncode != 0:
        sys.exit("The site could not be built: the lines above say why.")


def _serve(port: int) -> None:
    command = [str(PROGRAM), "serve", "--site-dir", str(SITE / "site"), "--port", str(port)]
    server = subprocess.Popen(command, cwd=environment.ROOT, env=variables())
    try:
        wait_until_ready(server, port)
        print(_invitation(port), flush=True)
        server.wait()
    finally:
        # Harmless after Ctrl-C, which the server received too; needed if only this process was stopped.
        server.terminate()
        _wait_until_gone(server)
    sys.exit("The server stopped by itself: the lines above say why.")


def wait_until_ready(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if server.poll() is not None:
            sys.exit("The server could not start: the lines above say why.")
        try:
            # No proxy, because some are set for loopback too.
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(f"http://{HOST}:{port}/v1/health", timeout=2):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    sys.exit(f"The server did not answer within {START_SECONDS} seconds.")


def _wait_until_gone(server: subprocess.Popen[bytes]) -> None:
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.kill()


def _invitation(port: int) -> str:
    questions = "\n".join(f"  - {question}" for question in QUESTIONS)
    return f"\nOpen http://{HOST}:{port}/ and ask, for example:\n{questions}\nCtrl-C stops it.\n"


def _stop(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    for stopping in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(stopping, _stop)
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        print("\nStopped.")
