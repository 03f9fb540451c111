"""Removes addresses from running text: with a scheme, without one, as a bare host, and in every disguise of these.

The rule for a bare host: labels of letters, digits and hyphens between dots, of which the last is a top-level domain
that is not also the ending of a file or an attribute in programs; before a path or a port, any last label of letters
that is no ending of a file, or one that is both before a path that names no file ("a.zip/x", and not "a.zip/x.md"). A
name without dots is one before a port and a path. `host_commands` knows after which words a name that may be a file is
a host, and `numeric_hosts` which numbers are addresses. So `mkdocs.yml`, `config.py`, `v1.2.3` and `user.id` are none.
An address that the passages contain is allowed.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice
from urllib.parse import unquote

from chapterverse.text.invisible import INVISIBLE
from chapterverse_api.grounding.links.host_commands import Command
from chapterverse_api.grounding.links.host_names import (
    ATTRIBUTES,
    FILES,
    FILES_OR_HOSTS,
    OBJECTS,
    PRODUCTS,
    SCHEMES,
    TOP_LEVEL,
    WIDE_TOP_LEVEL,
)
from chapterverse_api.grounding.links.numeric_hosts import is_numeric_address

# Invisible characters and selectors of glyphs, which may split a word that readers see as one.
_INVISIBLE = re.compile(f"[{INVISIBLE}\ufe00-\ufe0f]")
# Letters of some scripts are written with these two; in an address they only hide it.
_JOINERS = re.compile("[\u200c\u200d]")
# Scripts without spaces: each of their characters is a word.
_WIDE = "\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f\U00020000-\U0003ffff"  # noqa: E501
_NARROW = rf"[^\s{_WIDE}]+"
# But an address may go on behind a wide stop, and end in a wide top-level domain.
_WIDE_TOPS = "|".join(sorted(WIDE_TOP_LEVEL, reverse=True))
_PART = (
    rf"{_NARROW}(?:(?:(?<=[A-Za-z0-9])。(?=[A-Za-z0-9])|(?<=[A-Za-z0-9-][A-Za-z]\.)(?:{_WIDE_TOPS}))(?:{_NARROW})?)*"
)
_WORD = re.compile(rf"\s+|(?P<wide>[{_WIDE}]+)|{_PART}")
#: Titles, addresses and texts of passages whose addresses are cached.
_MAX_CACHED_TEXTS = 4096
_SIGNS = re.compile(r"[.:/\\&%@．｡。\u2024\ufe52]|[=?#](?=\S)")
_DISGUISES = re.compile(r"[&%\\*_`~<>\[\](){}]|[^\x00-\x7f]")
_EDGES = re.compile(r"(?<![^\W_])_+|_+(?![^\W_])")
# Characters of an address up to its end.
_REST = r"""[^\s<>"'`]*"""
_LABEL = r"[^\W_](?:[^\W_]|-){0,62}"
_PIECE = r"(?:0x[0-9a-f]+|\d+)"
_QUAD = rf"{_PIECE}(?:\.{_PIECE}){{3}}"
# A number of fewer than four parts is no address within a path, "lib/3.11/x", or behind a hyphen, in a name or a range.
_IPV4 = rf"(?:{_QUAD}|(?<!(?<!/)/){_PIECE}(?:\.{_PIECE}){{0,2}})(?!-(?!{_QUAD}(?![\w-]|\.\w)))"
_IPV6 = r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?:%[\w.%-]+)?\]?"
_ADDRESS = re.compile(
    rf"""
      (?<![^\W_])(?:[a-z][a-z0-9+.-]{{1,30}}://|(?:(?:{SCHEMES}):|www\d?\.)(?=[^\s<>"'`])){_REST}
      | (?<![:\w/])//+[\w-]+(?:\.[\w-]+)+{_REST}
      | (?P<user>(?<![\w.-])[\w.+-]{{1,64}}(?::[^\s@<>"'`]{{0,64}})?@\[?)?
        (?P<host>(?<![\w.])(?<![^\W\d_]-)(?P<number>{_IPV6}|{_IPV4})\.?(?!\w|\.\w)
          | (?<![\w.-])(?:\w[\w-]{{0,62}}\.){{0,20}}{_LABEL}\.{_LABEL}\.?(?![\w-]|\.\w))
        (?P<path>(?::(?:\d{{1,5}}\b|(?(user){_REST}|(?!))))?(?:[/?\#]{_REST}|\\[^\s<>"'`]+)?)
      | (?<![\w.:/@-])[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?:\d{{2,5}}/(?!(?:tcp|udp|sctp)\b)[^\W\d]{_REST}
      | ^\.(?:com|net|org|io)\b(?:/{_REST})?
    """,
    re.IGNORECASE | re.VERBOSE,
)
# A line of a file, "setup.py:12": no host is at such a port.
_FILE_LINE = re.compile(r":(?!80\b|443\b)\d{1,3}")
# Characters that may follow an address in a sentence, or close a link around it.
_CLOSING = ".,;:!?)]}*_|"
_CLOSED_LINK = re.compile(r"(?<![)\]|])[)\]|]+(?=[(\[|])")
#: Closed links in an address behind which an address that the passages contain may end.
_MAX_CLOSED_LINKS = 50
_AFTER = re.compile(r"[.,;:!?*_]*+(?:\Z|[)\]}|*_.,;:!?]+(?:\Z|[(\[|]))")


