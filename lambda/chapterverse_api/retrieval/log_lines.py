"""Recognizes what a pasted log line says of one machine alone: values, times, ids, paths and stack frames.

The docs hold the words of a message, and never its numbers, so these must not count against a section.
"""

from __future__ import annotations

import re
from collections.abc import Callable

# A frame of Python, of the JVM and JavaScript, of Go and Rust.
_FRAME = (
    r"File \"[^\"\n]{1,200}\", line \d+(?:, in \S+)?|\bat \S{1,200} ?\([^()\n]{0,200}\)|\S{1,200}\.\w{1,5}:\d+(?::\d+)?"
)
_PAIR = r"\b[\w.-]{1,60}=(?:\"[^\"\n]{0,200}\"|'[^'\n]{0,200}'|[^\s,;\"']{1,200})"
_TIME = r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d\S{0,20})?|\b\d\d:\d\d:\d\d\S{0,10}"
_ID = r"\b0x[0-9a-fA-F]{4,}\b|\b(?=[a-f-]{0,20}\d)[0-9a-f]{8,}(?:-[0-9a-f]{4,}){0,4}\b"
_PATH = r"(?<![\w/])(?:[A-Za-z]:|~|\.{1,2})?(?:[/\\][\w.@-]{1,100}){2,}"
_NUMBER = r"(?<![\w.-])\d[\d.,]{0,20}(?:[kKMG]i?B|ms|[smhd%])?(?![\w-])"
_DETAIL = re.compile(f"{_FRAME}|{_PAIR}|{_TIME}|{_ID}|{_PATH}")
_DETAIL_OR_NUMBER = re.compile(f"{_DETAIL.pattern}|{_NUMBER}")


def drop_details(text: str, keep: Callable[[str], str]) -> str:
    """Return a text in which each detail of a log line is replaced by what `keep` returns of it.

    A number is one only beside another detail: a question may well ask for version 2.
    """
    return _DETAIL_OR_NUMBER.sub(lambda detail: f" {keep(detail.group())} ", text) if _DETAIL.search(text) else text
