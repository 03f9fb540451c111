"""The embedded store: the Qdrant engine in process, one immutable folder a generation.

    ROOT/SITE/VERSION/head.json          names the live generation; replaced by one atomic rename
    ROOT/SITE/VERSION/publish.lock       locked by the one publisher
    ROOT/SITE/VERSION/GENERATION-TOKEN/  a sealed shard (see `chapterverse.store.shard`)
    ROOT/SITE/VERSION/*.new              the draft of a publisher; after a kill, the next publisher removes it

Readers only open folders that are never written again. A shard that is written while another process has it open blocks
or gets corrupted (measured). After an exception of the engine the state of a shard is unknown, so a publication works
on a copy and throws it away after any error.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Self

from chapterverse.errors import IndexCorrupt, IndexFault, IndexLocked, IndexMissing
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.project import make_folder
from chapterverse.settings import Settings
from chapterverse.store import (
    check_next,
    describe_damage,
    encode_head,
    files,
    folder_name,
    missing_error,
    parse_head_document,
)
from chapterverse.store.shard_publication import ShardPublication, open_live, translating_write_errors

# Opening a shard loads the engine; a build that changes nothing opens none.
if TYPE_CHECKING:
    from chapterverse.store.shard import Shard

_HEAD_FILE, _NEXT_HEAD = "head.json", "head.new"
_FOLDER_NAME = re.compile(r"[A-Za-z0-9_~%=@-]+")
_LOCK = "publish.lock"
#: Tries to get the lock, and seconds between them. A process that only looks (`is_publishing`) holds it for a moment.
_LOCK_TRIES, _LOCK_PAUSE_SECONDS = 10, 0.02


class EdgeStore:
    """All generations under one folder. Implements `chapterverse.store.Store`."""

    #: The kernel releases the lock of a process that is killed.
    lease_seconds = 0.0
    max_age = 0.0

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def from_settings(cls, _: Settings, place: str) -> Self:
        return cls(Path(place))

    @property
    def identity(self) -> str:
        return str(self.root)

    def heads(self) -> list[Head]:
        folders = (version for site in _folders(self.root) for version in _folders(site))
        return sorted((live[0] for live in map(_read_head, folders) if live), key=lambda h: h.scope)

    def head(self, scope: Scope) -> Head | None:
        live = _read_head(self._folder(scope))
        return live[0] if live else None

    def snapshot(self, scope: Scope) -> Shard:
        from chapterverse.store.shard import Shard

        def load(live: tuple[Head, str]) -> Shard:
            head, name = live
            return Shard.load(self._folder(scope) / name, head)

        return open_live(scope, lambda: self._live(scope), load)

    def is_complete(self, scope: Scope) -> bool:
        try:
            folder = self._folder(scope) / self._live(scope)[1]
            files.Manifest.load(folder).check(folder)
        except IndexMissing:
            return True
        except (IndexCorrupt, FileNotFoundError, NotADirectoryError, ValueError, TypeError):
            return False
        except OSError as error:
            reason = error.strerror
            raise IndexFault(f"The index in {self.root} can't be read ({reason}): nothing was changed.") from error
        return True

    def is_publishing(self, scope: Scope) -> bool:
        try:
            with (self._folder(scope) / _LOCK).open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except OSError:
            return False

    @contextlib.contextmanager
    def publish(self, scope: Scope, embedder: EmbedderCard) -> Iterator[EdgePublication]:
        folder = self._folder(scope)
        with contextlib.ExitStack() as lock:
            with translating_write_errors(folder):
                make_folder(folder)
                lock.enter_context(_lock(folder / _LOCK, scope))
                live = folder / _live_name(folder)
                newest = _generations(folder).get(live, 0)
                # A kill after the rename and before the change of the head leaves a generation that no head names.
                _clear(folder, lambda path, number: path != live and number >= newest)
            publication = EdgePublication(folder, self._previous(scope), embedder)
            try:
                yield publication
            finally:
                publication.discard()

    def unpublish(self, scope: Scope) -> None:
        folder = self._folder(scope)
        if not (folder / _HEAD_FILE).exists():
            return
        with translating_write_errors(folder), _lock(folder / _LOCK, scope):
            (folder / _HEAD_FILE).unlink(missing_ok=True)
            files.sync_path(folder)
        self.sweep(scope)

    def sweep(self, scope: Scope) -> int:
        folder = self._folder(scope)
        if not folder.is_dir():
            return 0
        with translating_write_errors(folder), _lock(folder / _LOCK, scope):
            # This fails if the head is damaged, because it is then unknown which folders it reaches.
            _, live = _read_head(folder) or (None, "")
            return _clear(folder, lambda path, _: path.name != live)

    def _previous(self, scope: Scope) -> Shard | None:
        # A damaged generation can only be replaced as a whole.
        with contextlib.suppress(IndexMissing, IndexCorrupt):
            return self.snapshot(scope)
        return None

    def _live(self, scope: Scope) -> tuple[Head, str]:
        if live := _read_head(self._folder(scope)):
            return live
        raise missing_error(scope)

    def _folder(self, scope: Scope) -> Path:
        return self.root / folder_name(scope.site) / folder_name(scope.version)


def _folders(folder: Path) -> list[Path]:
    """Return the folders that may be those of sites or versions.

    Raises:
        IndexFault: the system doesn't allow listing them.
    """
    try:
        return [path for path in folder.iterdir() if is_folder_name(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise _unreadable_error(folder, error) from error


class EdgePublication(ShardPublication):
    """A private copy of the live shard, until `commit` makes it live. Implements `chapterverse.store.Publication`."""

    def __init__(self, folder: Path, previous: Shard | None, embedder: EmbedderCard) -> None:
        self._folder = folder
        self._token = secrets.token_hex(6)
        self._is_live = False
        super().__init__(folder / f"{self._token}.new", folder / _live_name(folder), previous, embedder)

    def renew(self) -> None:
        """Do nothing, because the lock lasts as long as this process."""

    def commit(self, head: Head) -> None:
        check_next(head, self.previous.head if self.previous else None)
        with translating_write_errors(self._folder):
            self._seal()
            files.sync(self._place)
            self._place = self._place.rename(self._folder / f"{head.generation:06d}-{self._token}")
            files.sync_path(self._folder)
            write_head(self._folder, head, self._place.name)
        self._is_live = True
        # Readers see the generation already, so an error here doesn't fail the publication.
        with contextlib.suppress(OSError):
            files.sync_path(self._folder)
            # A reader may just be opening the previous generation, so that one stays until the next publication.
            _clear(self._folder, lambda _, number: number not in {head.generation - 1, head.generation})

    def discard(self) -> None:
        """Throw the draft away, unless it is live."""
        self._close()
        # An interrupt may come after the head has changed and before `_is_live` is set.
        if not self._is_live and self._place.name != _live_name(self._folder):
            shutil.rmtree(self._place, ignore_errors=True)


def _generations(folder: Path) -> dict[Path, int]:
    """Return the numbers of the generations by their folders."""
    numbers = {path: path.name.partition("-")[0] for path in folder.iterdir() if path.is_dir()}
    return {path: int(number) for path, number in numbers.items() if number.isdecimal()}


def _clear(folder: Path, is_garbage: Callable[[Path, int], bool]) -> int:
    """Remove drafts and the generations that are garbage, by path and number; return how many items.

    The caller holds the lock, so no other process writes there.
    """
    garbage = [*folder.glob("*.new"), *(path for path, n in _generations(folder).items() if is_garbage(path, n))]
    for path in garbage:
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    return len(garbage)


@contextlib.contextmanager
def _lock(path: Path, scope: Scope) -> Iterator[None]:
    with path.open("w") as file:
        for tries_left in reversed(range(_LOCK_TRIES)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not tries_left:
                    raise IndexLocked(
                        f"Another process is publishing {scope} to {path.parent}: wait for it, then run again."
                    ) from None
                time.sleep(_LOCK_PAUSE_SECONDS)
        yield


def is_folder_name(name: str) -> bool:
    """Return whether a name may be one of `folder_name`. A volume's `lost+found` is not."""
    return _FOLDER_NAME.fullmatch(name) is not None


