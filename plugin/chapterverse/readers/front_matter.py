"""Reads the front matter of a Markdown file: YAML, or TOML and JSON as Hugo has them."""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any

import yaml

from chapterverse.errors import UnreadablePage
from chapterverse.readers.html.visible_text import collapse, strip_invisible

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:\r?\n|(?<=\n))(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL)
_TOML = re.compile(r"\A\+\+\+[ \t]*\r?\n(.*?)(?:\r?\n|(?<=\n))\+\+\+[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def split_values(text: str, file_path: str, rejected: type | None = None) -> tuple[dict[Any, Any] | None, str]:
    """Return the values of the front matter, None if there is none, and the text below it.

    Args:
        rejected: the type of a value that is an error, as it holds no fields; other values without fields, and without
            this type all, are text between two rules.

    Raises:
        UnreadablePage: it is no valid YAML or TOML, or holds no fields by mistake; the message names `file_path`.
    """
    if text.startswith("{"):
        return _split_json(text)
    toml = _TOML.match(text)
    match = toml or _FRONT_MATTER.match(text)
    if not match:
        return None, text
    try:
        values = tomllib.loads(match.group(1)) if toml else yaml.safe_load(match.group(1))
        # Python writes no integer of more than 4,300 digits, and a hexadecimal one may have them.
        repr(values)
    except (yaml.YAMLError, ValueError, RecursionError):
        language = "TOML" if toml else "YAML"
        raise UnreadablePage(f"The front matter of {file_path} is not valid {language}.") from None
    if isinstance(values, dict):
        return values, text[match.end() :]
    if values is None and rejected:
        return None, text[match.end() :]
    if rejected and isinstance(values, rejected):
        form = "a list" if isinstance(values, list) else "a text"
        raise UnreadablePage(f"The front matter of {file_path} is {form}: write a field a line, such as language: en.")
    # Without keys it was no front matter but text between two rules.
    return None, text


def text_value(value: object) -> str:
    """Return a text or number of front matter in one line, "" for anything else and for a number of 4,301 digits."""
    try:
        return collapse(strip_invisible(str(value))) if isinstance(value, str | int | float) else ""
    except ValueError:
        return ""


def tag_values(value: object) -> tuple[str, ...]:
    """Return the tags of front matter: a list of them, or a text with commas between them."""
    listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return tuple(tag for tag in map(text_value, listed) if tag)


def _split_json(text: str) -> tuple[dict[Any, Any] | None, str]:
    """Return the values of a JSON object on the first lines, as `split_values` does. Other text in braces is none."""
    try:
        values, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, text
    rest = text[end:].lstrip(" \t\r")
    return (values, rest.removeprefix("\n")) if values and rest[:1] in ("", "\n") else (None, text)
