"""Writes into a built site or a static folder: the widget's files, each file at once, and none with a secret."""

from __future__ import annotations

import contextlib
import hashlib
import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

from chapterverse.errors import InputError
from chapterverse.version import __version__
from chapterverse.widget.bundle import assets
from chapterverse.widget.endpoint import clean_endpoint

#: A string in every release of the launcher and in no other script.
_SIGN = b"chapter-verse"
_LAUNCHER = "launcher.js"

#: Below the site's root.
FOLDER = "assets/chapterverse"

#: The API rejects longer versions.
_MAX_VERSION_CHARS = 64

#: Names of variables that hold a secret, except those that hold a path or an address of one.
_SECRET_NAME = re.compile(r"API_?KEY|ACCESS_KEY|SIGNING_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD")
_NO_SECRET = re.compile(r"_(?:FILE|PATH|DIR|ARN|URL|URI|ID)$")
_PASSWORD = re.compile(r"(?<![\w+.-])[\w+.-]++://[^:/@]*:([^/@]+)@")
_MIN_SECRET_CHARS = 12

_HIDDEN = "…".encode()


def widget_files(
    endpoint: str, options: Mapping[str, Any] = MappingProxyType({}), version: str = ""
) -> dict[str, bytes]:
    """Return the widget's modules by path, configured for the API at `endpoint`; "/" is the site's own origin.

    Args:
        options: as `WidgetOptions.config` returns them.
        version: docs version of the site, "" if it has none.

    Raises:
        ConfigurationError: `endpoint` is not an API's address.
        InputError: `version` is too long or not printable.
    """
    if len(version) > _MAX_VERSION_CHARS or not version.isprintable():
        raise InputError(f"The docs version must be a text of at most {_MAX_VERSION_CHARS} characters.")
    return assets({"endpoint": clean_endpoint(endpoint), **options, "version": version})


def stamp(files: Mapping[str, bytes]) -> str:
    """Return the folder name that `inject` gives to exactly these files: the release and their digest."""
    return f"{__version__}-{_digest(files)}"


def is_ours(address: str) -> bool:
    """Return whether a file of a build, by its path from the site's root, is one of the widget's."""
    return address.startswith(f"{FOLDER}/")


def build_folder(files: Mapping[str, bytes]) -> str:
    """Return the path that a build, which writes every page, gives to exactly these files below the site's root.

    The digest keeps browsers from mixing them with cached ones. The form differs from `stamp`, because `inject` removes
    the folders of its earlier runs and must leave those of a build.
    """
    return f"{FOLDER}/{__version__}/{_digest(files)}"


def _digest(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files.items()):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()[:8]


def deliver(folder: Path, files: Mapping[str, bytes]) -> int:
    """Write files below a folder and return the number of changed files. Creates the folder.

    Raises:
        InputError: a file of that name exists and is not the widget's.
    """
    _refuse_foreign(folder, files)
    written = 0
    # The launcher first: a later run recognizes the folder by it, even if this run is killed.
    for name, content in sorted(files.items(), key=lambda file: file[0] != _LAUNCHER):
        path = folder / name
        if not path.is_symlink() and path.is_file() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content)
        written += 1
    return written


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file's content atomically: readers get the old or the new content, never a part."""
    # An unchanged build spends more time here than anywhere else, so no `Path` is made.
    name = f"{path.parent}/.chapterverse-{os.urandom(8).hex()}"
    try:
        with open(name, "xb") as file:  # noqa: PTH123
            with contextlib.suppress(OSError):
                os.chmod(name, os.stat(path).st_mode & 0o7777)  # noqa: PTH101, PTH116
            file.write(content)
        os.replace(name, path)  # noqa: PTH105
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)  # noqa: PTH108
        raise


def _refuse_foreign(folder: Path, files: Mapping[str, bytes]) -> None:
    launcher = folder / _LAUNCHER
    if launcher.is_file() and _SIGN in launcher.read_bytes():
        return
    for name in sorted(files):
        if os.path.lexists(folder / name):
            raise InputError(f"{folder / name} is there already and not the widget's: name a folder of its own.")


class SecretFilter:
    """Hides secrets in texts: the values given to this build, and keys of known services.

    A build has keys in its environment, and a mistake (a link to `/proc/self/environ`, a debug page, a bundled `.env`)
    publishes them. Values are found raw and as HTML, JSON and addresses escape them.

    Args:
        environ: variables whose secret-looking values are hidden; None is this process's environment.
        secrets: further values by name, secret whatever their name is.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, secrets: Mapping[str, str] | None = None) -> None:
        named_values = _values(os.environ if environ is None else environ, secrets or {})
        self._named_forms = [(f"the value of {name}", _forms(value)) for name, value in named_values]

    def scrub(self, text: str, *, with_shapes: bool = True) -> str:
        """Return a text with its secrets replaced by "…".

        Args:
            with_shapes: whether keys are found by their shapes too, or only the values that are known.
        """
        content = text.encode(errors="surrogateescape")
        leaks = [form for _, forms in self._named_forms for form in forms]
        if with_shapes:
            # Loaded only if a page changed.
            from chapterverse.text.secrets_in_text import find_keys

            leaks += [key for _, key, _ in find_keys(content)]
        for secret in leaks:
            content = content.replace(secret, _HIDDEN)
        return content.decode(errors="replace")


def walk(site: Path) -> Iterator[str]:
    """Yield the paths of all files and links below a folder, hidden ones too, without following links."""
    for folder, folders, names in os.walk(site):
        folders.sort()
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114 (paths take most of the time)
        below = "" if folder == str(site) else f"{Path(folder).relative_to(site).as_posix()}/"
        yield from (f"{below}{name}" for name in sorted(names + links))


def _values(environ: Mapping[str, str], secrets: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names and values of secrets: variables with a secret's name, and passwords in addresses.

    Args:
        secrets: values that are secret whatever their name; commas separate several.
    """
    for name, value in sorted({**environ, **secrets}.items()):
        has_secret_name = _SECRET_NAME.search(name) and not _NO_SECRET.search(name)
        candidates = [value, *value.split(",")] if has_secret_name or name in secrets else []
        if password := _PASSWORD.match(value):
            candidates.append(password[1])
        for one in dict.fromkeys(part.strip() for part in candidates):
            if len(one) >= _MIN_SECRET_CHARS and len(set(one)) >= 5 and not one.startswith("/"):
                yield name, one


def _forms(value: str) -> tuple[bytes, ...]:
    """Return the forms of a secret in a file: raw, and escaped for HTML, JSON and addresses."""
    raw = value.encode(errors="surrogateescape")
    quoted = (html.escape(value), json.dumps(value)[1:-1], quote(raw, safe=""))
    return tuple(dict.fromkeys([raw, *(text.encode(errors="replace") for text in quoted)]))
