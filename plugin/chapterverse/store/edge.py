"""The embedded store: the Qdrant engine in process, one immutable folder a generation.

    ROOT/SITE/VERSION/head.json          names the live generation; replaced by one atomic rename
    ROOT/SITE/VERSION/publish.lock       held by the one publisher
    ROOT/SITE/VERSION/GENERATION-TOKEN/  a sealed shard (see `chapterverse.store.shard`)
    ROOT/SITE/VERSION/*.new              what a publisher works on; after a kill, what the next one sweeps away

Readers only ever open folders that nobody writes to any more: a shard that is written while another process holds it
open blocks or gets corrupted (measured), and an exception of the engine leaves a shard in doubt, so a publication works
on a copy and throws it away when anything goes wrong.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import secrets
import shutil
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from chapterverse.errors import ChapterVerseError, IndexCorrupt, IndexFault, IndexLocked, IndexMissing
from chapterverse.model import EmbedderCard, Head, Point, Scope
from chapterverse.store import files
from chapterverse.store.heads import HEAD, live_name, read_head, write_head

# The engine is loaded by whoever opens a shard: a build that changes nothing does not.
if TYPE_CHECKING:
    from chapterverse.store.draft import Draft
    from chapterverse.store.shard import Shard

_LOCK = "publish.lock"
#: A site's or version's name may be empty or long; a folder's name may not.
_NO_NAME = "@"
_LONGEST_NAME = 100
#: How long a lock may be held by somebody who only looks (`publishing`).
_LOCK_TRIES, _LOCK_PAUSE = 10, 0.02
_REWRITE_BATCH = 1000


class EdgeStore:
    """All generations under one folder. Implements `chapterverse.store.Store`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def heads(self) -> list[Head]:
        found: list[Head] = []
        for file in self.root.glob(f"*/*/{HEAD}"):
            with contextlib.suppress(IndexMissing):
                found.append(read_head(file)[0])
        return sorted(found, key=lambda h: h.scope)

    def snapshot(self, scope: Scope) -> EdgeSnapshot:
        from chapterverse.store.shard import Shard

        folder = self._folder(scope)
        for _ in range(3):
            head, name = self._live(scope)
            try:
                return EdgeSnapshot(head, Shard.load(folder / name, head.embedder.size))
            except IndexCorrupt:
                # The generation may have been retired between reading its name and opening it: look again.
                if self._live(scope)[1] == name:
                    raise
        raise IndexCorrupt(f"The index of {scope} moves faster than it can be opened: try again.")

    def intact(self, scope: Scope) -> bool:
        from chapterverse.store.manifest import Manifest

        try:
            folder = self._folder(scope) / self._live(scope)[1]
            Manifest.load(folder).check(folder)
        except IndexMissing:
            return True
        except (IndexCorrupt, OSError, ValueError, TypeError):
            return False
        return True

    def publishing(self, scope: Scope) -> bool:
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
            with _writing(folder):
                folder.mkdir(parents=True, exist_ok=True)
                lock.enter_context(_locked(folder / _LOCK, scope))
                _sweep(folder)
            publication = EdgePublication(folder, self._previous(scope), embedder)
            try:
                yield publication
            finally:
                publication.discard()

    def sweep(self, scope: Scope) -> int:
        folder = self._folder(scope)
        if not folder.is_dir():
            return 0
        with _writing(folder), _locked(folder / _LOCK, scope):
            live = folder / live_name(folder)
            lost = [path for path in (*_generations(folder), *folder.glob("*.new")) if path != live]
            for path in lost:
                _remove(path)
            return len(lost)

    def _previous(self, scope: Scope) -> EdgeSnapshot | None:
        # What is damaged can't be continued, only replaced as a whole.
        with contextlib.suppress(IndexMissing, IndexCorrupt):
            return self.snapshot(scope)
        return None

    def _live(self, scope: Scope) -> tuple[Head, str]:
        try:
            return read_head(self._folder(scope) / HEAD)
        except IndexMissing:
            raise IndexMissing(
                f"Nothing was published for {scope} yet: build the site with the plugin first."
            ) from None

    def _folder(self, scope: Scope) -> Path:
        return self.root / _folder_name(scope.site) / _folder_name(scope.version)


class EdgeSnapshot:
    """One published generation. Implements `chapterverse.store.Snapshot`; searches are the shard's."""

    def __init__(self, head: Head, shard: Shard) -> None:
        self.head = head
        self.search_lexical = shard.search_lexical
        self.search_dense = shard.search_dense
        self.document_frequencies = shard.document_frequencies
        self.page = shard.page
        self.points = shard.points
        self.vectors = shard.vectors


