"""The command that builds a project's index."""

from __future__ import annotations

from pathlib import Path

import pytest

from chapterverse.project import build_command


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("mkdocs.yml", "`mkdocs build` with the plugin"),
        ("docusaurus.config.ts", "`npm run build` with the plugin"),
        ("docs/.vitepress/config.mts", "`vitepress build docs` with the plugin"),
        ("docs/conf.py", "`sphinx-build` with the extension"),
        ("hugo.toml", "`hugo`, then `chapterverse index public`"),
        ("README.md", "`chapterverse index SITE_DIR` on the built site"),
    ],
)
def test_the_configuration_names_the_command(tmp_path: Path, file: str, command: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).touch()
    assert build_command(tmp_path) == command
