"""Removes links, images and HTML from a text unless they lead where the passages lead.

This is no parser, because no two renderers agree. A text that any of them could take for a link is treated as one, and
the rest never joins to another link. Fenced code is kept, and so is a code span without a foreign address.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from chapterverse_api.ext.check.links.known_text import KnownText

#: Characters after which a bracket or a tag that is still open counts as text.
_MAX_OPEN_CHARS = 600

_BLANK = re.compile(r"\n[ \t]*\n")
_PLAIN = re.compile(r"[^`\[\]<!(:\n]+")
# A code span: the same number of backticks on both sides, in one line.
_MAX_TICKS = 5
_SPAN = re.compile(rf"(`+)(?!`)[^\n]{{0,{_MAX_OPEN_CHARS}}}?(?<!`)\1(?!`)")
_FENCE_MARK = re.compile(r" {0,5}(`{3,}(?=[^`\n]*(?:\n|\Z))|~{3,})")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)]) ")
_PREFIX = re.compile(r"[\s>*+\-\d.)#]*\Z")
_LABEL = re.compile(r"\[[^\[\]\n]{0,200}\]")
_DEFINITION = re.compile(r"""\]:[ \t]*+(?:\n[ \t]*+)?(?:<[^<>\n]*>|[^\s<]\S*)[ \t]*(?:["'(][^\n]*)?(?=\n|\Z)""")
_TITLE = re.compile(r"""(?<!\s)\s++(?:"[^"]*"|'[^']*'|\([^()]*\))\s*\Z""")
# Code that the passages don't hold, and that a renderer which doesn't see the code would make a link or an image of.
_IMAGE = r"!(?=\[[^\[\]\n]*\][(\[])|<(?:img|a|iframe|script)\b[^<>`\n]*>?"
_SPAN_MARKUP = re.compile(rf"{_IMAGE}|\]\([^()\n]*[/#:.\\%&][^()\n]*\)?", re.IGNORECASE)
_FENCE_MARKUP = re.compile(rf"{_IMAGE}|\]\(\s*(?:[/#.<\\]|[a-z][a-z0-9+.-]*[:&%])[^()\n]*\)?", re.IGNORECASE)
_TITLE_MARKUP = re.compile(rf"{_IMAGE}|\]\([^()\n]*\)?|<[^<>\n]*>", re.IGNORECASE)
_AUTOLINK = re.compile(r"[a-z][a-z0-9+.-]{1,31}:[^\s<>]*|[\w.+-]+@[\w.-]+", re.IGNORECASE)
_TAG = re.compile(r"<([^<>]*)>")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_ALT = re.compile(r"""\salt\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.IGNORECASE)
# A target that leads out of the page.
_ABSOLUTE = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)

#: Elements of HTML: any other name, as in `<name>`, is a placeholder and stays.
_ELEMENTS = frozenset(
    """
    a abbr address animate applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br
    button canvas center cite code col colgroup content data datalist dd del details dfn dialog dir div dl dt em embed
    fieldset figcaption figure font footer foreignobject form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr
    html i iframe image img input ins isindex kbd keygen label legend li link listing main map mark marquee math menu
    meta meter nav nobr noembed noframes noscript object ol optgroup option output p param picture plaintext portal pre
    progress q rp rt ruby s samp script search section select set shadow slot small source span strike strong style sub
    summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul use var video wbr xmp
    """.split()
)


class Piece(NamedTuple):
    """A part of a sentence, and whether it stands in code, where a renderer makes nothing of it."""

    text: str
    is_code: bool


@dataclass(slots=True)
class _Bracket:
    """An open bracket.

    Attributes:
        piece: its index among the kept pieces.
        start: its place in the sentence.
        is_image: whether "!" precedes it.
        is_first: whether only the marks of quotes, items and headings precede it in its line.
    """

    piece: int
    start: int
    is_image: bool
    is_first: bool


class MarkupFilter:
    """Takes links, images and HTML out of a text that comes sentence by sentence.

    Within a sentence, `_at` is the place that is read next and `_output` the text before it that may stay. `_opened`
    are the brackets in it without an end. `_cut` says that text was removed just before. From sentence to sentence only
    the line, the fence, its title and the list continue.
    """

    def __init__(self, known: KnownText) -> None:
        self._known = known
        self._line = self._last_character = self._fence = ""
        self._cut = self._image = self._in_title = self._in_list = False

    def filter(self, text: str) -> list[Piece]:
        """Return the next sentence without foreign markup. Of code only a fence continues from sentence to sentence."""
        self._text, self._at = text, 0
        self._output, self._opened = list[Piece](), list[_Bracket]()
        while self._at < len(self._text):
            self._step()
        return self._output

    def _step(self) -> None:
        """Keep or remove the next piece."""
        if self._in_title:
            self._read_title()
            return
        if self._opened and self._at - self._opened[0].start > _MAX_OPEN_CHARS:
            self._opened = []
        if not self._line and not self._opened and self._begin_fence():
            return
        sign = self._text[self._at]
        if self._cut and self._joins(sign):
            self._drop(self._at + 1)
        elif plain := _PLAIN.match(self._text, self._at):
            self._keep(plain.end())
        else:
            readers = {"\n": self._newline, "[": self._open, "`": self._backticks, "]": self._close, "<": self._angle}
            readers.get(sign, self._sign)()

    def _keep(self, end: int, *, is_code: bool = False) -> None:
        text = self._text[self._at : end]
        if text:
            self._output.append(Piece(text, is_code))
            self._line = (self._line + text)[:_MAX_OPEN_CHARS]
            self._last_character = text[-1]
            self._cut = False
        self._at = end

    def _drop(self, end: int) -> None:
        self._at = end
        self._cut = True

    def _joins(self, sign: str) -> bool:
        """Whether a character behind removed text would make markup with the text before it."""
        before = self._last_character
        return (
            (before == "]" and sign in "([:")
            or (before == "!" and sign == "[")
            or (before == "<" and (sign.isalpha() or sign in "/!?"))
        )

    def _begin_fence(self) -> bool:
        """Deal with fenced code at the beginning of a line."""
        rest = self._text[self._at : self._at + _MAX_OPEN_CHARS]
        if self._fence:
            return self._read_fenced_line()
        fence = _FENCE_MARK.match(self._text, self._at)
        if _ITEM.match(rest):
            self._in_list = True
        elif rest[0] not in " \n":
            self._in_list = False
        indent = len(rest) - len(rest.lstrip(" "))
        if fence and (indent <= 3 or self._in_list):
            self._fence = " " * indent + fence.group(1)
            self._in_title = True
            self._keep(fence.end())
            return True
        return False

    def _read_title(self) -> None:
        """Read the rest of a fence's first line as prose: some show it, and a backtick in it makes it no fence."""
        end = self._text.find("\n", self._at) + 1 or len(self._text)
        if self._fence.endswith("`") and "`" in self._text[self._at : end]:
            self._fence, self._in_title = "", False
            return
        self._read_code(_TITLE_MARKUP, end, is_code=False)
        if self._text.endswith("\n", 0, end):
            self._line, self._in_title = "", False

    def _read_fenced_line(self) -> bool:
        """Keep a line of code; a list item that ends takes its fence along."""
        end = self._text.find("\n", self._at) + 1 or len(self._text)
        line = self._text[self._at : end]
        mark = self._fence.strip()
        outside = self._in_list and self._fence[0] == " " and line.strip() and not line.startswith(" ")
        if outside:
            self._fence = ""
            return False
        self._read_code(_FENCE_MARKUP, end)
        self._line = ""
        if line.strip().startswith(mark) and not line.strip().strip(mark[0]):
            self._fence = ""
        return True

    def _newline(self) -> None:
        if not self._line.strip():
            self._opened = []
        self._keep(self._at + 1)
        self._line = ""

    def _backticks(self) -> None:
        """Keep a code span, which never goes on in the next line; no link in it that was not sent so."""
        end = self._at
        while end < len(self._text) and self._text[end] == "`":
            end += 1
        span = _SPAN.match(self._text, self._at) if end - self._at < _MAX_TICKS else None
        if span is None or self._line.endswith("\\"):
            self._keep(end)
        else:
            self._read_code(_SPAN_MARKUP, span.end())

    def _read_code(self, pattern: re.Pattern[str], end: int, *, is_code: bool = True) -> None:
        """Keep code, without the markup in it that neither the sources nor the site hold."""
        if pattern.search(self._text, self._at, end) and self._known.holds(self._text[self._at : end].strip("` \n")):
            self._keep(end, is_code=is_code)
        while self._at < end:
            markup = pattern.search(self._text, self._at, end)
            self._keep(markup.start() if markup else end, is_code=is_code)
            if markup:
                self._drop(markup.end())

    def _sign(self) -> None:
        self._image = self._text.startswith("![", self._at)
        (self._drop if self._image else self._keep)(self._at + 1)

    def _open(self) -> None:
        first = _PREFIX.match(self._line) is not None
        self._opened.append(_Bracket(len(self._output), self._at, self._image, first))
        self._image = False
        if len(self._opened) > 32:
            del self._opened[0]
        self._keep(self._at + 1)

    def _close(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        bracket = self._opened.pop() if self._opened else None
        find_end = {"(": self._target, "[": self._label, ":": self._definition}.get(following)
        end = find_end(bracket) if find_end else 0
        if not (end or (bracket and bracket.is_image)):
            self._keep(self._at + 1)
            return
        if bracket and end and following == ":":
            del self._output[bracket.piece :]
        elif bracket:
            self._output[bracket.piece] = Piece("", is_code=False)
        self._drop(end or self._at + 1)

    def _target(self, bracket: _Bracket | None) -> int:
        """Return the end of a link's target that must be removed; 0 if it may stay."""
        start = self._at + 2
        end = _find_close(self._text, start)
        if not end:
            # Nested deeper than any renderer follows, or never closed: everything that could be a target is removed.
            return start + self._window(start).find(")") + 1
        target = _TITLE.sub("", self._text[start : end - 1]).strip()
        target = target[1:-1] if target[:1] == "<" and target[-1:] == ">" else target
        image = bracket is not None and bracket.is_image
        return 0 if not image and _ABSOLUTE.match(target) and self._known.holds_address(target) else end

    def _label(self, bracket: _Bracket | None) -> int:
        """Return the end of the label of a link by reference; 0 if two brackets are something else."""
        label = _LABEL.match(self._text, self._at + 1)
        if label is None:
            return 0
        if bracket is None or bracket.is_image:
            return label.end()
        text = self._text[bracket.start + 1 : self._at]
        before = self._text[bracket.start - 1 : bracket.start]  # "" at the start.
        is_index = text.isdigit() or before.isalnum() or before in ("]", ")", "_") or text.startswith("^")
        return 0 if is_index or label.group()[1:-1].lstrip("-").isdigit() else label.end()

    def _definition(self, bracket: _Bracket | None) -> int:
        """Return the end of the definition of a reference; 0 if the colon belongs to a sentence."""
        if bracket is None or not bracket.is_first or self._text.startswith("[^", bracket.start):
            return 0
        window = self._window(self._at)
        definition = _DEFINITION.match(window)
        return self._at + definition.end() if definition else 0

    def _angle(self) -> None:
        """Keep or remove a possible tag or address in angle brackets."""
        following = self._text[self._at + 1 : self._at + 2]
        # Which the end of the text is too.
        if following in " \t\n=-<0123456789":
            self._keep(self._at + 1)
        elif following.isalpha() or following in "/!?_":
            self._tag()
        else:
            self._drop(self._at + 1)

    def _tag(self) -> None:
        tag = _TAG.match(self._window(self._at))
        inner = tag.group(1) if tag else ""
        end = self._at + (tag.end() if tag else 1)
        if tag and _AUTOLINK.fullmatch(inner):
            (self._keep if self._known.holds_address(inner) else self._drop)(end)
            return
        name = _NAME.match(self._text, self._at + 1)
        element = name is not None and name.group().lower() in _ELEMENTS
        placeholder = tag is None or not re.search(r"[=:/\\\"'`]", inner)
        if name is not None and not element and placeholder:
            self._keep(self._at + 1)
            return
        alt = _ALT.search(inner) if element else None
        if alt:
            start, stop = alt.span(1) if alt.group(1) is not None else alt.span(2)
            start, stop = self._at + 1 + start, self._at + 1 + stop
            self._drop(start)
            self._keep(stop)
        self._drop(end)

    def _window(self, start: int) -> str:
        """Return the text for a decision: the rest of the paragraph, up to a bound."""
        text = self._text[start : start + _MAX_OPEN_CHARS]
        blank = _BLANK.search(text)
        return text[: blank.start()] if blank else text


def _find_close(text: str, at: int) -> int:
    """Return the place behind the parenthesis that closes a target; 0 if none does in this paragraph."""
    depth = 0
    for sign in re.compile(r"\\[()]|[()]|\n[ \t]*\n").finditer(text, at, at + _MAX_OPEN_CHARS):
        if sign.group() == ")":
            if not depth:
                return sign.end()
            depth -= 1
        elif sign.group() == "(":
            depth += 1
        elif sign.group()[0] == "\n":
            break
    return 0
