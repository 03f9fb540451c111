"""Measures what the extras of a build cost: files for agents, and sources beyond the site.

    extras.py DOCS_DIR|MKDOCS_YML [--rounds N]

Builds a site with the plugin, alternately without the extras and with them: `agents: false` and no `also`, then all
files for agents and 20 documents of a server on loopback, which knows whether they changed. Each build is a process.
One half of them are first builds; the other half find the index and the downloads of the last one, and no change.
Prints the fewest processor seconds of each kind, because other programs on the machine only add to them, and the share
of the extras.
The bars: 15 % of a build, of either kind; of an unchanged one, nothing sent and nothing embedded. The exit code is 3 if
one is missed.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from build import CONFIG

SHARE = 0.15
DOCUMENTS = 20
SECTIONS = "".join(
    f"<h2 id='s{n}'>Part {n}</h2><p>{'A sentence of some words about the part. ' * 12}</p>" for n in range(8)
)


class Server(BaseHTTPRequestHandler):
    sent = 0

    def do_GET(self) -> None:
        name = self.path.strip("/")
        same = self.headers.get("If-None-Match") == f'"{name}"'
        body = b"" if same else f"<title>{name}</title><main><h1>{name}</h1>{SECTIONS}</main>".encode()
        robots = name == "robots.txt"
        Server.sent += not same and not robots
        self.send_response(404 if robots else 304 if same else 200)
        for header, value in {
            "ETag": f'"{name}"',
            "Content-Type": "text/html",
            "Content-Length": str(len(body)),
        }.items():
            self.send_header(header, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served() -> Iterator[str]:
    """Run the server, and give its host and port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def prepare(folder: Path, given: Path, place: str) -> dict[str, Path]:
    """Write two configurations of the site, without the extras and with them, and return them by name."""
    also = [f"http://{place}/document-{n}" for n in range(DOCUMENTS)]
    extras = {"plain": "agents: false", "extras": f"also: {also}"}
    configs: dict[str, Path] = {}
    for name, option in extras.items():
        root = folder / name
        if given.is_dir():
            shutil.copytree(given, root / "docs")
            plugins = f"search, {{chapterverse: {{endpoint: /, {option}}}}}"
            text = CONFIG.format(docs=root / "docs", site=root / "site", plugins=plugins)
        else:
            # Beside it is what a configuration may refer to.
            kept = shutil.ignore_patterns("site", ".cache", ".venv", "node_modules", ".git")
            shutil.copytree(given.parent, root / given.parent.name, ignore=kept)
            for other in given.parent.parent.iterdir():
                if other.name != given.parent.name:
                    (root / other.name).symlink_to(other.resolve())
            text, found = re.subn(
                r"(?m)^( *)- chapterverse:\n( +)", rf"\1- chapterverse:\n\2{option}\n\2", given.read_text()
            )
            if found != 1:
                sys.exit(f"{given} does not list the plugin with options.")
            root = root / given.parent.name
        configs[name] = root / "mkdocs.yml"
        configs[name].write_text(text, encoding="utf-8")
    return configs


def build(config: Path, place: str, *, clean: bool) -> tuple[float, str]:
    """Build once and return the processor seconds and the log; a clean one finds neither a site nor an index."""
    if clean:
        for name in ("site", ".cache"):
            shutil.rmtree(config.parent / name, ignore_errors=True)
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "CHAPTERVERSE_ALLOW_PRIVATE": place}
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", str(config)]
    started = children_seconds()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    seconds = children_seconds() - started
    if done.returncode or "Indexed" not in done.stderr:
        sys.exit(done.stderr)
    return seconds, done.stderr


def children_seconds() -> float:
    """Return the processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("site", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    seconds: dict[tuple[str, bool], list[float]] = {}
    sent = embedded = 0
    with tempfile.TemporaryDirectory(prefix="extras-") as temporary, served() as place:
        configs = prepare(Path(temporary), arguments.site, place)
        for _ in range(arguments.rounds):
            for clean in (True, False):
                for name, config in configs.items():
                    before = Server.sent
                    took, log = build(config, place, clean=clean)
                    seconds.setdefault((name, clean), []).append(took)
                    if not clean:
                        sent += Server.sent - before
                        embedded += sum(map(int, re.findall(r"(\d+) embedded", log)))
        written = sum(1 for path in (configs["extras"].parent / "site").rglob("*") if path.suffix in (".md", ".txt"))
    missed = bool(sent or embedded or not written)
    for clean in (True, False):
        plain, extras = (min(seconds[name, clean]) for name in ("plain", "extras"))
        share = (extras - plain) / extras
        missed = missed or share > SHARE
        kind = "first" if clean else "unchanged"
        print(f"{kind} build: {plain:.2f} s, with the extras {extras:.2f} s: they take {100 * share:.1f} %")
    print(f"{written} files for agents, {DOCUMENTS} documents; unchanged: {sent} sent again, {embedded} embedded")
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
