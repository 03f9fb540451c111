"""JSON-LD of a page: what its author says of it in schema.org's terms, pruned to a bounded size.

Only objects of five types are read (`TYPES`). References by `@id` are not followed, so a document that refers to itself
ends. What can't be parsed is left out; it is the page's own, and no reader of the page sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from chapterverse.model import replace_unstorable
from chapterverse.readers.html.tokenizer import ATTRIBUTES, parse_attributes
from chapterverse.readers.html.visible_text import collapse, strip_invisible
from chapterverse.text.json_text import INTEGERS, parse_json

TYPES = frozenset(("Product", "Service", "FAQPage", "HowTo", "BreadcrumbList"))

_MEDIA_TYPE = "application/ld+json"
#: Most scripts of a page, and characters of one; real pages have one to three of a few thousand.
_MAX_SCRIPTS, _MAX_SCRIPT_CHARS = 20, 200_000
#: Most objects of a page, and characters of their JSON together: each chunk of the page has them.
_MAX_OBJECTS, _MAX_JSON_CHARS = 10, 4_000
#: Most levels of an object, members of an object or a list, and characters of a text.
_MAX_DEPTH, _MAX_MEMBERS, _MAX_TEXT_CHARS = 8, 50, 500
#: Levels and lists in which an object of a known type is looked for.
_MAX_VISITED = 1_000

# Comments and other scripts are taken whole, so that nothing written in them counts.
_SCRIPT = re.compile(
    rf"<!--.*?(?:-->|\Z)|<script(?=[\s/>])({ATTRIBUTES})>(.*?)(?:</script|\Z)", re.DOTALL | re.IGNORECASE
)

_TAG = re.compile(r"<[^<>]{0,500}>")


def json_ld_scripts(html: str) -> list[str]:
    """Return the text of the JSON-LD scripts of a page or a part of it. Takes time linear in the length of `html`."""
    if "ld+json" not in html:
        return []
    scripts: list[str] = []
    for match in _SCRIPT.finditer(html):
        if match.group(1) and "ld+json" in match.group(1) and len(scripts) < _MAX_SCRIPTS:
            media_type = parse_attributes(match.group(1)).get("type", "").partition(";")[0].strip().lower()
            if media_type == _MEDIA_TYPE:
                scripts.append(match.group(2))
    return scripts


def read_structured_data(html: str) -> tuple[dict[str, Any], ...]:
    """Return a page's objects of the types in `TYPES`, outermost only, in order. Never fails.

    Of longer texts, lists and objects the beginning is kept. An object that doesn't fit beside those before it is left
    out.
    """
    objects: list[dict[str, Any]] = []
    room = _MAX_JSON_CHARS
    for script in json_ld_scripts(html):
        for item in _objects(_parse(script)):
            pruned = _prune(item, _MAX_DEPTH)
            size = len(json.dumps(pruned, ensure_ascii=False))
            if size <= room and len(objects) < _MAX_OBJECTS and pruned not in objects:
                objects.append(pruned)
                room -= size
    return tuple(objects)


def _parse(script: str) -> Any:
    try:
        return parse_json(script, parse_constant=lambda _: None) if len(script) <= _MAX_SCRIPT_CHARS else None
    # Python refuses integers of more than 4,300 digits by a ValueError.
    except ValueError:
        return None


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the outermost objects of a known type, in document order."""
    rest = [value]
    for _ in range(_MAX_VISITED):
        if not rest:
            return
        value = rest.pop()
        if isinstance(value, list):
            rest.extend(reversed(value[:_MAX_VISITED]))
        elif isinstance(value, dict):
            if _type_names(value) & TYPES:
                yield value
            else:
                rest.extend(reversed(list(value.values())[:_MAX_VISITED]))


def _type_names(value: dict[str, Any]) -> set[str]:
    stated = value.get("@type")
    names = stated if isinstance(stated, list) else [stated]
    return {re.split(r"[/#:]", name)[-1] for name in names[:_MAX_MEMBERS] if isinstance(name, str)}


def _prune(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list):
        return [_prune(item, depth - 1) for item in value[:_MAX_MEMBERS]] if depth else []
    if isinstance(value, dict):
        members = list(value.items())[:_MAX_MEMBERS] if depth else []
        return {_text(name): _prune(member, depth - 1) for name, member in members}
    if isinstance(value, float) and value not in (float("inf"), float("-inf")):
        return value
    return value if isinstance(value, bool) or (isinstance(value, int) and value in INTEGERS) else None


def _text(value: str) -> str:
    """Return a text without markup, in one line, cut to size: answers of an FAQPage may be HTML."""
    value = value[: 4 * _MAX_TEXT_CHARS]
    return replace_unstorable(collapse(strip_invisible(_TAG.sub(" ", value))))[:_MAX_TEXT_CHARS]
