"""Reads the rules of a site's `robots.txt` for us (RFC 9309)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from chapterverse.errors import FetchFailed
from chapterverse.ext.net.address import request_target
from chapterverse.ext.net.fetch import USER_AGENT, Fetcher

#: RFC 9309 requires crawlers to read at least this much. The rest of a larger file is ignored.
_MAX_ROBOTS_BYTES = 500 * 1024

_AGENT_NAME = re.compile(r"[a-zA-Z_-]+")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern of paths. In it `*` matches any characters, and `$` at its end the end of the path."""

    pattern: str
    allows: bool

    def matches(self, path: str) -> bool:
        pattern = self.pattern[:-1] if self.pattern.endswith("$") else f"{self.pattern}*"
        if "*" not in pattern:
            return path == pattern
        first, *parts, last = pattern.split("*")
        at = len(first)
        # The leftmost match of each part leaves the most for the next, so no other one need be tried.
        for part in parts:
            start = path.find(part, at)
            if start < 0:
                return False
            at = start + len(part)
        return path.startswith(first) and path.endswith(last) and len(path) - len(last) >= at


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for us: those of the groups that name us, or if there are none, those for everyone."""

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Rules:
        """Return the rules in a `robots.txt`. Never fails, and takes time linear in the length."""
        groups: dict[str, list[_Rule]] = {}
        agents: list[str] = []
        in_rules = False
        for line in text.splitlines():
            name, _, value = line.partition("#")[0].partition(":")
            name, value = name.strip().lower(), value.strip()
            if name == "user-agent":
                # Several names in a row share the rules below them.
                agents = [] if in_rules else agents
                match = _AGENT_NAME.match(value)
                agents.append("*" if value.startswith("*") else match.group().lower() if match else "")
                groups.setdefault(agents[-1], [])
                in_rules = False
            elif name in ("allow", "disallow"):
                in_rules = True
                # A rule without a path forbids nothing.
                for group in agents if value else ():
                    groups[group].append(_Rule(_normalize(value), name == "allow"))
        return cls(tuple(groups.get(USER_AGENT, groups.get("*", ()))))

    def allow(self, path: str) -> bool:
        """Return whether a path with its query may be fetched. The longest rule that matches decides."""
        path = _normalize(path)
        matching = [rule for rule in self.rules if rule.matches(path)]
        return not matching or max(matching, key=lambda rule: (len(rule.pattern), rule.allows)).allows


class Robots:
    """Reads the rules of each site once. Safe to share between threads."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, Rules | FetchFailed] = {}

    def require(self, url: str) -> None:
        """Return if an address may be fetched.

        Raises:
            FetchFailed: its site forbids that, or its rules can't be read.
        """
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = self._read(origin)
        rules = self._rules[origin]
        if isinstance(rules, FetchFailed):
            raise FetchFailed(str(rules))
        if not rules.allow(request_target(parts)):
            raise FetchFailed(f"{parts.hostname} forbids it in its robots.txt.")

    def _read(self, origin: str) -> Rules | FetchFailed:
        try:
            reply = self._fetcher.get(f"{origin}/robots.txt")
        except FetchFailed as error:
            return error
        if reply.status >= 500 or reply.status == 429:
            return FetchFailed(f"{urlsplit(origin).hostname} answered its robots.txt with status {reply.status}.")
        # Any other status means that there are no rules.
        text = reply.body[:_MAX_ROBOTS_BYTES].decode("utf-8", "replace") if reply.status == 200 else ""
        return Rules.parse(text.removeprefix("\ufeff"))


def _normalize(path: str) -> str:
    """Return a path or a pattern in one form: encoded, except characters that need no encoding."""
    encoded = quote(path, safe="/%:@!$&'()*+,;=~-._?[]")
    return _ESCAPE.sub(lambda match: match.group().upper(), encoded)