def _read_head(folder: Path) -> tuple[Head, str] | None:
    """Return the head of a scope and the name of its generation's folder; None if there is none.

    Raises:
        IndexMismatch: it is in a newer format.
        IndexCorrupt: it is damaged.
        IndexFault: the system doesn't allow reading it, so its content is unknown.
    """
    path = folder / _HEAD_FILE
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        raise IndexCorrupt(describe_damage(path)) from None
    except OSError as error:
        raise _unreadable_error(path, error) from error
    head, document = parse_head_document(raw, path)
    if not isinstance(document.get("folder"), str):
        raise IndexCorrupt(describe_damage(path))
    return head, document["folder"]


def _unreadable_error(path: Path, error: OSError) -> IndexFault:
    """Return the error of a file or folder that the system doesn't allow reading."""
    return IndexFault(f"{path} can't be read ({error.strerror}): see that this user may, and run again.")


def write_head(folder: Path, head: Head, name: str) -> None:
    """Replace the head. Readers see the generation from the last instruction on."""
    with (folder / _NEXT_HEAD).open("wb") as file:
        file.write(encode_head(head, folder=name))
        file.flush()
        os.fsync(file.fileno())
    (folder / _NEXT_HEAD).replace(folder / _HEAD_FILE)


def _live_name(folder: Path) -> str:
    """Return the name of the live generation's folder; "" without a head, or with a damaged one."""
    with contextlib.suppress(IndexCorrupt):
        return (_read_head(folder) or (None, ""))[1]
    return ""
