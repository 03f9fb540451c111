"""What keys of known services look like, and how one is told from the examples that documentation is full of.

Examples are words, or not random; a key is neither.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_EXAMPLE = re.compile(rb"example|your|placeholder|redacted|changeme|dummy|x{4}|\*{3}|\.{3}|[<>{}$\[\]]", re.IGNORECASE)
_WEAK = frozenset(b"password passwd pass pw pwd secret postgres mysecretpassword changeme admin root user test".split())


def _is_random(key: bytes) -> bool:
    return len(set(key)) >= 10 and bool(re.search(rb"\d", key)) and not _EXAMPLE.search(key)


def _is_strong(password: bytes) -> bool:
    return password.lower() not in _WEAK and not _EXAMPLE.search(password) and len(password) >= 6


def _is_key_id(key: bytes) -> bool:
    return len(set(key)) >= 8 and b"EXAMPLE" not in key


def _is_qdrant(token: bytes) -> bool:
    """Whether a JSON web token grants access to a Qdrant server; those of examples say other things."""
    body = token.split(b".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + b"=" * (-len(body) % 4)))
    except (binascii.Error, ValueError):
        return False
    return isinstance(claims, dict) and "access" in claims


@dataclass(frozen=True, slots=True)
class Kind:
    """What a kind of key looks like.

    Attributes:
        hints: one of them is in every such key, so that most files need no regular expression.
        pattern: its first group, or all of it, is the key.
    """

    name: str
    hints: tuple[bytes, ...]
    pattern: re.Pattern[bytes]
    is_real: Callable[[bytes], bool] = _is_random

    def found(self, content: bytes) -> Iterator[re.Match[bytes]]:
        if any(hint in content for hint in self.hints):
            yield from (match for match in self.pattern.finditer(content) if self.is_real(match[match.lastindex or 0]))


# What stands between a name and its value, also in highlighted code.
_IS = rb"(?:[\s\"'`=:,]|<[^<>]{0,99}>|&quot;|&#34;|&#39;){1,24}"


def _kinds() -> tuple[Kind, ...]:
    def kind(name: str, hints: bytes, pattern: bytes, is_real: Callable[[bytes], bool] = _is_random) -> Kind:
        return Kind(name, tuple(hints.split(b"|")), re.compile(pattern), is_real)

    return (
        kind("an OpenAI key", b"sk-", rb"(?<![\w-])sk-(?:(?:proj|svcacct|admin)-[\w-]{40,}|[A-Za-z0-9]{32,})"),
        kind("an Anthropic key", b"sk-ant-", rb"(?<![\w-])sk-ant-[a-z0-9]+-[\w-]{40,}"),
        kind("a Cohere key", b"_API_KEY", rb"\b(?:COHERE|CO)_API_KEY" + _IS + rb"([A-Za-z0-9]{40})\b"),
        kind(
            "a Cohere key",
            b"cohere|Cohere",
            rb"[cC]ohere[\w.]{0,20}[^\n\"'<>&]{0,40}[\"']([A-Za-z0-9]{40})[\"']",
        ),
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
        kind("a Bedrock key", b"ABSKQmVkcm9ja", rb"(?<!\w)ABSKQmVkcm9ja[A-Za-z0-9+/=]{60,}"),
        kind("a GitHub token", b"ghp_|gho_|ghu_|ghs_|ghr_", rb"(?<!\w)gh[pousr]_[A-Za-z0-9]{36,}"),
        kind("a GitHub token", b"github_pat_", rb"(?<!\w)github_pat_[A-Za-z0-9_]{60,}"),
        kind("a GitLab token", b"glpat-", rb"(?<!\w)glpat-[\w-]{20,}"),
        kind("a Slack token", b"xox", rb"(?<!\w)xox[abeprs]-\d[\w-]{20,}"),
        kind(
            "a Slack webhook",
            b"hooks.slack.com",
            rb"hooks\.slack\.com/services/T\w{6,}/B\w{6,}/([A-Za-z0-9]{20,})",
        ),
        kind("a Google API key", b"AIza", rb"(?<![\w-])AIza[\w-]{35}(?![\w-])"),
        kind("a Google client secret", b"GOCSPX-", rb"(?<!\w)GOCSPX-[\w-]{28}"),
        kind("a Stripe key", b"k_live_", rb"(?<!\w)[sr]k_live_[A-Za-z0-9]{20,}"),
        kind("a SendGrid key", b"SG.", rb"(?<![\w.])SG\.[\w-]{22}\.[\w-]{43}"),
        kind("a Groq key", b"gsk_", rb"(?<!\w)gsk_[A-Za-z0-9]{40,}"),
        kind("a Hugging Face token", b"hf_", rb"(?<!\w)hf_[A-Za-z0-9]{30,}"),
        kind("an npm token", b"npm_", rb"(?<!\w)npm_[A-Za-z0-9]{36}(?!\w)"),
        kind("a PyPI token", b"pypi-", rb"(?<!\w)pypi-AgE[\w-]{50,}"),
        kind(
            "a database password",
            b"postgres|mysql|mariadb|mongodb|redis|amqp",
            rb"\b(?:postgres(?:ql)?|mysql|mariadb|mongodb|rediss?|amqps?)(?:\+\w{1,20})?://[^\s:/@\"'<>]{0,99}"
            rb":([^\s:/@\"'<>]{1,200})@[\w.\[-]",
            _is_strong,
        ),
        kind(
            "a private key",
            b"PRIVATE KEY",
            rb"-----BEGIN (?:[A-Z]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            rb"(?:\s|\\[rn]|<[^<>]{0,99}>|[A-Z][\w-]{2,20}: ?[^\n\\]{1,99}){0,20}([A-Za-z0-9+/=]{32,})",
        ),
    )


KINDS = _kinds()
