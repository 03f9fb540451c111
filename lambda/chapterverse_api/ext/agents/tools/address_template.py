"""The address of a tool: a template with places for the arguments of a call."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from chapterverse.errors import InputError
from chapterverse.ext.net.fetch import has_dots, is_segment
from chapterverse_api.ext.agents.tools.tool import JsonObject

#: Characters of one value.
_MAX_VALUE_CHARS = 500
_PLACE = re.compile(r"\{([^{}/\\?#]*)\}")
_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class AddressTemplate:
    """An address with `{name}` at the place of an argument, in its path or its query.

    Attributes:
        names: the arguments that have a place.
        place: the host and port.
        folder: the path that every address is below: until the first place, else the whole path. It ends in a slash.
    """

    parts: SplitResult
    names: frozenset[str]
    place: tuple[str, int]
    folder: str

    @classmethod
    def parse(cls, text: str) -> AddressTemplate:
        """Read a template.

        Raises:
            ValueError: it can't be used; its message says what the address does.
        """
        try:
            parts = urlsplit(text)
            port = parts.port or _PORTS.get(parts.scheme, 0)
        except ValueError:
            raise ValueError("has no valid host and port") from None
        if parts.scheme not in _PORTS or not parts.hostname or "{" in parts.netloc:
            raise ValueError("must begin with https:// and a host")
        if parts.username is not None:
            raise ValueError("holds a password, which belongs in headers")
        if parts.fragment or re.search(r"[{}]", _PLACE.sub("", text)):
            raise ValueError("holds a # or a brace that is no place of a parameter")
        if any(part in (".", "..") for part in parts.path.split("/")):
            raise ValueError("leads out of its own path")
        before, brace, _ = parts.path.partition("{")
        folder = before[: before.rindex("/") + 1] if brace else f"{parts.path.rstrip('/')}/"
        return cls(parts, frozenset(_PLACE.findall(text)), (parts.hostname, port), folder)

    def fill(self, arguments: JsonObject) -> str:
        """Return the address for these arguments; those without a place follow as its query.

        An argument in the path stays one segment, and no argument changes another part of the address.

        Raises:
            InputError: an address can't hold a value.
        """
        values = {name: _write(name, value) for name, value in arguments.items()}
        path = "/".join(_fill_segment(part, values) for part in self.parts.path.split("/"))
        query = _PLACE.sub(lambda place: quote(values[place[1]], safe=""), self.parts.query)
        rest = urlencode([(name, value) for name, value in values.items() if name not in self.names])
        return self.parts._replace(path=path, query="&".join(filter(None, (query, rest)))).geturl()


def _fill_segment(text: str, values: dict[str, str]) -> str:
    for name in _PLACE.findall(text):
        if not is_segment(values[name]):
            raise InputError(f"{name} can't stand in an address.")
    # Two values, or a value and a dot of the owner's, may make together what each is not.
    if "{" in text and has_dots(_PLACE.sub(lambda place: values[place[1]], text)):
        raise InputError("An argument can't stand in an address.")
    return _PLACE.sub(lambda place: quote(values[place[1]], safe=""), text)


def _write(name: str, value: Any) -> str:
    text = json.dumps(value) if isinstance(value, bool) else str(value)
    if not isinstance(value, str | int | float) or not 0 < len(text) <= _MAX_VALUE_CHARS or not text.isprintable():
        raise InputError(f"{name} can't stand in an address.")
    return text
