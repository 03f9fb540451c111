"""Removes addresses from running text: with a scheme, without one, as a bare host, and in every disguise of these.

What a client can follow or run goes wherever it stands: a scheme, with or without slashes, and a host before a path or
a port, behind a user, or where a command connects (`host_commands`). The name of a host alone goes too, but not in
code, where `os.name` is none. In code also stay hosts that lead to no other network: the reader's own machine or
network (`host_names`), and reserved names. What the sources or the site hold may always stand.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from chapterverse_api.ext.check.links.host_commands import Command
from chapterverse_api.ext.check.links.host_names import (
    FILES,
    LETTERS,
    SCHEMES,
    SPECIAL_SCHEMES,
    TOP_LEVEL,
    is_host,
    is_numeric_address,
    is_program_name,
    leads_nowhere,
    read_code,
    read_prose,
    strip_invisible,
)
from chapterverse_api.ext.check.links.known_text import CLOSING, WIDE, KnownText
from chapterverse_api.ext.check.links.markup import Piece

# A shell reads two lines as one behind a backslash.
_NARROW = rf"(?:[^\s{WIDE}]|(?<=\\)\n(?=\S))+"
# An address may go on behind a wide stop, and in a wide label behind a dot.
_WIDE_TOPS = "|".join(sorted((top for top in TOP_LEVEL if re.match(f"[{WIDE}]", top)), reverse=True))
_DOT = rf"(?:(?<=[^\W\d_]{{2}}\.)|(?<=[^\s{WIDE}]{{3}}\.)(?<!\d{{3}}\.))"
_WIDE_LABEL = rf"{_DOT}(?:{_WIDE_TOPS}|[{WIDE}]{{1,63}}(?=\.\w))"
# A wide stop before a word is the end of a sentence, unless that word is a top-level domain before a path or port.
_WIDE_DOT = rf"(?<![{WIDE}\W])。(?:(?![{WIDE}\W])|(?:{_WIDE_TOPS})(?=[/:?#]))"
_PART = rf"{_NARROW}(?:(?:{_WIDE_DOT}|{_WIDE_LABEL})(?:{_NARROW})?)*"
_WORD = re.compile(rf"\s+|(?P<wide>[{WIDE}]+)|{_PART}")
_WIDE_LETTER = re.compile(f"[{WIDE}]")
_WIDE_TOP = re.compile(rf"\.(?:{_WIDE_TOPS})\b")
# What may hide a wide label, or a dot before it.
_HIDING = re.compile("[&%\\\\*`~<\\[({．｡․﹒\u0300-\u036f\u200c\u200d\u20d0-\u20f0]")
_SIGNS = re.compile(r"[.:/\\&%@。]|[=?#](?=\S)")
_DISGUISES = re.compile(r"[^\w.:/@?#=,;!-]|[^\x00-\x7f]|_")
# Code and what touches it before or behind are one word to a reader: "evil`.`com".
_TOUCHES = re.compile(r"[\w./:@]`|`(?:[\w/@]|[.:]\w)")
# Characters of an address up to its end; of a path as many as decide.
_REST, _PATH = r"""[^\s<>"'`]*""", r"""[^\s<>"'`]{0,64}"""
_LABEL = rf"(?!_)[{LETTERS}](?:[{LETTERS}-]{{0,61}}[{LETTERS}])?"
_PIECE = r"(?:0x[0-9a-f]+|\d+)"
_QUAD = rf"{_PIECE}(?:\.{_PIECE}){{3}}"
# A number of fewer than four parts is no address within a path, "lib/3.11/x", or behind a hyphen, in a name or a range.
_IPV4 = rf"(?:{_QUAD}|(?<!(?<!/)/){_PIECE}(?:\.{_PIECE}){{0,2}})(?!-(?!{_QUAD}(?![\w-]|\.\w)))"
_IPV6 = r"[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?:\.\d{1,3}){0,3}(?:%[\w.%-]+)?\]?"
_ADDRESS = re.compile(
    rf"""
      (?<![^\W_])(?P<scheme>
          (?:[a-z][a-z0-9+.-]{{1,30}}://|(?:{SPECIAL_SCHEMES}):(?:[/\\]+|(?=[^\s<>"'`/\\]{{0,64}}[.\[%]))|www\d?\.)
          (?=[^\s"'`)\],.;:!?*|}}<>])|(?:{SCHEMES}):(?=[^\s<>"'`]))(?P<rest>{_REST})
      | (?P<slashes>(?<![:\w/])//+|(?<![\w\\:])\\\\+)?
        (?P<user>(?<![\w.-])[\w.+-]{{1,64}}(?::[^\s@<>"'`]{{0,64}})?@\[?)?
        (?P<host>(?<![\w.])(?<![^\W\d_]-)(?P<number>{_IPV6}|{_IPV4})\.?(?!\w|\.\w)
          | (?<!\w)(?<!\w[.-])(?:\w[{LETTERS}-]{{0,62}}\.){{0,20}}{_LABEL}\.{_LABEL}\.?(?!\w|-\w|\.\w))
        (?P<path>(?::(?:\d{{1,5}}\b|(?(user){_PATH}|(?!))))?(?:[/?\#]{_PATH}|\\(?=[^\s<>"'`]){_PATH})?)
      | (?<![\w.:/@-])(?:[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?:\d{{2,5}}/(?!(?:tcp|udp|sctp)\b)[^\W\d]{_REST}
          | localhost:\d{{1,5}}\b | (?<!\S)\\\\+\w[\w.-]+\\+[\w$]{_REST})
    """,
    re.IGNORECASE | re.VERBOSE,
)
_PATH_END = re.compile(_REST)
# The user, host and port of an address, as no two programs read them differently.
_AUTHORITY = re.compile(
    r"(?:[\w.+-]++(?::[\w.+-]*+)?@)?(?P<host>[a-z0-9.-]++|\[[0-9a-f:.]+\])(?::\d*)?(?=[/?#]|[\W_]*+\Z)", re.IGNORECASE
)
# Behind these no host follows, or all that does.
_OPAQUE = re.compile(rf"www|(?!mailto)(?:{SCHEMES}):", re.IGNORECASE)
# What makes code of a host's name an address: a port or a path, and neither a member, "a.name?.b", nor an anchor.
_LEADING_PATH = re.compile(r":\d|/|\?\w")
# A line of a file, "main.py:12": no host is at such a port.
_FILE_LINE = re.compile(r":(?!80\b|443\b)\d{1,3}")
# The end of a word that may be the label of a host; in scripts without spaces a wide stop ends a sentence.
_TAIL = re.compile(
    rf"(?:(?<![{LETTERS}-])[{LETTERS}-]+(?<!\d)(?:\.|(?<![{WIDE}])。)?|(?<![A-Za-z0-9-])[A-Za-z0-9-]+[.。．｡․﹒][{WIDE}]{{1,63}}(?<=。))\Z"
)
#: Characters of the longest name of a host.
_MAX_HOST_CHARS = 256
_CLOSED_LINK = re.compile(r"(?<![)\]|])[)\]|]+(?=[(\[|])")
#: Closed links in an address behind which an address that is known may end.
_MAX_CLOSED_LINKS = 50
_AFTER = re.compile(r"[.,;:!?*_]*+(?:\Z|[)\]}|*_.,;:!?]+(?:\Z|[(\[|]))")


class _Found(NamedTuple):
    """An address in a word: `code` is a host that stands in code, and may."""

    start: int
    end: int
    verdict: Literal["foreign", "known", "code"]


class HostFilter:
    """Removes foreign addresses from a text, sentence by sentence."""

    def __init__(self, known: KnownText) -> None:
        self._known = known
        self._command = Command()
        # The word that the last sentence ended in, without a blank.
        self._tail = ""

    def filter(self, pieces: Sequence[Piece]) -> str:
        """Return the next sentence without foreign addresses."""
        text, code = _join(pieces)
        if not text.isascii():
            text, code = self._without_wide(text, code)
        words: list[str] = []
        for match in _WORD.finditer(text):
            word = match.group()
            if word.isspace():
                self._command.pause(word)
            elif match["wide"]:
                self._command.skip()
            else:
                word_code = code[match.start() : match.end()]
                word = self._clean(word, word_code)
                # A command is read from the text that the reader sees.
                self._command.read(word, is_code="1" in word_code)
            words.append(word)
            self._tail = "" if word.isspace() else (self._tail + word)[-_MAX_HOST_CHARS:]
        return "".join(words)

    def _without_wide(self, text: str, code: str) -> tuple[str, str]:
        """Return a text, and what of it is code, without runs in which a disguise hides a wide label of a host."""
        gaps = [
            _Found(*run.span(), "foreign")
            for run in re.finditer(r"\S+", text)
            if _WIDE_LETTER.search(run.group())
            and _HIDING.search(run.group())
            and self._hides(run.group(), is_code="0" not in code[run.start() : run.end()])
        ]
        return _cut(text, gaps), _cut(code, gaps)

    def _hides(self, run: str, *, is_code: bool) -> bool:
        plain = {word[f.start : f.end].lower() for word in _words(run) for f in self._find(word)}
        readings = read_code(run, in_shell=True) if is_code else read_prose(run)
        words = dict.fromkeys(word for reading in readings for word in _words(reading))
        # Whether a command stands before it is not read yet, and no name in a program ends so.
        is_foreign = (self._has_foreign(w, plain, is_code=is_code and not _WIDE_TOP.search(w)) for w in words)
        return any(is_foreign) and not self._known.holds(run)

    def _clean(self, word: str, code: str) -> str:
        """Return a word without foreign addresses.

        Args:
            code: "1" for each character of the word that stands in code, "0" for each other.
        """
        if self._tail and self._joins(word):
            return ""
        if not (self._command.is_open or _SIGNS.search(unicodedata.normalize("NFKC", word))):
            return word
        found = list(self._find(word, code))
        plain = {word[f.start : f.end].lower() for f in found}
        if _DISGUISES.search(word) and self._is_disguised(word, code, found, plain):
            return ""
        kept = _cut(word, [f for f in found if f.verdict == "foreign"])
        # What is left must not join to another one.
        return "" if kept != word and self._has_foreign(kept, plain) else kept

    def _joins(self, word: str) -> bool:
        """Whether a word makes an address of what it touches: "邪恶" and ".com"."""
        tail = _TAIL.search(self._tail)
        if tail is None or (word[0] == ".") == (tail.group()[-1] in ".。"):
            return False
        joined = tail.group() + word
        return any(map(self._has_foreign, (joined, *read_prose(joined)))) and not self._known.holds(joined)

    def _is_disguised(self, word: str, code: str, found: Iterable[_Found], plain: Collection[str]) -> bool:
        """Whether a renderer, a browser or a shell may read another foreign address than the plain ones."""
        word = _cut(word, (f for f in found if f.verdict == "known"), fill=" ")
        runs = [run.span() for run in re.finditer("1+|0+", code)]
        if any(_TOUCHES.match(word, start - 1) for start, _ in runs[1:]):
            runs, code = [(0, len(word))], "0"
        parts = ((part, code[start] == "1") for start, end in runs for part in word[start:end].split(" "))
        return any(self._is_disguise(part, plain, is_code=is_code) for part, is_code in parts)

    def _is_disguise(self, text: str, plain: Collection[str], *, is_code: bool) -> bool:
        readings = read_code(text, in_shell=self._command.is_open) if is_code else read_prose(text)
        is_foreign = any(self._has_foreign(reading, plain, is_code=is_code) for reading in readings)
        return is_foreign and not self._known.holds(text.strip("*_[]()"))

    def _has_foreign(self, text: str, plain: Collection[str] = (), *, is_code: bool = False) -> bool:
        """Whether a text, all of which is code or none, has a foreign address that is none of the plain ones."""
        found = self._find(text, "1" * len(text) if is_code else "")
        return any(f.verdict == "foreign" and text[f.start : f.end].lower() not in plain for f in found)

    def _find(self, word: str, code: str = "") -> Iterator[_Found]:
        """Yield each address of a word."""
        at = 0
        while match := _ADDRESS.search(word, at):
            if not _is_address(match, self._command):
                at = _next_start(match)
                continue
            start, end = match.start(), _end(match)
            address, is_code = word[start:end], "1" in code and "0" not in code[start:end]
            if known_length := self._known_length(address):
                at = start + known_length
                yield _Found(start, at, "known")
            elif is_code and not _is_followed(match, self._command):
                at = end
                yield _Found(start, start + len(address.rstrip(CLOSING)), "code")
            else:
                # Text that remains between "]" and ":" or "(" would be another link.
                attached = (word[start - 1 : start] or self._tail[-1:]) in ("]", "!")
                at = len(word) if attached else start + max(1, len(address.rstrip(CLOSING)))
                yield _Found(start, at, "foreign")

    def _known_length(self, address: str) -> int:
        """Return the length of the known address at the start of a match; 0 for a foreign one."""
        bare = address.rstrip(CLOSING)
        if self._known.holds_address(bare):
            return len(bare)
        # "https://a.example)[other](…": behind a closed bracket something else begins.
        for bracket in islice(_CLOSED_LINK.finditer(address), _MAX_CLOSED_LINKS):
            known = address[: bracket.start()].rstrip(CLOSING)
            if _AFTER.match(address, bracket.start()) and self._known.holds_address(known):
                return bracket.start()
        return 0


def _words(text: str) -> list[str]:
    return [match.group() for match in _WORD.finditer(text)]


def _next_start(match: re.Match[str]) -> int:
    """Return where to continue the search after a text that is no address."""
    number = match["number"] or ""
    return match.start("number") + number.index(":") + 1 if ":" in number else match.end("host")


def _is_address(match: re.Match[str], command: Command) -> bool:
    """Whether a client may find a host in a match."""
    if match["host"] is None:
        return True
    if match["number"]:
        path = match["path"].rstrip(CLOSING) or ("/" if match["slashes"] else "")
        return is_numeric_address(match["number"], path, user=bool(match["user"]), argument=_connects(match, command))
    return is_host(match["host"]) and not is_program_name(match.group())


def _is_followed(match: re.Match[str], command: Command) -> bool:
    """Whether a client follows or runs an address that stands in code, and so reaches a machine elsewhere."""
    host, rest = match["host"], match["rest"]
    if rest is not None:
        authority = None if _OPAQUE.match(match.string, match.start()) else _AUTHORITY.match(rest)
        return authority is None or not leads_nowhere(authority["host"])
    if host is None or leads_nowhere(match["number"] or host):
        return False
    if match["number"] or match["slashes"] or match["user"] or _connects(match, command):
        return True
    # "docs/evil.com/x", and not "://evil.com/x".
    in_folder = match.string[: match.start()].endswith("/") and not match.string[: match.start()].endswith("//")
    return _LEADING_PATH.match(match["path"]) is not None and not (_is_line(match) or in_folder)


def _is_line(match: re.Match[str]) -> bool:
    """Whether a match is a line of a file: "main.py:12"."""
    top = match["host"].rstrip(".").rpartition(".")[2].lower()
    return top in FILES and _FILE_LINE.fullmatch(match["path"].rstrip(CLOSING)) is not None


def _end(match: re.Match[str]) -> int:
    """Return the end of an address with all of its path."""
    if not match["path"]:
        return match.end()
    path = None if _is_line(match) else _PATH_END.match(match.string, match.end())
    return path.end() if path else match.end("host")


def _connects(match: re.Match[str], command: Command) -> bool:
    return command.connects(match.string, match.start(), match.end("host"))


def _join(pieces: Iterable[Piece]) -> tuple[str, str]:
    """Return the visible text of pieces, and "1" for each character of it that stands in code, "0" for each other."""
    visible = [(strip_invisible(p.text), p.is_code) for p in pieces]
    return "".join(text for text, _ in visible), "".join("01"[is_code] * len(text) for text, is_code in visible)


def _cut(text: str, gaps: Iterable[_Found], fill: str = "") -> str:
    """Return a text without gaps, which are in order, or with each of their characters filled."""
    kept, at = list[str](), 0
    for gap in gaps:
        kept += text[at : gap.start], fill * (gap.end - gap.start)
        at = gap.end
    return "".join((*kept, text[at:]))
