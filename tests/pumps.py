"""Makes strings that slow a regular expression down, from the expression itself.

A backtracking engine is slow where it tries one stretch of text again and again: from each start (`[^x]*y` on a text of
"a"), by each way to divide it (`\\s*\\s*y`), or both. Such a text repeats something that a part of the pattern matches.
So a pump is `lead + unit * n + tail`: the lead gets the engine to a repeat, the unit keeps it there, the tail fails it.
"""

from __future__ import annotations

import gc
import heapq
import itertools
import math
import re
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from re import _constants, _parser  # type: ignore[attr-defined]
from types import FrameType
from typing import Any

#: A character that patterns rarely name, a line end and a word.
TAILS = ("\x01", "\n", " a")
#: What a class like `\\w` or `.` may match, the likeliest first.
COMMON = "a0 \n_-.A\t<é中\u0301"

REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)

#: Units of pairs are made of so many characters, and so many leads and units of the pattern's parts are tried.
PAIRED, MOST_LEADS, MOST_UNITS = 9, 8, 40

#: Screening: characters, nanoseconds a character that few linear patterns need, and the growth of ten times the text
#: that a part of n² has which makes n^1.3 of 20 to 80 kB.
SCREEN_CHARS, SCREEN_NS, SCREEN_GROWTH = 4_000, 400, 11.5
#: Pumps of a pattern whose growth is measured: those with which a short text takes longest.
MOST_MEASURED = 40
#: The exponent that is allowed, one that no busy machine pretends, and how often it may pretend others.
MOST_GROWTH, CERTAIN_GROWTH, TRIES = 1.3, 1.7, 20
#: Seconds below which the machine's other work is most of what is measured.
FLOOR = 0.002

Work = Callable[[str], object]
#: An operation of a parsed pattern and its argument. Neither has a public type.
Node = tuple[Any, Any]


