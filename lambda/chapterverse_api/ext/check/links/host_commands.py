"""Commands that connect to what their arguments name: `install.sh` is a file to `sh`, and a host to `curl`."""

from __future__ import annotations

import re

_FETCH_COMMANDS = frozenset(
    """
    curl wget wget2 aria2c axel xh lynx w3m elinks ssh sftp mosh telnet ftp lftp nc ncat netcat socat
    ping ping6 dig nslookup traceroute tracert whois iwr irm invoke-webrequest invoke-restmethod start-bitstransfer
    clone ls-remote
    """.split()
)
#: These take a host only before a path, "host:path", and pip only behind one of its options.
_COPY_COMMANDS = frozenset({"scp", "rsync", "git"})
_INSTALL_COMMANDS = frozenset({"pip", "pip3"})
_INDEX_OPTIONS = frozenset({"-i", "-f"})
_COMMANDS = _FETCH_COMMANDS | _COPY_COMMANDS | _INSTALL_COMMANDS
#: Words of any sentence that connect only in code.
_CODE_COMMANDS = frozenset(
    """
    http https open xdg-open start explorer firefox chrome chromium host drill login psql mysql mysqldump redis-cli
    mongo mongosh nmap tftp sshfs ssh-copy-id autossh wscat websocat grpcurl siege wrk ab hey tnc test-netconnection
    resolve-dnsname
    """.split()
)
_ALL_COMMANDS = _COMMANDS | _CODE_COMMANDS
#: Commands whose arguments may be plain words.
_WITH_WORDS = _COPY_COMMANDS | _INSTALL_COMMANDS
# Options (of any command) and variables whose value is an address: "--index-url", "HTTP_PROXY=".
_ADDRESS_OPTIONS = r"--?(?:[\w-]*-)?(?:url|uri|registry|proxy|host|server|index|find-links)"
_OPTION = re.compile(_ADDRESS_OPTIONS, re.IGNORECASE)
_ASSIGNMENT = re.compile(rf"(?<![\w-])(?:{_ADDRESS_OPTIONS}|\w*_(?:url|proxy|registry))=[\"']?\Z", re.IGNORECASE)
#: Characters of the longest option that is looked for.
_MAX_OPTION_CHARS = 40
# Options that a file or other data follows, alone or behind letters without a value, and redirections.
_DATA_OPTION = re.compile(
    r"curl -[fgiIjJkLlnNOpqRsSvZ#0-4]*[AbcdDEFHoTuX]|wget -[bcdNqSv]*[oO]|aria2c -o|clone -[bco]"
    r"|\S+ (?:--(?:cert|data|form|header|key|output|upload)\S*|(?i:-outfile)|\d?[<>]{1,2})"
)
# A line of a file, "setup.py:12", and the colon of a sentence are no path.
_REMOTE = re.compile(r":(?!\d)")
_TICKS = re.compile(r"`+")
_BREAK = re.compile(r"\|+|;|&&|^&|&$|\(|\)")
_DOTTED = re.compile(r"[./:@]")
_MARKS = "`*_\"'$<{}[]\\"
_QUOTES = ("'", '"')
_STOPS = (".", ",", ":", "!", "?")


class Command:
    """Reads a text word by word, and tells whether a command connects to the next one."""

    def __init__(self) -> None:
        self._ticks = self._breaks = 0
        self._end()

    def _end(self) -> None:
        self._name = self._option = ""
        self._quoted = self._continued = False

    @property
    def is_open(self) -> bool:
        """Whether a command or an option was read that has not ended."""
        return bool(self._name or self._option)

    def connects(self, word: str, start: int, end: int) -> bool:
        """Whether the command connects to the next word."""
        before = word[max(0, start - _MAX_OPTION_CHARS) : start]
        if before.endswith(("=", '="', "='")):
            return bool(_ASSIGNMENT.search(before))
        if _OPTION.fullmatch(self._option):
            return True
        if not self._name or before.endswith(">") or (before.endswith("/") and before[-2:] != "//"):
            return False
        if self._name in _COPY_COMMANDS:
            return bool(_REMOTE.match(word, end)) and (self._name != "git" or end + 1 < len(word))
        if self._name in _INSTALL_COMMANDS:
            return self._option in _INDEX_OPTIONS
        return not _DATA_OPTION.fullmatch(f"{self._name} {self._option}")

    def pause(self, blanks: str) -> None:
        """Read blanks; a command ends with its line, unless the line is continued or the code span is."""
        self._breaks += blanks.count("\n")
        if self._breaks > 1 and self._ticks < 3:
            self._ticks = 0
        if self._breaks and not self._continued and self._ticks not in (1, 2):
            self._end()

    def skip(self) -> None:
        """Read words of a script without spaces, in which no command is written."""
        self._breaks = 0
        self._end()

    def read(self, word: str, *, is_code: bool) -> None:
        """Read a word, or nothing of one that was taken out.

        Args:
            is_code: whether the word, or a part of it, stands in code.
        """
        if not word:
            return
        self._breaks = 0
        if word == "\\":
            self._continued = True
            return
        for ticks in _TICKS.findall(word):
            self._ticks = 0 if self._ticks == len(ticks) else self._ticks or len(ticks)
        name = word.strip(_MARKS)
        commands = _ALL_COMMANDS if is_code else _COMMANDS
        if name.isalpha() and not self.is_open and name.lower() not in commands:
            return
        self._continued = word.endswith("\\")
        if not self._quoted and len(parts := _BREAK.split(word)) > 1:
            self._end()
            word = parts[-1]
            name = word.strip(_MARKS)
        program = name.lower().replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
        if program in commands:
            # A quote that opens before the command is around all of it, and none of an argument's.
            self._name, self._option, self._quoted = program, "", False
        elif self.is_open or _OPTION.fullmatch(name):
            self._argument(word, name)

    def _argument(self, word: str, name: str) -> None:
        quotes = _quotes(word)
        if quotes % 2:
            # What was opened before the command ends it.
            if not self._quoted and name[:1].isalnum() and word[-1] in _QUOTES:
                self._end()
                return
            self._quoted = not self._quoted
        if self._quoted:
            if name.startswith("-"):
                self._option = name[:_MAX_OPTION_CHARS]
            return
        redirects = word.startswith(("<", ">"))
        if redirects or (name.startswith("-") and not quotes):
            self._option = (word if redirects else name)[:_MAX_OPTION_CHARS]
        elif not (self._option or quotes or self._ticks or self._name in _WITH_WORDS or _DOTTED.search(name)):
            # A word of the sentence, which goes on.
            self._end()
        else:
            self._option = ""
        if not self._ticks and word.rstrip("`*\"'").endswith(_STOPS):
            self._end()


def _quotes(word: str) -> int:
    return word.count('"') + word.count("'")
