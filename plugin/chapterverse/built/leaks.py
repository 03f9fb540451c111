"""Secrets in the files of a site: the values that this build was given, and what looks like a key of a known service.

A build has keys at hand, and a mistake (a link to `/proc/self/environ`, a debug page, a bundled `.env`) publishes them.
A pattern must also tell a key from the examples that documentation is full of: those are words, or not random.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

#: Bytes searched at once, and how many of them are searched again with the next ones: more than any secret has.
_WINDOW, _OVERLAP = 8_000_000, 16_000

_SECRET_NAME = re.compile(r"API_?KEY|ACCESS_KEY|SIGNING_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD")
_NO_SECRET = re.compile(r"_(?:FILE|PATH|DIR|ARN|URL|URI|ID)$")
_SHORTEST = 12
_EXAMPLE = re.compile(rb"example|your|placeholder|redacted|changeme|dummy|x{4}|\*{3}|\.{3}|[<>{}$\[\]]", re.IGNORECASE)
_WEAK = frozenset(b"password passwd pass pw pwd secret postgres mysecretpassword changeme admin root user test".split())


def _is_random(key: bytes) -> bool:
    return len(set(key)) >= 10 and bool(re.search(rb"\d", key)) and not _EXAMPLE.search(key)


def _is_strong(password: bytes) -> bool:
    return password.lower() not in _WEAK and not _EXAMPLE.search(password) and len(password) >= 6


def _is_qdrant(token: bytes) -> bool:
    """Whether a JSON web token grants access to a Qdrant server; those of examples say other things."""
    body = token.split(b".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(claims, dict) and "access" in claims


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a kind of key looks like.

    Attributes:
        hints: one of them is in every such key, so that most files need no regular expression.
        pattern: its first group, or all of it, is the key.
    """

    name: str
    hints: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    real: Callable[[bytes], bool] = _is_random

    def found(self, content: bytes) -> Iterator[int]:
        if any(hint in content for hint in self.hints):
            for match in self.pattern.finditer(content):
                if self.real(match[match.lastindex or 0]):
                    yield match.start()


# What stands between a name and its value, also in highlighted code.
_IS = rb"(?:[\s\"'`=:,]|<[^<>]{0,99}>|&quot;|&#34;|&#39;){1,24}"


def _kinds() -> tuple[_Kind, ...]:
    def kind(name: str, hints: bytes, pattern: bytes, real: Callable[[bytes], bool] = _is_random) -> _Kind:
        return _Kind(name, tuple(hints.split(b"|")), re.compile(pattern), real)

    return (
        kind("an OpenAI key", b"sk-", rb"(?<![\w-])sk-(?:(?:proj|svcacct|admin)-[\w-]{40,}|[A-Za-z0-9]{32,})"),
        kind("an Anthropic key", b"sk-ant-", rb"(?<![\w-])sk-ant-[a-z0-9]+-[\w-]{40,}"),
        kind("a Cohere key", b"_API_KEY", rb"\b(?:COHERE|CO)_API_KEY" + _IS + rb"([A-Za-z0-9]{40})\b"),
        kind("a Qdrant key", b"QDRANT", rb"\bQDRANT_(?:_SERVICE__)?API_KEY" + _IS + rb"([\w.|-]{24,})"),
        kind("a Qdrant key", b"eyJ", rb"(?<![\w-])eyJ[\w-]{8,1000}\.eyJ[\w-]{4,4000}\.[\w-]{16,1000}", _is_qdrant),
        kind(
            "an AWS access key", b"AKIA|ASIA", rb"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])", _is_key_id
        ),
        kind(
            "an AWS secret key",
            b"SECRET_ACCESS_KEY|secret_access_key|ecretAccessKey",
            rb"[sS](?:ECRET_ACCESS_KEY|ecret_access_key|ecretAccessKey)" + _IS + rb"([A-Za-z0-9/+]{40})(?![\w/+])",
        ),
        kind("a GitHub token", b"ghp_|gho_|ghu_|ghs_|ghr_", rb"(?<!\w)gh[pousr]_[A-Za-z0-9]{36,}"),
        kind("a GitHub token", b"github_pat_", rb"(?<!\w)github_pat_[A-Za-z0-9_]{60,}"),
        kind("a Slack token", b"xox", rb"(?<!\w)xox[abprs]-\d[\w-]{20,}"),
        kind("a Hugging Face token", b"hf_", rb"(?<!\w)hf_[A-Za-z0-9]{30,}"),
        kind("a PyPI token", b"pypi-", rb"(?<!\w)pypi-AgE[\w-]{50,}"),
        kind(
            "a database password",
            b"postgres",
            rb"\bpostgres(?:ql)?(?:\+\w{1,20})?://[^\s:/@\"'<>]{1,99}:([^\s:/@\"']{1,200})@[\w.\[-]",
            _is_strong,
        ),
        kind(
            "a private key",
            b"PRIVATE KEY",
            rb"-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY-----(?:\s|\\[rn]|<[^<>]{0,99}>){0,20}([A-Za-z0-9+/=]{32,})",
        ),
    )


