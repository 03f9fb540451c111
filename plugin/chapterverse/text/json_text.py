"""Reads JSON: what others wrote, with a bound on how deep it is nested, and the data files of our own packages.

Python's parser recurses once per level and is stopped by the interpreter's stack alone. Its `RecursionError` comes at
the end of the stack, where the finalizer of any object that happens to be collected then fails too.
"""

from __future__ import annotations

import json
import re
from importlib import resources
from typing import Any

#: Deepest nesting of arrays and objects that is parsed; the parser of pydantic stops there as well.
MAX_LEVELS = 200

#: Integers must fit 64 bits, as in every database and language.
INTEGERS = range(-(2**63), 2**63)

#: Half of a character beyond 16 bits, which JSON may hold and UTF-8 may not.
SURROGATE = re.compile("[\ud800-\udfff]")

# A string matches up to its end or the end of the text, so no character is scanned twice.
_TOKEN = re.compile(r'"[^"\\]*+(?>(?:\\.[^"\\]*+)*)"?|[\[{]|[\]}]', re.DOTALL)


class NestedTooDeep(ValueError):
    """A JSON text is nested deeper than allowed."""


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Return the value of a JSON text; bytes are UTF-8, with or without a byte order mark.

    Args:
        options: passed to `json.loads`.

    Raises:
        ValueError: it is no JSON, or nested deeper than `MAX_LEVELS`.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8-sig")
    check_depth(text, MAX_LEVELS)
    return json.loads(text, **options)


def load_json(package: str, file: str) -> Any:
    """Return the value of a JSON file in one of our packages."""
    return json.loads(resources.files(package).joinpath(file).read_text(encoding="utf-8"))


def check_depth(text: str, most: int) -> None:
    """Check that a text is not nested deeper than `most` levels, in linear time and without parsing it.

    Raises:
        NestedTooDeep: it is.
    """
    # Most texts hold fewer brackets than they may hold levels.
    if text.count("[") + text.count("{") <= most:
        return
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
            if depth > most:
                raise NestedTooDeep(f"nested deeper than {most} levels")
        elif token[0] in "]}":
            depth -= 1
