"""Finds and masks secrets: keys of known services, and in settings also what an address says to its server.

A value is an example of the documentation, and no key, if it contains a word like "your", or isn't random.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from chapterverse.text.json_text import parse_json

_EXAMPLE = re.compile(rb"example|your|placeholder|redacted|changeme|dummy|x{4}|\*{3}|\.{3}|[<>{}$\[\]]", re.IGNORECASE)
_WEAK = frozenset(b"password passwd pass pw pwd secret postgres mysecretpassword changeme admin root user test".split())

# Separators between a name and its value, also in highlighted code.
_IS = rb"(?:[\s\"'`=:,]|<[^<>]{0,99}>|&quot;|&#34;|&#39;){1,24}"
_DATABASE = rb"\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?)(?:\+\w{1,20})?://[^\s:/@\"'<>]{0,99}"
_PEM = rb"-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
_PEM_FIELD = rb"[A-Z][\w-]{2,20}: ?[^\n\\<]{1,99}?(?=[\r\n\\<]|\s[A-Z][\w-]{2,20}:|\s[A-Za-z0-9+/=]{32})"
_PEM_HEAD = rb"(?>(?:\s|\\[rn]|<[^<>]{0,99}>|" + _PEM_FIELD + rb"){0,20})"
#: Name, hints and pattern of each kind. Every key contains one of its hints, so most files need no regular expression.
#: The key is the pattern's first group, or the whole match.
_KINDS = [
    (name, tuple(hints.split(b"|")), re.compile(pattern))
    for name, hints, pattern in (
        ("an OpenAI key", b"sk-", rb"(?<![\w-])sk-(?:(?:proj|svcacct|admin)-[\w-]{40,}|[A-Za-z0-9]{32,})"),
        ("an Anthropic key", b"sk-ant-", rb"(?<![\w-])sk-ant-[a-z0-9]+-[\w-]{40,}"),
        ("a Cohere key", b"_API_KEY", rb"\b(?:COHERE|CO)_API_KEY" + _IS + rb"([A-Za-z0-9]{40})\b"),
        ("a Cohere key", b"cohere|Cohere", rb"[cC]ohere[\w.]{0,20}[^\n\"'<>&]{0,40}[\"']([A-Za-z0-9]{40})[\"']"),
        ("a Qdrant key", b"QDRANT", rb"\bQDRANT_(?:_SERVICE__)?API_KEY" + _IS + rb"([\w.|-]{24,})"),
        ("a Qdrant token", b"eyJ", rb"(?<![\w-])eyJ[\w-]{8,1000}\.eyJ[\w-]{4,4000}\.[\w-]{16,1000}"),
        ("an AWS access key", b"AKIA|ASIA", rb"(?<![A-Za-z0-9])(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
        (
            "an AWS secret key",
            b"SECRET_ACCESS_KEY|secret_access_key|ecretAccessKey",
            rb"[sS](?:ECRET_ACCESS_KEY|ecret_access_key|ecretAccessKey)" + _IS + rb"([A-Za-z0-9/+]{40})(?![\w/+])",
        ),
        ("a Bedrock key", b"ABSKQmVkcm9ja", rb"(?<!\w)ABSKQmVkcm9ja[A-Za-z0-9+/=]{60,}"),
        ("a GitHub token", b"ghp_|gho_|ghu_|ghs_|ghr_", rb"(?<!\w)gh[pousr]_[A-Za-z0-9]{36,}"),
        ("a GitHub token", b"github_pat_", rb"(?<!\w)github_pat_[A-Za-z0-9_]{60,}"),
        ("a GitLab token", b"glpat-", rb"(?<!\w)glpat-[\w-]{20,}"),
        ("a Slack token", b"xox", rb"(?<!\w)xox[abeprs]-\d[\w-]{20,}"),
        ("a Slack webhook", b"hooks.slack.com", rb"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/([A-Za-z0-9]{20,})"),
        ("a Google API key", b"AIza", rb"(?<![\w-])AIza[\w-]{35}(?![\w-])"),
        ("a Google client secret", b"GOCSPX-", rb"(?<!\w)GOCSPX-[\w-]{28}"),
        ("a Stripe key", b"k_live_", rb"(?<!\w)[sr]k_live_[A-Za-z0-9]{20,}"),
        ("a SendGrid key", b"SG.", rb"(?<![\w.])SG\.[\w-]{22}\.[\w-]{43}"),
        ("a Groq key", b"gsk_", rb"(?<!\w)gsk_[A-Za-z0-9]{40,}"),
        ("a Hugging Face token", b"hf_", rb"(?<!\w)hf_[A-Za-z0-9]{30,}"),
        ("an npm token", b"npm_", rb"(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)"),
        ("a PyPI token", b"pypi-", rb"(?<!\w)pypi-AgE[\w-]{50,}"),
        (
            "a database password",
            b"postgres|mysql|mariadb|mongodb|redis|amqp",
            _DATABASE + rb":([^\s:/@\"'<>]{1,200})@[\w.\[-]",
        ),
        ("a private key", b"PRIVATE KEY", _PEM + _PEM_HEAD + rb"([A-Za-z0-9+/=]{32,})"),
    )
]
#: What stands before the host: a password, which may contain any character, or of a web address any token.
_LOGIN = re.compile(r"https?://[^/\s@]{1,200}@|//[^/\s@:]{0,99}:(?!\d{1,5}(?:[/?#]|$))\S{0,200}@", re.IGNORECASE)
_QUERY = re.compile(
    r"([?&;](?:[\w-]{0,40}[_-])?(?:api)?(?:key|token|secret|password|signature|sig)s?=)[^&;\s'\"]+", re.IGNORECASE
)
#: For a mask, which may hide too much.
_BEFORE_HOST = re.compile(r"//[^\s'\"]{0,400}@")
_ANY_QUERY = re.compile(r"([?&;][^=&;\s'\"]{1,99}=)[^&;\s'\"]+")


def _is_random(key: bytes) -> bool:
    return len(set(key)) >= 10 and bool(re.search(rb"\d", key)) and not _EXAMPLE.search(key)


def _is_strong(password: bytes) -> bool:
    return password.lower() not in _WEAK and not _EXAMPLE.search(password) and len(password) >= 6


def _is_key_id(key: bytes) -> bool:
    return len(set(key)) >= 8 and b"EXAMPLE" not in key


def _is_qdrant(token: bytes) -> bool:
    """Whether a JSON web token grants access to a Qdrant server; examples have other claims."""
    body = token.split(b".")[1]
    try:
        claims = parse_json(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(claims, dict) and "access" in claims


#: Tests for kinds where randomness alone doesn't tell a key from an example.
_IS_REAL = {"a Qdrant token": _is_qdrant, "an AWS access key": _is_key_id, "a database password": _is_strong}


def find_keys(content: bytes) -> Iterator[tuple[str, bytes, int]]:
    """Yield kind, key and position of everything that looks like a key."""
    for name, hints, pattern in _KINDS:
        if any(hint in content for hint in hints):
            for match in pattern.finditer(content):
                key = match[match.lastindex or 0]
                if _IS_REAL.get(name, _is_random)(key):
                    yield name, key, match.start()


def has_secret(text: str) -> bool:
    """Whether a text holds a key of a known service, or an address with a password or a token."""
    return bool(_LOGIN.search(text) or _QUERY.search(text) or any(find_keys(text.encode("utf-8", "replace"))))


def mask(text: str) -> str:
    """Return a text without what may be a secret in it."""
    for _, key, _ in find_keys(text.encode("utf-8", "replace")):
        text = text.replace(key.decode("utf-8", "replace"), "…")
    return _ANY_QUERY.sub(r"\1…", _BEFORE_HOST.sub("//…@", text))