@dataclass(frozen=True, slots=True)
class Pump:
    """A text of any length."""

    lead: str
    unit: str
    tail: str

    def text(self, chars: int) -> str:
        """Return about so many characters."""
        return self.lead + self.unit * (max(chars - len(self.lead), 0) // len(self.unit) + 1) + self.tail


class Parts:
    """The parts of a parsed pattern: its characters, and strings that its beginnings and repeats match."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.tree = _parser.parse(pattern, flags)
        self.ignore_case = bool(flags & re.IGNORECASE)
        named = [chr(value) for op, value in _nodes(self.tree) if op is _constants.LITERAL]
        atoms = [node for node in _nodes(self.tree) if _is_atom(node)]
        chars = dict.fromkeys([*named, *COMMON, *_ends_of_ranges(atoms)])
        #: Those first that most parts match: where two parts match one character, they divide a text in many ways.
        self.chars = sorted(chars, key=lambda c: -sum(_matches(node, c) for node in atoms))
        self.groups: dict[int, str] = {}
        self.leads: dict[str, None] = {"": None}
        self.units: dict[str, None] = {}
        for rank in range(3):
            self.rank = rank
            self._sequence(self.tree, "")

    def _sequence(self, items: Any, lead: str) -> str:
        """Return a string that a sequence matches; note the lead of each repeat and all that may be repeated."""
        text = ""
        for op, value in items:
            text += self._item(op, value, lead + text)
            if text:
                self.units[text] = None
        return text

    def _item(self, op: Any, value: Any, lead: str) -> str:
        if _is_atom((op, value)):
            return self._atom((op, value))
        if op in REPEATS:
            low, high, body = value
            return self._repeat(low, high, body, lead)
        if op is _constants.SUBPATTERN:
            group, _, _, body = value
            text = self._sequence(body, lead)
            self.groups[group] = text
            return text
        if op is _constants.BRANCH:
            texts = [self._sequence(branch, lead) for branch in value[1]]
            return texts[self.rank % len(texts)]
        if op is _constants.ATOMIC_GROUP:
            return self._sequence(value, lead)
        if op in LOOKS:
            # What must not follow may be repeated as well.
            self._sequence(value[1], lead)
            return ""
        if op is _constants.GROUPREF:
            return self.groups.get(value, "")
        return ""

    def _repeat(self, low: int, high: Any, body: Any, lead: str) -> str:
        text = self._sequence(body, lead)
        if high is _constants.MAXREPEAT or high > 1:
            self.leads[lead] = None
            if text:
                self.units[text] = None
        return text * min(max(low, 1), 40)

    def _atom(self, node: Node) -> str:
        if node[0] is _constants.LITERAL:
            return chr(node[1])
        fit = [c for c in self.chars if _matches(node, c)]
        return fit[self.rank % len(fit)] if fit else ""


def pumps(pattern: str, flags: int = 0) -> Iterator[Pump]:
    """Yield the pumps of a pattern."""
    parts = Parts(pattern, flags)
    leads = list(parts.leads)[:MOST_LEADS]
    own = list(dict.fromkeys([*sorted(parts.units, key=len)[:MOST_UNITS], *parts.chars]))
    pairs = ["".join(pair) for pair in itertools.permutations(parts.chars[:PAIRED], 2)]
    for lead, unit, tail in itertools.product(leads, own, TAILS):
        yield Pump(lead, unit, tail)
    # A long stretch of one and then its end, again and again: "a a a", "[[[".
    for lead, unit in itertools.product(leads[:3], pairs):
        yield Pump(lead, unit, TAILS[0])


def _nodes(tree: Any) -> Iterator[Node]:
    """Yield every operation and its argument."""
    if isinstance(tree, _parser.SubPattern):
        tree = tree.data
    if isinstance(tree, tuple) and len(tree) == 2 and isinstance(tree[0], int) and hasattr(tree[0], "name"):
        yield tree
    if isinstance(tree, (list, tuple)):
        for item in tree:
            yield from _nodes(item)


def _is_atom(node: Node) -> bool:
    return node[0] in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)


def _ends_of_ranges(atoms: list[Node]) -> Iterator[str]:
    for op, value in atoms:
        if op is _constants.IN:
            yield from (chr(item[1][0]) for item in value if item[0] is _constants.RANGE)


def _matches(node: Node, char: str) -> bool:
    op, value = node
    if op is _constants.LITERAL:
        return bool(ord(char) == value)
    if op is _constants.NOT_LITERAL:
        return bool(ord(char) != value)
    if op is _constants.ANY:
        return char != "\n"
    negated = value[0][0] is _constants.NEGATE
    return negated is not any(_is_in(item, char) for item in value)


CATEGORIES = {
    _constants.CATEGORY_DIGIT: r"\d",
    _constants.CATEGORY_NOT_DIGIT: r"\D",
    _constants.CATEGORY_SPACE: r"\s",
    _constants.CATEGORY_NOT_SPACE: r"\S",
    _constants.CATEGORY_WORD: r"\w",
    _constants.CATEGORY_NOT_WORD: r"\W",
}


def _is_in(item: Node, char: str) -> bool:
    op, value = item
    if op is _constants.LITERAL:
        return bool(ord(char) == value)
    if op is _constants.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    if op is _constants.CATEGORY:
        return re.match(CATEGORIES[value], char) is not None
    return False


class TooSlow(Exception):
    """A match took longer than its limit."""


def processor_seconds(work: Work, text: str, limit: float = 20.0) -> float:
    """Return the processor time of `work(text)`; raise `TooSlow` past `limit` seconds of it."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise TooSlow

    # A running match asks for signals, so that this stops it. The timer makes the time of a process inexact on Linux.
    # The test has one thread.
    before = signal.signal(signal.SIGVTALRM, stop)
    gc.disable()
    signal.setitimer(signal.ITIMER_VIRTUAL, limit)
    started = time.thread_time()
    try:
        work(text)
        return time.thread_time() - started
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
        signal.signal(signal.SIGVTALRM, before)


def slowest(work: Work, pumps: Iterable[Pump]) -> Iterator[Pump]:
    """Yield the pumps with which a short text takes longest, of those with which it is slow at all.

    A part of n² is largest where the time is, so few of them need the longer texts of `growth`. One that is slower than
    all before it comes at once: where it is a bomb, no other one has to be tried.
    """
    slow: dict[Pump, float] = {}
    longest = SCREEN_NS * SCREEN_CHARS / 1e9
    for pump in pumps:
        seconds = _screen(work, pump)
        if seconds > longest:
            longest = seconds
            yield pump
        elif seconds * 1e9 > SCREEN_NS * SCREEN_CHARS:
            slow[pump] = seconds
    yield from heapq.nlargest(MOST_MEASURED, slow, key=slow.__getitem__)


def _screen(work: Work, pump: Pump) -> float:
    try:
        processor_seconds(work, pump.text(200), 0.2)
        return processor_seconds(work, pump.text(SCREEN_CHARS), 0.2)
    except TooSlow:
        return math.inf


def growth(work: Work, pump: Pump) -> float:
    """Return the exponent by which time grows from 20 to 80 kB of a pump, infinity where they take seconds."""
    try:
        processor_seconds(work, pump.text(200), 0.2)
        first = processor_seconds(work, pump.text(SCREEN_CHARS), 0.2)
        if processor_seconds(work, pump.text(10 * SCREEN_CHARS), 2.0) < SCREEN_GROWTH * first:
            return 1.0
        short, long = pump.text(20_000), pump.text(80_000)
        least = most = math.inf
        for _ in range(TRIES):
            least = min(least, processor_seconds(work, short, 0.5))
            most = min(most, processor_seconds(work, long, 5.0))
            exponent = math.log(max(most, FLOOR) / max(least, FLOOR), len(long) / len(short))
            if not MOST_GROWTH < exponent < CERTAIN_GROWTH:
                break
        return exponent
    except TooSlow:
        return math.inf