class EdgePublication:
    """A private copy of the live shard, until `commit` makes it the live one. Implements `store.Publication`."""

    def __init__(self, folder: Path, previous: EdgeSnapshot | None, embedder: EmbedderCard) -> None:
        self.previous = previous
        self._folder = folder
        self._embedder = embedder
        self._name = f"{secrets.token_hex(6)}.new"
        self._opened: Draft | None = None

    def renew(self) -> None:
        """Do nothing: the lock holds as long as this process lives."""

    def write(self, points: Sequence[Point]) -> None:
        with _writing(self._folder):
            self._draft().write(points)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        with _writing(self._folder):
            self._draft().delete(chunk_ids)

    def preview(self) -> EdgeSnapshot:
        with _writing(self._folder):
            self._draft().settle()
        found = self._draft().census()
        head = Head("", "", 0, found.pages, found.chunks, "", languages=found.languages)
        return EdgeSnapshot(head, self._draft())

    def commit(self, head: Head) -> None:
        live = self.previous.head.generation if self.previous else 0
        if head.generation != live + 1:
            raise IndexLocked(f"Generation {head.generation} of {head.scope} was published meanwhile: run it again.")
        with _writing(self._folder):
            self._draft().seal()
            self._opened = None
            self._name = self._rename(f"{head.generation:06d}-{self._name.removesuffix('.new')}")
            write_head(self._folder, head, self._name)
        # A reader may just be opening the previous generation, so that one stays until the next publication.
        _retire(self._folder, {live, head.generation})

    def discard(self) -> None:
        """Throw the draft away, unless it went live."""
        if self._opened is not None:
            self._opened.close()
        if self._name != live_name(self._folder):
            shutil.rmtree(self._folder / self._name, ignore_errors=True)

    def _rename(self, name: str) -> str:
        (self._folder / self._name).rename(self._folder / name)
        files.sync_folder(self._folder)
        return name

    def _draft(self) -> Draft:
        """Return the private copy, made at the first write: a publication that writes nothing copies nothing."""
        if self._opened is None:
            self._opened = self._new_draft()
        return self._opened

    def _new_draft(self) -> Draft:
        from chapterverse.store.draft import Draft
        from chapterverse.store.manifest import Manifest

        place, size = self._folder / self._name, self._embedder.size
        if not self.previous or self.previous.head.embedder.fingerprint != self._embedder.fingerprint:
            return Draft.create(place, size)
        live = self._folder / live_name(self._folder)
        if not Manifest.load(live).worn(self.previous.head.chunks):
            return Draft.copy(live, place, size)
        draft = Draft.create(place, size)
        points = self.previous.points()
        while batch := list(islice(points, _REWRITE_BATCH)):
            draft.write(batch)
        return draft


def _folder_name(name: str) -> str:
    """Return a name for the file system that no site or version can turn into a path, different for each."""
    quoted = quote(name, safe="", errors="surrogatepass").replace(".", "%2E")
    if len(quoted) > _LONGEST_NAME:
        digest = hashlib.sha256(name.encode(errors="surrogatepass")).hexdigest()
        return f"{quoted[:64]}={digest[:32]}"
    return quoted or _NO_NAME


def _generations(folder: Path) -> dict[Path, int]:
    """Return the folders of generations with their numbers."""
    numbers = {path: path.name.partition("-")[0] for path in folder.iterdir() if path.is_dir()}
    return {path: int(number) for path, number in numbers.items() if number.isdecimal()}


def _retire(folder: Path, keep: set[int]) -> None:
    for path, number in _generations(folder).items():
        if number not in keep:
            shutil.rmtree(path, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what a killed publisher left; called under its lock, so nobody works on it."""
    live = folder / live_name(folder)
    generations = _generations(folder)
    # A kill between the rename and the head leaves a generation that no head ever named.
    unnamed = [p for p, number in generations.items() if p != live and number >= generations.get(live, 0)]
    for path in [*unnamed, *folder.glob("*.new")]:
        _remove(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Say in one sentence why the disk refused; nothing that readers see has changed then."""
    try:
        yield
    except (ChapterVerseError, KeyboardInterrupt, SystemExit):
        raise
    # The engine's panics are no `Exception`.
    except BaseException as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        raise IndexFault(f"The index in {folder} can't be written ({reason}): nothing was published.") from error


@contextlib.contextmanager
def _locked(path: Path, scope: Scope) -> Iterator[None]:
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
