"""The widget's files: ES modules, shipped as they are written, and the one generated module beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

CONFIG = "config.js"


def files() -> dict[str, bytes]:
    """Return every module of the widget by its path, with the default configuration."""
    folder = resources.files(__name__)
    return {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith(".js")}


def assets(options: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the modules with these options as their configuration; empty ones are left to the widget's defaults.

    Args:
        options: keys of `Config` in types.d.ts; `endpoint` and `title` are always written.
    """
    chosen = {k: v for k, v in options.items() if v or k in ("endpoint", "title")}
    module = f"export default {json.dumps(chosen, ensure_ascii=False, indent=2)};\n"
    return {**files(), CONFIG: module.encode()}
