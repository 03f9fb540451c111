"""The steps by which a run reaches outside of the process, found by tracing it and not by a list.

Python tells a profile function each call of a function written in C before it happens: the system's (open, rename,
fsync …), the file's, SQLite's, the socket's and the engine's. Each that is not known to look only is a *step*, so a new
call in the store, wherever it stands, is a new step that the tests kill at.
"""

from __future__ import annotations

import builtins
import errno
import functools
import os
import signal
import sqlite3
import sys
import threading
from dataclasses import dataclass
from enum import StrEnum
from types import BuiltinMethodType, FrameType, NoneType
from typing import Any

#: Modules of functions and types that reach outside of the process.
_OUTSIDE = {
    "_io", "_socket", "_sqlite3", "_ssl", "fcntl", "io", "mmap", "nt", "posix", "select", "socket", "sqlite3", "ssl",
}  # fmt: skip
#: Packages of compiled calls that no profile function is told of: there the calls from our own code count.
_COMPILED = {"psycopg"}
#: What only looks, or changes nothing but a position or a handle.
_LOOKS = {
    "DirEntry.is_dir", "DirEntry.is_file", "DirEntry.is_symlink", "DirEntry.stat", "ScandirIterator.__exit__",
    "ScandirIterator.close", "access", "cpu_count", "fspath", "fsdecode", "fsencode", "fstat", "get_terminal_size",
    "getcwd", "getpid", "open_code", "register_at_fork", "listdir", "lseek", "lstat", "readlink", "scandir", "stat",
    "statvfs", "text_encoding", "urandom", "BytesIO", "BytesIO.getvalue", "BytesIO.read", "BytesIO.seek",
    "BytesIO.tell", "BytesIO.write", "StringIO", "StringIO.getvalue", "StringIO.write", "FileIO.fileno",
    "FileIO.read", "FileIO.seek", "FileIO.isatty", "BufferedReader.read", "BufferedReader.__exit__",
    "TextIOWrapper.read", "TextIOWrapper.fileno", "Connection.cursor", "Cursor.fetchone", "Cursor.fetchall",
    "Cursor.close", "EdgeShard.count", "EdgeShard.facet", "EdgeShard.query", "EdgeShard.retrieve",
    "EdgeShard.scroll", "socket.fileno", "socket.getsockname", "socket.gettimeout", "socket.settimeout",
    "socket.setsockopt", "inet_pton", "getaddrinfo", "poll", "poll.register",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """One call, and the function of ours that it was made for."""

    call: str
    place: str

    def __str__(self) -> str:
        return f"{self.call} for {self.place}"


class Strike(StrEnum):
    """What happens at a step."""

    KILL = "kill"
    FULL_DISK = "full disk"
    INTERRUPT = "interrupt"

    def fall(self, call: str) -> None:
        """Let it happen to the call of that name."""
        if self is Strike.KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if self is Strike.INTERRUPT:
            raise KeyboardInterrupt
        if call.startswith(("Connection.", "Cursor.")):
            raise sqlite3.OperationalError("database or disk is full")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


class Watch:
    """Notices steps while it is entered, and strikes at number `stop`, counted from 1."""

    def __init__(self, stop: int = 0, strike: Strike = Strike.KILL) -> None:
        self.steps: list[Step] = []
        self._stop = stop
        self._strike = strike

    def __enter__(self) -> Watch:
        threading.setprofile(self._notice)
        sys.setprofile(self._notice)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _notice(self, frame: FrameType, event: str, called: Any) -> None:
        if event == "c_call":
            name = _c_call(called)
        elif event == "call":
            name = _library_call(frame)
        else:
            return
        if name is None:
            return
        self.steps.append(Step(name, _place(frame)))
        # What a profile function raises is raised where the call stands.
        if len(self.steps) == self._stop:
            self._strike.fall(name)


def _c_call(called: BuiltinMethodType) -> str | None:
    """Return a C function's name if calling it is a step."""
    owner = called.__self__ if isinstance(called.__self__, type) else type(called.__self__)
    return called.__qualname__ if _reaches_out(called.__module__, owner, called.__qualname__) else None


@functools.cache
def _reaches_out(module: str | None, owner: type, name: str) -> bool:
    return name not in _LOOKS and ((module or owner.__module__) in _OUTSIDE or _of_the_engine(module, owner, name))


def _of_the_engine(module: str | None, owner: type, name: str) -> bool:
    # Its types, written in Rust, claim to be built in, and its static methods belong to nothing.
    engine = sys.modules.get("qdrant_edge")
    kind = name.partition(".")[0] if owner is NoneType and module is None else owner.__name__
    return engine is not None and hasattr(engine, kind) and not hasattr(builtins, kind)


def _library_call(frame: FrameType) -> str | None:
    """Return a Python function's name if it is one of a compiled library's that our own code calls."""
    if _package(frame) not in _COMPILED or frame.f_back is None or _package(frame.f_back) != "chapterverse":
        return None
    return frame.f_code.co_qualname


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _place(frame: FrameType | None) -> str:
    while frame is not None:
        if _package(frame) == "chapterverse":
            return f"{frame.f_globals['__name__'].removeprefix('chapterverse.')}:{frame.f_code.co_qualname}"
        frame = frame.f_back
    return "nobody"
