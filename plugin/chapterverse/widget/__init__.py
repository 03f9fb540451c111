"""The widget's files: ES modules without a bundler, and the one generated module beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

CONFIG = "config.js"

# No string, template or regular expression of ours holds a comment's signs, and none minds its indentation.
_UNREAD = re.compile(rb"/\*.*?\*/ ?|^\s*//[^\n]*\n|^\s+", re.DOTALL | re.MULTILINE)


def files() -> dict[str, bytes]:
    """Return every module of the widget by its path, with the default configuration, as browsers get it.

    That is as it was written, but without comments and indentation: a fifth of what readers would download.
    """
    folder = resources.files(__name__)
    modules = {entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.name.endswith(".js")}
    return {name: _UNREAD.sub(b"", module) for name, module in modules.items()}


def assets(options: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the modules with these options as their configuration; empty ones are left to the widget's defaults.

    Args:
        options: keys of `Config` in types.d.ts; `endpoint` and `title` are always written.
    """
    chosen = {k: v for k, v in options.items() if v or k in ("endpoint", "title")}
    module = f"export default {json.dumps(chosen, ensure_ascii=False, indent=2)};\n"
    return {**files(), CONFIG: module.encode()}
