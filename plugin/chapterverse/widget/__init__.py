"""The widget's files: ES modules without a bundler, and the one generated module beside them."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

CONFIG = "config.js"


@functools.cache
def names() -> tuple[str, ...]:
    """Return the paths of all modules."""
    return tuple(sorted(entry.name for entry in resources.files(__name__).iterdir() if entry.name.endswith(".js")))


@functools.cache
def files() -> Mapping[str, bytes]:
    """Return every module by its path, with the default configuration, as browsers get it.

    That is as it was written but for comments and needless white space, a sixth of what readers would download.
    """
    import rjsmin

    folder = resources.files(__name__)
    return {name: rjsmin.jsmin(folder.joinpath(name).read_text("utf-8")).encode() for name in names()}


def assets(options: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the modules with these options as their configuration; empty ones are left to the widget's defaults.

    Args:
        options: keys of `Config` in types.d.ts; `endpoint` and `title` are always written.
    """
    chosen = {k: v for k, v in options.items() if v or k in ("endpoint", "title")}
    module = f"export default {json.dumps(chosen, ensure_ascii=False, indent=2)};\n"
    return {**files(), CONFIG: module.encode()}
