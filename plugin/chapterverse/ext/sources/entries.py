"""The configured sources beyond the site: files, addresses and sitemaps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import urldefrag

from chapterverse.errors import ConfigurationError
from chapterverse.project import leads_out
from chapterverse.readers.urls import is_web_address

#: How many sitemaps deep a sitemap is followed: an index of sitemaps, and those that it lists.
_DEFAULT_DEPTH = 2
_MAX_DEPTH = 10

_KEYS = {"file": {"url"}, "url": set[str](), "sitemap": {"depth"}}


@dataclass(frozen=True, slots=True)
class ExternalEntry:
    """One source.

    Attributes:
        kind: an address may turn out to be that of a sitemap.
        place: the real path of a file, or an address without its fragment.
        name: of a file, as it was written.
        url: where a file is published; "" where that follows from its place.
        depth: how many sitemaps deep a sitemap is followed; 1 takes only its own pages.
    """

    kind: Literal["file", "url", "sitemap"]
    place: str
    name: str = ""
    url: str = ""
    depth: int = _DEFAULT_DEPTH

    @classmethod
    def of(cls, value: object, root: Path, *, must_exist: bool = True) -> ExternalEntry:
        """Return an entry of the option `also`: a text, or a mapping.

        Args:
            root: the folder that paths are relative to.
            must_exist: whether a file must be there already.

        Raises:
            ConfigurationError: it is neither, names no file of the project, or holds another key or value.
        """
        if isinstance(value, str):
            value = {"url" if is_web_address(value) else "file": value}
        if not isinstance(value, Mapping):
            raise _malformed_error(value)
        kind = next((kind for kind in ("sitemap", "file", "url") if kind in value), None)
        if kind is None or not value.keys() - {kind} <= _KEYS[kind]:
            raise _malformed_error(value)
        place, url, depth = value[kind], value.get("url", ""), value.get("depth", _DEFAULT_DEPTH)
        if not isinstance(place, str) or isinstance(depth, bool) or not isinstance(depth, int):
            raise _malformed_error(value)
        if not 1 <= depth <= _MAX_DEPTH:
            raise ConfigurationError(f"also: the depth of {place[:100]} must be 1 to {_MAX_DEPTH}.")
        if kind == "file":
            return cls._file(place, url, root, must_exist=must_exist)
        if not is_web_address(place):
            raise _malformed_error(value)
        return cls("url" if kind == "url" else "sitemap", urldefrag(place)[0], depth=depth)

    @classmethod
    def _file(cls, name: str, url: object, root: Path, *, must_exist: bool) -> ExternalEntry:
        path = root / name
        if leads_out(path, root):
            raise ConfigurationError(
                f"also names the file {name[:100]}, which is outside of the project: put it there."
            )
        if must_exist:
            require_file(path, name)
        if not isinstance(url, str) or (url and not is_web_address(url)):
            raise ConfigurationError(
                f"also: the url of {name[:100]} must be an address, such as https://example.com/a."
            )
        display_name = path.name if Path(name).is_absolute() else Path(name).as_posix()
        return cls("file", str(path.resolve()), display_name, url)


def parse_entries(values: Iterable[object], root: Path, *, must_exist: bool = True) -> tuple[ExternalEntry, ...]:
    """Return the entries of the option `also`; raises as `ExternalEntry.of`."""
    return tuple(ExternalEntry.of(each, root, must_exist=must_exist) for each in values)


def require_file(path: Path, name: str) -> None:
    """Raise `ConfigurationError` if an entry's file is not there."""
    if not path.is_file():
        raise ConfigurationError(f"also names the file {name[:100]}, which is not there.")


def _malformed_error(value: object) -> ConfigurationError:
    return ConfigurationError(
        f"also: {str(value)[:100]!a} is no source: name a file, an address, or a mapping with file and url, with url, "
        "or with sitemap and depth."
    )