def _is_key_id(key: bytes) -> bool:
    return len(set(key)) >= 8 and b"EXAMPLE" not in key


_KINDS = _kinds()


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret in a file: where it begins and what it is. Never the secret itself."""

    file: str
    line: int
    what: str


class Scanner:
    """Searches files for secrets.

    Args:
        environ: whose secret-looking values are searched for, as they are and in the usual encodings; None is this
            process's own.
    """

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        self._values = [(f"the value of {name}", forms) for name, forms in _values(environ)]

    def scan(self, site: Path, path: str) -> Iterator[Leak]:
        """Yield a file's leaks, each kind once; a file of any size, in bounded memory.

        Raises:
            OSError: it can't be read.
        """
        for what, line in sorted(_found(site / path, self._values).items()):
            yield Leak(path, line, what)


def walk(site: Path) -> Iterator[str]:
    """Yield the paths of all files and links below a folder, hidden ones too; no link is followed."""
    for folder, folders, names in os.walk(site):
        folders.sort()
        links = [name for name in folders if (Path(folder) / name).is_symlink()]
        for name in sorted(names + links):
            yield (Path(folder) / name).relative_to(site).as_posix()


def _found(path: Path, values: list[tuple[str, tuple[bytes, ...]]]) -> dict[str, int]:
    found: dict[str, int] = {}
    lines = 1
    with path.open("rb") as file:
        content = file.read(_WINDOW)
        while content:
            for what, at in _in(content, values):
                found.setdefault(what, lines + content.count(b"\n", 0, at))
            more = file.read(_WINDOW)
            kept = content[-_OVERLAP:] if more else b""
            lines += content.count(b"\n") - kept.count(b"\n")
            content = kept + more if more else b""
    return found


def _in(content: bytes, values: list[tuple[str, tuple[bytes, ...]]]) -> Iterator[tuple[str, int]]:
    for what, forms in values:
        for form in forms:
            if (at := content.find(form)) >= 0:
                yield what, at
                break
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        content = content.replace(b"\0", b"")
    if b"\0" not in content[:8000]:
        for kind in _KINDS:
            yield from ((kind.name, at) for at in kind.found(content))


def _values(environ: Mapping[str, str]) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    for name, value in sorted(environ.items()):
        named = _SECRET_NAME.search(name) and not _NO_SECRET.search(name)
        if named and len(value) >= _SHORTEST and len(set(value)) >= 5 and not value.startswith("/"):
            yield name, _forms(value)


def _forms(value: str) -> tuple[bytes, ...]:
    """Return a secret as it may stand in a file: as it is, quoted for HTML, JSON or an address, encoded, backwards."""
    raw = value.encode(errors="surrogateescape")
    forms = [raw, raw[::-1], raw.hex().encode(), raw.hex().upper().encode(), value.encode("utf-16-le", "replace")]
    forms += [quote(raw, safe="").encode(), html.escape(value).encode(errors="replace")]
    forms += [json.dumps(value)[1:-1].encode(), json.dumps(value)[1:-1].replace("/", "\\/").encode()]
    for shift in range(3):
        # At each of the three places that base64 has for a byte, without the characters that its neighbors change.
        coded = base64.b64encode(b"\0" * shift + raw)[(0, 2, 3)[shift] :].rstrip(b"=")[:-1]
        forms += [coded, coded.translate(bytes.maketrans(b"+/", b"-_"))]
    return tuple(dict.fromkeys(forms))
