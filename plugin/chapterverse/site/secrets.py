"""Hides secrets in what is written for readers: the values given to this build, and keys of known services.

A build has keys in its environment, and a mistake (a link to `/proc/self/environ`, a debug page, a bundled `.env`)
publishes them. Values are found raw and as HTML, JSON and addresses escape them.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import quote

#: Names of variables that hold a secret, except those that hold a path or an address of one.
_SECRET_NAME = re.compile(r"API_?KEY|ACCESS_KEY|SIGNING_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD")
_NO_SECRET = re.compile(r"_(?:FILE|PATH|DIR|ARN|URL|URI|ID)$")
_PASSWORD = re.compile(r"(?<![\w+.-])[\w+.-]++://[^:/@]*:([^/@]+)@")
_MIN_SECRET_CHARS = 12

_HIDDEN = "…".encode()


class SecretFilter:
    """Hides secrets in texts.

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
