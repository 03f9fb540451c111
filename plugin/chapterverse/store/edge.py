"""The embedded store: the Qdrant engine in process, one immutable folder a generation.

    ROOT/SITE/VERSION/head.json          names the live generation; replaced by one atomic rename
    ROOT/SITE/VERSION/publish.lock       held by the one publisher
    ROOT/SITE/VERSION/GENERATION-TOKEN/  a sealed shard (see `chapterverse.store.shard`)
    ROOT/SITE/VERSION/*.new              what a publisher works on; after a kill, what the next one sweeps away

Readers only open folders that are never written again: a shard that is written while another process holds it open
blocks or gets corrupted (measured). After an exception of the engine the state of a shard is unknown, so a publication
works on a copy and throws it away after any error.
"""

from __future__ import annotations

import contextlib
import fcntl
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from chapterverse.errors import IndexCorrupt, IndexFault, IndexLocked, IndexMissing
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.store import files
from chapterverse.store.heads import (
    HEAD,
    check_next,
    folder_name,
    is_folder_name,
    live_name,
    missing_error,
    read_head,
    unreadable_error,
    write_head,
)
from chapterverse.store.shard_publication import ShardPublication, ShardSnapshot, open_live, writing

_LOCK = "publish.lock"
#: How long a lock may be held by somebody who only looks (`is_publishing`).
_LOCK_TRIES, _LOCK_PAUSE = 10, 0.02


class EdgeStore:
    """All generations under one folder. Implements `chapterverse.store.Store`."""

    #: The system frees the lock of a process that was killed.
    lease_seconds = 0.0
    max_age = 0.0

    def __init__(self, root: Path) -> None:
        self.root = root

    def heads(self) -> list[Head]:
        heads: list[Head] = []
        for folder in (version for site in _folders(self.root) for version in _folders(site)):
            with contextlib.suppress(IndexMissing):
                heads.append(read_head(folder / HEAD)[0])
        return sorted(heads, key=lambda h: h.scope)

    def head(self, scope: Scope) -> Head | None:
        with contextlib.suppress(IndexMissing):
            return self._live(scope)[0]
        return None

    def snapshot(self, scope: Scope) -> ShardSnapshot:
        from chapterverse.store.shard import Shard

        def load(live: tuple[Head, str]) -> ShardSnapshot:
            head, name = live
            return ShardSnapshot(head, Shard.load(self._folder(scope) / name, head.embedder.size))

        return open_live(scope, lambda: self._live(scope), load)

    def intact(self, scope: Scope) -> bool:
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
            with writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                lock.enter_context(_lock(folder / _LOCK, scope))
                _sweep(folder)
            publication = EdgePublication(folder, self._previous(scope), embedder)
            try:
                yield publication
            finally:
                publication.discard()

    def unpublish(self, scope: Scope) -> None:
        folder = self._folder(scope)
        if not (folder / HEAD).exists():
            return
        with writing(folder), _lock(folder / _LOCK, scope):
            (folder / HEAD).unlink(missing_ok=True)
            files.sync_folder(folder)
        self.sweep(scope)

    def sweep(self, scope: Scope) -> int:
        folder = self._folder(scope)
        if not folder.is_dir():
            return 0
        with writing(folder), _lock(folder / _LOCK, scope):
            # A damaged head doesn't tell which folders it reaches; `index` replaces it as a whole.
            live = folder / (read_head(folder / HEAD)[1] if (folder / HEAD).exists() else "")
            garbage = [path for path in (*_generations(folder), *folder.glob("*.new")) if path != live]
            for path in garbage:
                _remove(path)
            return len(garbage)

    def _previous(self, scope: Scope) -> ShardSnapshot | None:
        # What is damaged can't be continued, only replaced as a whole.
        with contextlib.suppress(IndexMissing, IndexCorrupt):
            return self.snapshot(scope)
        return None

    def _live(self, scope: Scope) -> tuple[Head, str]:
        try:
            return read_head(self._folder(scope) / HEAD)
        except IndexMissing:
            raise missing_error(scope) from None

    def _folder(self, scope: Scope) -> Path:
        return self.root / folder_name(scope.site) / folder_name(scope.version)


def _folders(folder: Path) -> list[Path]:
    """Return what may be folders of sites or versions. Raises `IndexFault` if the system doesn't allow listing them."""
    try:
        return [path for path in folder.iterdir() if is_folder_name(path.name)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable_error(folder, error) from error


class EdgePublication(ShardPublication):
    """A private copy of the live shard, until `commit` makes it the live one. Implements `store.Publication`."""

    def __init__(self, folder: Path, previous: ShardSnapshot | None, embedder: EmbedderCard) -> None:
        self._folder = folder
        self._token = secrets.token_hex(6)
        self._live_now = False
        super().__init__(folder / f"{self._token}.new", folder / live_name(folder), previous, embedder)

    def renew(self) -> None:
        """Do nothing: the lock holds as long as this process lives."""

    def commit(self, head: Head) -> None:
        check_next(head, self.previous.head if self.previous else None)
        with writing(self._folder):
            self._seal()
            files.sync(self._place)
            self._rename(f"{head.generation:06d}-{self._token}")
            write_head(self._folder, head, self._place.name)
        self._live_now = True
        # Readers see the generation already, so an error here doesn't fail the publication.
        with contextlib.suppress(OSError):
            files.sync_folder(self._folder)
        # A reader may just be opening the previous generation, so that one stays until the next publication.
        _retire(self._folder, {head.generation - 1, head.generation})

    def discard(self) -> None:
        """Throw the draft away, unless it went live."""
        self._close()
        # An interrupt may come between the head's move and our note of it.
        if not self._live_now and self._place.name != live_name(self._folder):
            shutil.rmtree(self._place, ignore_errors=True)

    def _rename(self, name: str) -> None:
        self._place = self._place.rename(self._folder / name)
        files.sync_folder(self._folder)


def _generations(folder: Path) -> dict[Path, int]:
    """Return the folders of generations with their numbers."""
    numbers = {path: path.name.partition("-")[0] for path in folder.iterdir() if path.is_dir()}
    return {path: int(number) for path, number in numbers.items() if number.isdecimal()}


def _retire(folder: Path, keep: set[int]) -> None:
    for path, number in _generations(folder).items():
        if number not in keep:
            shutil.rmtree(path, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove the files of a killed publisher. The caller holds the lock, so no other process uses them."""
    live = folder / live_name(folder)
    generations = _generations(folder)
    # A kill between the rename and the head leaves a generation that no head ever named.
    unnamed = [p for p, number in generations.items() if p != live and number >= generations.get(live, 0)]
    for path in [*unnamed, *folder.glob("*.new")]:
        _remove(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


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
                time.sleep(_LOCK_PAUSE)
        yield
