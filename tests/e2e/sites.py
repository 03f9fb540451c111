"""Real documentation sites: built by a real generator with the plugin, served with the real API."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

PAGES = {
    "index.md": """
        # Harbor

        Harbor ships containers of configuration between services.

        See the guide for everything that a day in the harbor needs.
        """,
    "guide/keys.md": """
        # Keys

        Every crate is sealed with a signing key.

        ## Rotating a signing key

        Run `harbor keys rotate` on the dock host. The old key stays valid for **24 hours**, so that crates in transit
        still open.

        ```console
        $ harbor keys rotate --grace 24h
        ```

        ## Revoking a signing key

        A revoked key opens nothing from that moment on. Revoke a key only when it has leaked:

        1. Stop the dock.
        2. Run `harbor keys revoke KEY_ID`.
        3. Start the dock again.
        """,
    "guide/docks.md": """
        # Docks

        A dock receives crates. Each dock listens on port 7007 unless `dock.port` says otherwise.

        ## Dock limits

        | limit | default |
        | --- | --- |
        | crates in transit | 512 |
        | crate size | 16 MB |
        """,
}


@dataclass(frozen=True)
class Site:
    """A built site that is being served: its folder and its address."""

    folder: Path
    url: str


def write_site(folder: Path, theme: str) -> None:
    """Write the sources of a small site; `theme` is YAML."""
    for name, text in PAGES.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(line.removeprefix(" " * 8) for line in text.strip("\n").split("\n")))
    (folder / "mkdocs.yml").write_text(
        f"site_name: Harbor\nsite_url: https://harbor.example/docs/\ntheme: {theme}\n"
        "markdown_extensions: [admonition, tables, toc: {permalink: true}]\n"
        "plugins:\n  - search\n  - chapterverse:\n      endpoint: /\n"
        '      widget: {starters: ["How do I rotate a signing key?"]}\n'
    )


def build(source: Path, folder: Path, generator: str = "mkdocs") -> None:
    """Build the site of `source` into `folder`, with its index beside it, by the generator's own command."""
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "CHAPTERVERSE_STORE": f"edge:{folder / 'index'}"}
    places = ["--config-file", str(source / "mkdocs.yml"), "--site-dir", str(folder / "site")]
    command = [sys.executable, "-m", generator, "build", "--strict", *places]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def serve(folder: Path, *, site: bool = True, **variables: str) -> subprocess.Popen[str]:
    """Serve the index in a folder, and the site beside it unless that is served elsewhere."""
    store = f"edge:{folder / 'index'}"
    program = Path(sys.executable).with_name("chapterverse")
    command: list[str | Path] = [program, "serve", "--port", "0", "--store", store]
    command += ["--site-dir", folder / "site"] if site else []
    return subprocess.Popen(command, env={**os.environ, **variables}, stderr=subprocess.PIPE, text=True)


def address(server: subprocess.Popen[str]) -> str:
    """Return the origin that a server says it listens at."""
    assert server.stderr is not None
    said = ""
    for line in server.stderr:
        said += line
        if found := re.search(r"http://[^/\s]+", line):
            return found.group()
    raise AssertionError(f"the server did not start: {said}")
