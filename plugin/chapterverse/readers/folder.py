"""Lists the files of a folder, chooses among them, reads and decodes them; never leaves the folder's project.

What is no regular file of the project (see `chapterverse.project`) is never opened. A listing names it all the same,
and `read_page` says why it is not read, so that one such file costs no other.
"""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

from chapterverse.errors import InputError, UnreadablePage, UnsafePath
from chapterverse.project import is_outside

_DECLARED = re.compile(rb"""<meta\b[^>]{0,500}?\bcharset\s*=\s*["']?\s*([A-Za-z0-9_:.-]{1,40})""", re.IGNORECASE)
#: Bytes within which the HTML standard wants the declaration.
_PROLOG_BYTES = 1024

#: Encodings of the web (WHATWG) by Python's names; Python has others, which a browser would not take from a page.
_WEB_ENCODINGS = frozenset(
    "big5 cp866 cp874 cp932 cp949 cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 euc_jp euc_kr gb18030"
    " gb2312 gbk iso2022_jp iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8 iso8859-10 iso8859-13"
    " iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman shift_jis".split()
)
#: Browsers read these as their larger relatives.
_RELATIVES = {"iso8859-1": "cp1252", "ascii": "cp1252", "gb2312": "gbk", "shift_jis": "cp932", "euc_kr": "cp949"}
#: A text has fewer than one NUL in so many bytes.
_NUL_RATIO = 20
#: Bytes of a file that is read.
MAX_FILE_BYTES = 50_000_000
#: A page's path is its identity in the ledger, whose column is this wide.
_MAX_PATH_CHARS = 512
_SKIPPED_FOLDERS = frozenset(("node_modules", "_static", "_sources", "_modules"))

