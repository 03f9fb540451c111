"""Tokenizes MDX: Markdown, code, JSX tags and `{expressions}`.

No parser of MDX exists for Python; this one knows as much JavaScript as it takes to find where a brace closes. What
isn't closed is text, so nothing that a person wrote disappears, and no character is looked at more than a few times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Tag:
    """A JSX tag; `name` is "" for a fragment.

    Attributes:
        attributes: strings as they read, expressions with their braces, "" for a name alone.
        raw: as written.
    """

    name: str
    attributes: Mapping[str, str]
    closing: bool
    empty: bool
    raw: str


@dataclass(frozen=True, slots=True)
class Expression:
    """The source between two braces."""

    source: str


@dataclass(frozen=True, slots=True)
class Code:
    """A fence or a code span, as written."""

    raw: str


Token: TypeAlias = str | Tag | Expression | Code

#: All tokens that aren't plain text, tried from left to right: a fence's first line (its indentation and list marker,
#: its ticks, its info), a line that may be JavaScript, an explicit id of Docusaurus, an escape, a code span, a comment,
#: a brace or a tag.
_SPECIAL = re.compile(
    r"""^([ \t>]*+(?:(?:[-*+]|[0-9]{1,9}[.)])[ \t]++)?)(`{3,}+(?=[^`\n]*+$)|~{3,}+)[ \t]*+([^\n]*+)\n?
    | ^(?=(?:import|export)\b)()
    | \\?\{(?:/\*)?[ ]?(\#[^\s{}*]+)[ ]?(?:\*/)?\}(?=[ \t]*+$)
    | (\\[^\n])
    | (`++)
    | (<!--)
    | ([{<])""",
    re.MULTILINE | re.VERBOSE,
)
_FENCE, _SCRIPT, _ID, _ESCAPE, _TICKS, _COMMENT, _OPENER = 3, 4, 5, 6, 7, 8, 9

_IMPORT_EXPORT = re.compile(
    r"""import\s*(?:['"]|[\w$*{][^'"]{0,1000}?\bfrom\s*['"])
    | export\s+(?:default|const|let|var|function|async|class|\*|\{)""",
    re.VERBOSE,
)
_CONSTANT = re.compile(
    r"""export\s+(?:const|let|var)\s+([\w$]+)\s*(?::[^=\n]*)?=\s*('[^'\\\n]*'|"[^"\\\n]*"|`[^`\\$]*`|[0-9][\w.]*)\s*(?:;|$)""",
    re.MULTILINE,
)
#: As much of JavaScript as matters to braces. A quote that isn't closed in its line is an apostrophe.
_SCRIPT_TOKEN = re.compile(
    r"""'(?>(?:[^'\\\n]++|\\.)*)' | "(?>(?:[^"\\\n]++|\\.)*)" | `(?>(?:[^`\\]++|\\.)*)(?:`|\Z)
    | \\. | (?<!:)//[^\n]*+ | /\*.*?(?:\*/|\Z)
    | (?P<open>[({\[]) | (?P<close>[)}\]]) | (?P<blank>\n[ \t]*+(?=\n|\Z))""",
    re.DOTALL | re.VERBOSE,
)
_BRACE_TOKEN = re.compile(
    _SCRIPT_TOKEN.pattern.replace(r"[({\[]", r"\{").replace(r"[)}\]]", r"\}"), _SCRIPT_TOKEN.flags
)
_BLANK_LINE = re.compile(r"\n[ \t]*+(?=\n|\Z)")
_TAG_NAME = re.compile(r"<(/?)([A-Za-z][\w.:-]*+|(?=>))")
_ATTRIBUTE = re.compile(
    r"""\s*+(?:(/?)>|([A-Za-z_$@:][\w.:$@-]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'{}<>=`]++)|(?=\{)))?
    |(?=\{))""",
    re.VERBOSE,
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())


def tokenize(text: str) -> tuple[list[Token], dict[str, str]]:
    """Return the tokens of MDX without its front matter, and what `export const` names as a plain string or number.

    Never fails, takes time linear in the length.
    """
    tokenizer = _Tokenizer(text)
    tokenizer.run()
    return tokenizer.tokens, tokenizer.constants


class _Tokenizer:
    """Cuts a text into tokens. No text is scanned twice, so it keeps what a search showed.

    Attributes:
        plain_from: where the text begins that is no token yet.
        unwrapped: where the last line of a fence whose content is MDX again starts and ends.
        braces: where each brace closes, up to `scanned`.
        scripts_unclosed: the brackets of a block of JavaScript never close from here on.
        ticks: where runs of backticks start, by their length, the last first; None until one is met.
        comments_unclosed: no comment ends from here on.
        blank: the next blank line.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[Token] = []
        self.constants: dict[str, str] = {}
        self.plain_from = 0
        self.unwrapped = (-1, -1)
        self.braces: dict[int, int] = {}
        self.scanned = 0
        self.scripts_unclosed = False
        self.ticks: dict[int, list[int]] | None = None
        self.comments_unclosed = False
        self.blank = -1

    def run(self) -> None:
        position = 0
        while match := _SPECIAL.search(self.text, position):
            handle = _HANDLERS.get(match.lastindex or _ESCAPE)
            position = (handle and handle(self, match)) or max(match.end(), match.start() + 1)
        self._emit(len(self.text), len(self.text))

    def _emit(self, start: int, end: int, *tokens: Token) -> int:
        """Append the text before `start` and then `tokens`, and go on at `end`."""
        if start > self.plain_from:
            self.tokens.append(self.text[self.plain_from : start])
        self.tokens.extend(tokens)
        self.plain_from = end
        return end

    def _literal(self, start: int) -> int:
        """Append a "<" that starts nothing, so that no parser of Markdown takes it for more."""
        return self._emit(start, start + 1, "&lt;")

    def _fence(self, match: re.Match[str]) -> int:
        start, ticks, info = match.start(), match.group(2), match.group(3)
        if start == self.unwrapped[0]:
            return self._emit(start, self.unwrapped[1])
        last = re.compile(rf"^[ \t>]*+{ticks[0]}{{{len(ticks)},}}+[ \t]*+$", re.MULTILINE)
        closing = last.search(self.text, match.end())
        if info.strip() == "mdx-code-block" and closing and start > self.unwrapped[0]:
            self.unwrapped = closing.span()
            return self._emit(start, match.end())
        end = closing.end() if closing else len(self.text)
        return self._emit(start, end, Code(self.text[start:end]))

    def _heading_id(self, match: re.Match[str]) -> int:
        return self._emit(match.start(), match.end(), "{" + match.group(_ID) + "}")

    def _script(self, match: re.Match[str]) -> int | None:
        """Drop a block of imports and exports: up to the first blank line at which all its brackets are closed."""
        start = match.start()
        follows = start == self.plain_from or self._starts_line(start - 1)
        if not follows or not _IMPORT_EXPORT.match(self.text, start):
            return None
        end = self._script_end(start)
        self.constants.update((m[1], m[2].strip("'\"`")) for m in _CONSTANT.finditer(self.text, start, end))
        return self._emit(start, end)

    def _script_end(self, start: int) -> int:
        depth, first = 0, None
        limit = self.unwrapped[0] if start < self.unwrapped[0] else len(self.text)
        for token in () if self.scripts_unclosed else _SCRIPT_TOKEN.finditer(self.text, start, limit):
            kind = token.lastgroup
            if kind == "blank":
                if depth <= 0:
                    return token.start()
                first = first or token.start()
            elif kind:
                depth += 1 if kind == "open" else -1
        if not self.scripts_unclosed and depth <= 0:
            return limit
        self.scripts_unclosed = True
        blank = _BLANK_LINE.search(self.text, start, limit)
        return first or (blank.start() if blank else limit)

    def _code_span(self, match: re.Match[str]) -> int:
        """Emit a code span; its end is the next run of as many backticks in the same paragraph."""
        start, length = match.start(), len(match.group())
        if self.ticks is None:
            self.ticks = _backtick_runs(self.text)
        places = self.ticks.get(length, [])
        while places and places[-1] <= start:
            places.pop()
        end = places[-1] if places else None
        if end is None or self._spans_paragraphs(start, end):
            return start + length
        return self._emit(start, end + length, Code(self.text[start : end + length]))

    def _comment(self, match: re.Match[str]) -> int:
        start = match.start()
        end = -1 if self.comments_unclosed else self.text.find("-->", start)
        self.comments_unclosed = end < 0
        return self._literal(start) if end < 0 else self._emit(start, end + 3)

    def _opener(self, match: re.Match[str]) -> int | None:
        start = match.start()
        return self._expression(start) if self.text[start] == "{" else self._tag(start)

    def _expression(self, start: int) -> int | None:
        end = self._closing_brace(start)
        if end is None:
            return None
        # In the middle of a line, a brace that closes paragraphs later was none of JavaScript's.
        if self._spans_paragraphs(start, end) and not self._starts_line(start):
            return None
        return self._emit(start, end + 1, Expression(self.text[start + 1 : end].strip()))

    def _tag(self, start: int) -> int | None:
        name = _TAG_NAME.match(self.text, start)
        if not name:
            return None
        position, attributes = name.end(), dict[str, str]()
        while match := _ATTRIBUTE.match(self.text, position):
            position = match.end()
            if match.group(1) is not None:
                empty = bool(match.group(1)) or name.group(2) in _VOID
                raw = self.text[start:position]
                return self._emit(start, position, Tag(name.group(2), attributes, bool(name.group(1)), empty, raw))
            value = match.group(3) or match.group(4) or match.group(5) or ""
            if self.text.startswith("{", position) and not value:
                brace = self._closing_brace(position)
                if brace is None:
                    break
                value, position = self.text[position : brace + 1], brace + 1
            if match.group(2):
                attributes.setdefault(match.group(2), value)
        return self._literal(start)

    def _closing_brace(self, start: int) -> int | None:
        """Return where the brace at `start` is closed; None if nowhere."""
        if start < self.scanned:
            return self.braces.get(start)
        open_braces = [start]
        for token in _BRACE_TOKEN.finditer(self.text, start + 1):
            if token.lastgroup == "open":
                open_braces.append(token.start())
            elif token.lastgroup == "close":
                self.braces[open_braces.pop()] = token.start()
                if not open_braces:
                    self.scanned = token.end()
                    return token.start()
        self.scanned = len(self.text)
        return None

    def _spans_paragraphs(self, start: int, end: int) -> bool:
        # Asked from the left to the right, so the next blank line is looked for once.
        if self.blank < start:
            blank = _BLANK_LINE.search(self.text, start)
            self.blank = blank.start() if blank else len(self.text)
        return self.blank < end

    def _starts_line(self, position: int) -> bool:
        before = position - 1
        while before >= 0 and self.text[before] in " \t":
            before -= 1
        return before < 0 or self.text[before] == "\n"


#: Each returns the position to go on at, None if the match is text.
_HANDLERS: dict[int, Callable[[_Tokenizer, re.Match[str]], int | None]] = {
    _FENCE: _Tokenizer._fence,
    _ID: _Tokenizer._heading_id,
    _SCRIPT: _Tokenizer._script,
    _TICKS: _Tokenizer._code_span,
    _COMMENT: _Tokenizer._comment,
    _OPENER: _Tokenizer._opener,
}


def _backtick_runs(text: str) -> dict[int, list[int]]:
    """Return where runs of backticks start, by their length, the last first."""
    starts: dict[int, list[int]] = {}
    for run in re.finditer("`+", text):
        starts.setdefault(len(run.group()), []).append(run.start())
    for places in starts.values():
        places.reverse()
    return starts


def plain_value(source: str, constants: Mapping[str, str]) -> str | None:
    """Return the value of an expression; None unless it is a string, a known constant or a template."""
    if source in constants:
        return constants[source]
    if len(source) > 1 and source[0] == source[-1] and source[0] in "'\"`":
        text = source[1:-1]
        if source[0] == "`":
            text = _HOLE.sub(lambda hole: constants.get(hole[1].strip(), ""), text)
        return _ESCAPED.sub(lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), text)
    return None


_HOLE = re.compile(r"\$\{([^{}]*)\}")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
