"""Finds the configuration of a generator beside its sources, for the settings that change addresses.

Configurations in JavaScript are not run: a setting counts where it is written out.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from chapterverse.readers.markdown.slugs import SiteGenerator
from chapterverse.text.json_text import parse_json

#: Folders above the sources that may hold the configuration.
_LEVELS = 4
_MAX_BYTES = 1_000_000

_HUGO_NAMES = [
    f"{folder}{stem}.{ending}"
    for folder in ("", "config/_default/")
    for stem in ("hugo", "config")
    for ending in ("toml", "yaml", "yml", "json")
]
_SCRIPTS = ("ts", "mts", "js", "mjs", "cjs")
_CONFIG_NAMES = {
    SiteGenerator.DOCUSAURUS: [f"docusaurus.config.{ending}" for ending in _SCRIPTS],
    SiteGenerator.VITEPRESS: [f".vitepress/config.{ending}" for ending in _SCRIPTS],
    SiteGenerator.MKDOCS: ["mkdocs.yml", "mkdocs.yaml"],
}


def hugo_config(folder: Path) -> Mapping[str, Any]:
    """Return the configuration of Hugo, its keys in lower case; empty if there is none."""
    for text, name in _config_files(folder, _HUGO_NAMES):
        try:
            parse = tomllib.loads if name.endswith("toml") else parse_json if name.endswith("json") else yaml.safe_load
            values = parse(text)
        except (ValueError, yaml.YAMLError, RecursionError):
            continue
        if isinstance(values, dict):
            return {str(key).lower(): value for key, value in values.items()}
    return {}


def config_switch(folder: Path, generator: SiteGenerator, name: str) -> bool | None:
    """Return a switch of the configuration of Docusaurus, VitePress or MkDocs, None if it isn't set."""
    stated = config_word(folder, generator, name, ("true", "false"))
    return stated == "true" if stated else None


def config_word(folder: Path, generator: SiteGenerator, name: str, words: Iterable[str]) -> str:
    """Return which of these words a key of that configuration has as its value, "" if it has none."""
    pattern = rf"^(?![ \t]*(?://|\*|#))[^\n]*?\b{name}[\"']?[ \t]*:[ \t]*[\"']?({'|'.join(words)})\b"
    for text, _ in _config_files(folder, _CONFIG_NAMES[generator]):
        match = re.search(pattern, text, re.MULTILINE)
        return match[1] if match else ""
    return ""


def _config_files(folder: Path, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield text and name of each such file beside the sources or above them, the nearest first."""
    here = folder.resolve()
    for above in (here, *here.parents)[:_LEVELS]:
        for name in names:
            file = above / name
            try:
                if file.is_file() and file.stat().st_size <= _MAX_BYTES:
                    yield file.read_text("utf-8", "replace"), name
            except OSError:
                continue