# Not every platform has these; where it lacks them, the check of the opened file still holds.
_OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, f, 0) for f in ("O_CLOEXEC", "O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))


@dataclass(slots=True)
class Listing:
    """Files below a folder, `/`-separated relative paths in sorted order, and why some of them are missing."""

    files: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def list_files(
    folder: Path, suffixes: tuple[str, ...], without: Collection[str] = (), *, folders_too: bool = False
) -> Listing:
    """Return the files whose names end so, in all folders but hidden ones and those that tools fill.

    What can't be read is listed too, and `read_page` says why. A link to a folder is not followed, so that no page has
    two names.

    Args:
        without: paths that are as if they weren't there.
        folders_too: whether a folder whose name ends so is listed, for `read_page` to reject it.

    Raises:
        InputError: `folder` is no folder, or one below it can't be read.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder.")
    listing = Listing()
    root = os.path.realpath(folder)
    folders = [""]
    while folders:
        inside = folders.pop()
        for entry in _entries(root, inside):
            path = f"{inside}{entry.name}"
            if path in without:
                continue
            is_page, is_folder = entry.name.lower().endswith(suffixes), _is_folder(entry)
            if is_folder and entry.is_symlink():
                listing.warnings.append(_explain_folder_link(root, path))
            elif is_folder and not entry.name.startswith(".") and entry.name not in _SKIPPED_FOLDERS:
                folders.append(f"{path}/")
            if is_page and (folders_too or not is_folder):
                _add(path, listing)
    listing.files.sort()
    return listing


def read_page(folder: Path, path: str, display_name: str = "") -> bytes:
    """Return the bytes of a listed file.

    Args:
        display_name: the name of the file in messages, `path` by default.

    Raises:
        UnsafePath: it isn't, or no longer, a regular file of the folder or its project.
        UnreadablePage: it can't be opened, or is larger than `MAX_FILE_BYTES`.
    """
    display_name = display_name or path
    real = _resolve(folder, path)
    if is_outside(real, folder):
        raise UnsafePath(f"{display_name} leads out of the project, so it is not read: put the file there.")
    try:
        with open(os.open(real, _OPEN_FLAGS), "rb") as file:  # noqa: PTH123 (flags need a descriptor)
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UnsafePath(_SPECIAL.format(display_name))
            # Asked for 50 MB, Python would allocate them for each page; a file that has just grown is read on.
            content = file.read(min(status.st_size, MAX_FILE_BYTES) + 1)
            if len(content) > status.st_size:
                content += file.read(MAX_FILE_BYTES + 1 - len(content))
    except OSError as error:
        raise _unreadable(display_name, error, is_link=os.path.islink(os.path.join(folder, path))) from None  # noqa: PTH114, PTH118
    if len(content) > MAX_FILE_BYTES:
        raise UnreadablePage(f"{display_name} is larger than {MAX_FILE_BYTES // 1_000_000} MB, too large for a page.")
    return content


def _unreadable(display_name: str, error: OSError, *, is_link: bool) -> InputError:
    if error.errno == errno.ELOOP:
        return UnsafePath(f"{display_name} is a link that leads in a circle: remove it.")
    if error.errno == errno.ENOENT and is_link:
        return UnreadablePage(f"{display_name} is a link that leads nowhere: remove it.")
    # A socket can't even be opened.
    if error.errno in (errno.ENXIO, errno.EISDIR):
        return UnsafePath(_SPECIAL.format(display_name))
    return UnreadablePage(f"{display_name} can't be read: {error.strerror}.")


def real_path(folder: str | Path, path: str) -> str:
    """Return where a path of a folder leads that a server publishes or that is written.

    Raises:
        UnsafePath: out of the folder, be it into the project.
    """
    root = os.path.realpath(folder)
    real = _resolve(root, path)
    if real != root and not real.startswith(root.rstrip(os.sep) + os.sep):
        raise UnsafePath(f"{path} is a link that leads out of its folder: remove it.")
    return real


def _resolve(root: str | Path, path: str) -> str:
    return os.path.realpath(os.path.join(root, path))  # noqa: PTH118 (a Path would lose a trailing dot or space)


_SPECIAL = "{} is a pipe, a device or something else that is no regular file: remove it."


def _entries(root: str, inside: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(os.path.join(root, inside)) as entries:  # noqa: PTH118
            yield from entries
    except OSError as error:
        # Its pages would count as deleted, and leave the index.
        raise InputError(f"The folder {inside or '.'} can't be read: {error.strerror}.") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link in a circle.
        return False


def _explain_folder_link(root: str, path: str) -> str:
    try:
        real_path(root, path)
    except UnsafePath:
        return f"{path} is a link to a folder outside, whose pages are not read: move the folder here."
    return f"{path} is a link to a folder; its pages are read in the folder it leads to."


def _add(path: str, listing: Listing) -> None:
    if len(path) > _MAX_PATH_CHARS:
        listing.warnings.append(f"{path[:60]}… is skipped: its path is longer than {_MAX_PATH_CHARS} characters.")
    elif not path.isprintable():
        listing.warnings.append(f"{path!a} is skipped: its name holds characters that can't stand in an address.")
    else:
        listing.files.append(path)


def declared_charset(content: bytes) -> str:
    """Return Python's name of the encoding that a page declares; "" if it declares none that browsers know."""
    match = _DECLARED.search(content[:_PROLOG_BYTES])
    return web_charset(match.group(1).decode()) if match else ""


def web_charset(label: str) -> str:
    """Return Python's name of an encoding by its label; "" for UTF-8 and for one that browsers don't know."""
    try:
        name = codecs.lookup(label).name
    except (LookupError, ValueError):
        return ""
    name = _RELATIVES.get(name, name)
    return name if name in _WEB_ENCODINGS else ""


def decode_page(path: str, content: bytes) -> str:
    """Return a page's text, decoded from UTF-8 or from the encoding that an HTML page declares.

    A NUL byte becomes U+FFFD, as in CommonMark (see `nul_warning`).

    Raises:
        UnreadablePage: it is binary, or encoded in neither.
    """
    if is_binary(content):
        raise UnreadablePage(f"{path} is not a text file.")
    return _decode(path, content).replace("\0", "\ufffd")


def is_binary(content: bytes) -> bool:
    """Whether a file is no text: more than one byte in twenty is NUL. A text has a few of them by mistake."""
    return 0 in content and content.count(0) * _NUL_RATIO > len(content)


def nul_warning(path: str, content: bytes) -> str:
    """Return a sentence about the NUL bytes of a text, "" if it has none."""
    if 0 not in content:
        return ""
    return f"{path} holds {content.count(0):,} NUL bytes, which are read as U+FFFD: remove them."


def _decode(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        declared = declared_charset(content) if path.lower().endswith((".html", ".htm")) else ""
    try:
        if declared:
            return content.decode(declared)
    except UnicodeDecodeError:
        raise UnreadablePage(f"{path} is encoded neither in UTF-8 nor in {declared}, as it says.") from None
    raise UnreadablePage(f"{path} is not encoded in UTF-8.")


@dataclass(frozen=True, slots=True)
class PageGlobs:
    """Patterns in the style of .gitignore.

    A page has up to two paths: of its source, below the folder of sources, and of the built page, below the site. A
    pattern holds for a page if it matches one of them; of several that match, the last one counts.

    Attributes:
        include: listings to index all the same (see `page_kinds`).
        exclude: pages to leave out.
    """

    include: GitIgnoreSpec
    exclude: GitIgnoreSpec

    @classmethod
    def of(cls, *, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> PageGlobs:
        return cls(GitIgnoreSpec.from_lines(include), GitIgnoreSpec.from_lines(exclude))

    def excludes(self, *paths: str) -> bool:
        return _last_match(self.exclude, paths)

    def includes(self, *paths: str) -> bool:
        return _last_match(self.include, paths)


def _last_match(spec: GitIgnoreSpec, paths: Iterable[str]) -> bool:
    """Whether the last pattern that matches one of the paths takes it in."""
    if not len(spec):
        return False
    matches = ((check.index, check.include) for check in map(spec.check_file, paths) if check.index is not None)
    return bool(max(matches, default=(-1, False))[1])
