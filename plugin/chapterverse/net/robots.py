"""The rules of a site's `robots.txt` for us (RFC 9309)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from chapterverse.errors import FetchFailed
from chapterverse.net.address import request_target
from chapterverse.net.fetch import AGENT, Fetcher

#: RFC 9309 requires crawlers to read at least this much; a larger file is ignored beyond it.
_MAX_BYTES = 500 * 1024

_AGENT_NAME = re.compile(r"[a-zA-Z_-]+")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern of paths, in which `*` matches any characters and `$` at its end the end of the path."""

    pattern: str
    allows: bool

    def matches(self, path: str) -> bool:
        pattern, whole = self.pattern.removesuffix("$"), self.pattern.endswith("$")
        first, *parts = pattern.split("*")
        if not path.startswith(first):
            return False
        at = len(first)
        # The leftmost place of each part leaves most for the next, so nothing is ever tried twice.
        for part in parts[:-1] if whole else parts:
            found = path.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        if not whole:
            return True
        return path.endswith(parts[-1]) and len(path) - len(parts[-1]) >= at if parts else at == len(path)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules for us: those of the groups that name us, else those for everyone."""

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def of(cls, text: str, agent: str = AGENT) -> Rules:
        """Return the rules in a `robots.txt`. Never fails; takes time linear in its length."""
        groups: dict[str, list[_Rule]] = {}
        agents: list[str] = []
        in_rules = False
        for line in text.splitlines():
            name, _, value = line.partition("#")[0].partition(":")
            name, value = name.strip().lower(), value.strip()
            if name == "user-agent":
                # Several names in a row share the rules below them.
                agents = [] if in_rules else agents
                named = _AGENT_NAME.match(value)
                agents.append("*" if value.startswith("*") else named.group().lower() if named else "")
                groups.setdefault(agents[-1], [])
                in_rules = False
            elif name in ("allow", "disallow"):
                in_rules = True
                # An empty one forbids nothing.
                for each in agents if value else ():
                    groups[each].append(_Rule(_normal(value), name == "allow"))
        return cls(tuple(groups.get(agent, groups.get("*", ()))))

    def allow(self, path: str) -> bool:
        """Return whether a path with its query may be fetched: the longest rule that matches decides, else yes."""
        path = _normal(path)
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
            FetchFailed: its site forbids that, or does not say.
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
        # Any other status says that there are no rules.
        text = reply.body[:_MAX_BYTES].decode("utf-8", "replace") if reply.status == 200 else ""
        return Rules.of(text.removeprefix("\ufeff"))


def _normal(path: str) -> str:
    """Return a path or a pattern in one form: encoded, except characters that need no encoding."""
    encoded = quote(path, safe="/%:@!$&'()*+,;=~-._?[]")
    return _ESCAPE.sub(lambda match: match.group().upper(), encoded)