class KnownAddresses:
    """The addresses that these texts contain."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [text for text in texts if text]
        forms = [form for text in self._texts for form in _read_addresses(text)]
        self._addresses = {address for address, _, _ in forms}
        self._hosts = {host for _, _, host in forms if host}

    def contain(self, address: str) -> bool:
        """Whether the texts contain an address verbatim, or its host alone."""
        return address in self._addresses or address.lower() in self._hosts

    def quote(self, text: str) -> bool:
        """Whether the texts contain this text verbatim."""
        return any(text in source for source in self._texts)

    def match_length(self, address: str) -> int:
        """Return the length of the known address at the start of a match; 0 for a foreign one."""
        bare = address.rstrip(_CLOSING)
        if self.contain(bare):
            return len(bare)
        # "https://a.example)[other](…": behind a closed bracket something else begins.
        for bracket in islice(_CLOSED_LINK.finditer(address), _MAX_CLOSED_LINKS):
            is_known = self.contain(address[: bracket.start()].rstrip(_CLOSING))
            if is_known and _AFTER.match(address, bracket.start()):
                return bracket.start()
        return 0


class HostFilter:
    """Removes foreign addresses from a text, sentence by sentence."""

    def __init__(self, known_addresses: KnownAddresses) -> None:
        self._known_addresses = known_addresses
        self._command = Command()
        self._last_character = ""

    def filter(self, text: str) -> str:
        """Return the next sentence without foreign addresses."""
        words: list[str] = []
        for match in _WORD.finditer(text):
            allowed = word = match.group()
            if word.isspace():
                self._command.pause(word)
            elif match["wide"]:
                self._command.skip()
            else:
                allowed = "".join(word[start:end] for start, end in self._allowed_ranges(word))
                # A command is read from the text that the reader sees.
                self._command.read(allowed)
            words.append(allowed)
            self._last_character = allowed[-1:] or self._last_character
        return "".join(words)

    def _allowed_ranges(self, word: str) -> Iterable[tuple[int, int]]:
        """Return the start and end of each part of a word that is no foreign address."""
        invisible = [] if word.isascii() else [m.span() for m in _INVISIBLE.finditer(word)]
        if not self._command.is_open and not _SIGNS.search(word):
            return _between(invisible, len(word))
        visible = _INVISIBLE.sub("", word) if invisible else word
        addresses = list(self._find_addresses(visible))
        foreign = [(start, end) for start, end, is_known in addresses if not is_known]
        # A space replaces each address. The rest must contain no disguised one.
        gaps = _between([(start, end) for start, end, _ in addresses], len(visible))
        rest = " ".join(visible[start:end] for start, end in gaps)
        disguised = (
            _DISGUISES.search(rest)
            and any(self._has_foreign(reading) for reading in _undisguise(rest))
            # In a passage it is what it looks like: `ReturnLogger().info("hello")` without its signs would be a host.
            and not self._known_addresses.quote(word)
        )
        if disguised or (invisible and foreign):
            return ()
        return _between(invisible or foreign, len(word))

    def _has_foreign(self, text: str) -> bool:
        return any(not is_known for _, _, is_known in self._find_addresses(text))

    def _find_addresses(self, word: str) -> Iterator[tuple[int, int, bool]]:
        """Yield the start and the end of each address, and whether it is known."""
        at = 0
        while match := _ADDRESS.search(word, at):
            start, address = match.start(), match.group()
            if not _is_address(match, self._command):
                at = _next_start(match)
                continue
            known_length = self._known_addresses.match_length(address)
            # Text that remains between "]" and ":" or "(" would be another link.
            attached = (word[start - 1] if start else self._last_character) in ("]", "!")
            foreign_end = len(word) if attached else start + max(1, len(address.rstrip(_CLOSING)))
            at = start + known_length if known_length else foreign_end
            yield start, at, bool(known_length)


@functools.lru_cache(maxsize=_MAX_CACHED_TEXTS)
def _read_addresses(text: str) -> tuple[tuple[str, str, str], ...]:
    """Return the addresses of a passage: as written, without scheme, and their hosts."""
    return tuple(_each_address(text))


def _each_address(text: str) -> Iterator[tuple[str, str, str]]:
    words = (word.group() for word in _WORD.finditer(text) if _SIGNS.search(word.group()))
    for match in (m for word in words for m in _ADDRESS.finditer(word)):
        if match["number"] and not _is_numeric_address(match, connects=True):
            continue
        address = match.group().rstrip(_CLOSING)
        bare = re.sub(r"^[a-z][a-z0-9+.-]*:(?://)?|^//", "", address, flags=re.IGNORECASE)
        host = re.split(r"[/?#\\]", bare, maxsplit=1)[0].lower()
        yield address, bare, "" if "@" in host else host
        if match["user"]:
            yield match["user"] + match["host"], "", ""
        elif "@" not in host:
            yield bare, bare, re.sub(r":\d*\Z", "", host).strip("[]")


def _next_start(match: re.Match[str]) -> int:
    """Return where to continue the search after a text that is no address."""
    number = match["number"] or ""
    return match.start("number") + number.index(":") + 1 if ":" in number else match.end("host")


def _is_address(match: re.Match[str], command: Command) -> bool:
    if match["host"] is None:
        return True
    connects = command.connects(match.string, match.start(), match.end("host"))
    return _is_numeric_address(match, connects) if match["number"] else _is_host(match, connects)


def _is_numeric_address(match: re.Match[str], connects: bool) -> bool:
    path = match["path"].rstrip(_CLOSING)
    return is_numeric_address(match["number"], path, user=bool(match["user"]), argument=connects)


def _is_host(match: re.Match[str], connects: bool) -> bool:
    """Whether a dotted name is a host.

    Args:
        connects: whether a command connects to it.
    """
    host, path = match["host"].rstrip(".").lower(), match["path"]
    name, _, top = host.rpartition(".")
    if match["user"]:
        # "me@host.tld", and not "a@1.2"
        return len(top) > 1 and bool(re.search(r"[^\W\d]", top))
    called = match.string.startswith("(", match.end()) or name.partition(".")[0] in OBJECTS
    if host in PRODUCTS or (called and "." not in name and top in ATTRIBUTES):
        # "asp.net", "request.app", "store.link("
        return False
    if top in TOP_LEVEL or top in WIDE_TOP_LEVEL or top.startswith("xn--"):
        # "evil.com"
        return True
    if len(top) < 2 or not top.isalpha() or (_FILE_LINE.fullmatch(path) and not connects):
        # "v1.x", "setup.py:12"
        return False
    if top in FILES and (top not in FILES_OR_HOSTS or ("." in path and not connects)):
        # "mkdocs.yml/zensical.toml", "a.zip/x.md"
        return False
    # "curl install.sh", "evil.sh/x", and not "install.sh" or "userName.id/x"
    return connects or (path not in ("", "/", "#", "?") and _is_lower(match["host"]))


def _is_lower(name: str) -> bool:
    """Whether no label is in camel case, as hosts never are and names in programs often."""
    return not re.search(r"[a-z][A-Z]", name)


def _undisguise(word: str) -> Iterator[str]:
    """Yield a word as a renderer or a browser may come to read it."""
    plain = word
    for _ in range(3):
        decoded = unquote(html.unescape(plain))
        if decoded == plain:
            break
        plain = decoded
    plain = _JOINERS.sub("", _INVISIBLE.sub("", plain))
    plain = unicodedata.normalize("NFKC", plain).replace("。", ".").replace("｡", ".")
    plain = re.sub(r"\\(?=[\"'])|(?<=\d)\\(?=\.\d)", "", plain)
    for unescaped in dict.fromkeys((plain, plain.replace("\\", ""), plain.replace("\\", "/"))):
        yield _EDGES.sub("", unescaped)
        yield _EDGES.sub("", re.sub(r"<[^<>\d][^<>]*>|[*`~\[\](){}<>]", "", unescaped))


def _between(gaps: Iterable[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges between gaps, which are in order."""
    at = 0
    for start, end in gaps:
        if start > at:
            yield at, start
        at = max(at, end)
    if at < length:
        yield at, length
