"""The embedded store: the Qdrant engine in process, one immutable folder a generation.

    ROOT/SITE/VERSION/head.json          names the live generation; replaced by one atomic rename
    ROOT/SITE/VERSION/publish.lock       held by the one publisher
    ROOT/SITE/VERSION/GENERATION-TOKEN/  shard/ (the engine's files) and terms.bin (document frequencies)

Readers only ever open folders that nobody writes to any more: a shard that is written while another process holds it
open blocks or gets corrupted (measured), and an exception of the engine leaves a shard in doubt, so a publication works
on a copy and throws it away when anything goes wrong.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote, unquote

from chapterverse.errors import IndexCorrupt, IndexLocked, IndexMismatch, IndexMissing
from chapterverse.model import FORMAT, EmbedderCard, Head, Point, Scope
from chapterverse.store.shard import Shard

_HEAD = "head.json"
_LOCK = "publish.lock"
#: A docs version may be empty; a folder's name may not.
_NO_VERSION = "@"


class EdgeStore:
    """All generations under one folder. Implements `chapterverse.store.Store`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def heads(self) -> list[Head]:
        files = sorted(self.root.glob(f"*/*/{_HEAD}")) if self.root.is_dir() else []
        return sorted((_read_head(f)[0] for f in files), key=lambda h: h.scope)

    def snapshot(self, scope: Scope) -> EdgeSnapshot:
        folder = self._folder(scope)
        for _ in range(3):
            head, name = _read_head(folder / _HEAD)
            try:
                return EdgeSnapshot(head, Shard.load(folder / name))
            except IndexCorrupt:
                # The generation may have been retired between reading its name and opening it: look again.
                if _read_head(folder / _HEAD)[1] == name:
                    raise
        raise IndexCorrupt(f"The index of {scope} moves faster than it can be opened: try again.")

    def publishing(self, scope: Scope) -> bool:
        lock = self._folder(scope) / _LOCK
        try:
            with lock.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except FileNotFoundError:
            return False
        except OSError:
            return True

    @contextlib.contextmanager
    def publish(self, scope: Scope, embedder: EmbedderCard) -> Iterator[EdgePublication]:
        folder = self._folder(scope)
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder / _LOCK, scope):
            publication = EdgePublication(self, folder, scope, embedder)
            try:
                yield publication
            finally:
                publication.discard()

    def _folder(self, scope: Scope) -> Path:
        return self.root / _folder_name(scope.site) / (_folder_name(scope.version) if scope.version else _NO_VERSION)


class EdgeSnapshot:
    """One published generation. Implements `chapterverse.store.Snapshot`; searches are the shard's."""

    def __init__(self, head: Head, shard: Shard) -> None:
        self.head = head
        self.search_lexical = shard.search_lexical
        self.search_dense = shard.search_dense
        self.document_frequencies = shard.document_frequencies
        self.page = shard.page
        self.points = shard.points


class EdgePublication:
    """A private copy of the live shard, until `commit` makes it the live one. Implements `store.Publication`."""

    def __init__(self, store: EdgeStore, folder: Path, scope: Scope, embedder: EmbedderCard) -> None:
        self._folder = folder
        self._embedder = embedder
        self._name = f"{secrets.token_hex(6)}.new"
        self._shard: Shard | None = None
        _sweep(folder)
        self.previous: EdgeSnapshot | None = None
        with contextlib.suppress(IndexMissing):
            self.previous = store.snapshot(scope)

    def write(self, points: Sequence[Point]) -> None:
        self._draft().write(points)

    def delete(self, chunk_ids: Sequence[str]) -> None:
        self._draft().delete(chunk_ids)

    def preview(self) -> EdgeSnapshot:
        shard = self._draft()
        pages, chunks = shard.recount()
        return EdgeSnapshot(Head(site="", version="", generation=0, pages=pages, chunks=chunks, pipeline=""), shard)

    def commit(self, head: Head) -> None:
        live = 0 if self.previous is None else self.previous.head.generation
        if head.generation != live + 1:
            raise IndexLocked(f"Generation {head.generation} of {head.scope} was published meanwhile: run it again.")
        self._draft().seal()
        self._shard = None
        final = f"{head.generation:06d}-{self._name.removesuffix('.new')}"
        (self._folder / self._name).rename(self._folder / final)
        _sync_folder(self._folder)
        _write_head(self._folder / _HEAD, head, final)
        # A reader may just be opening the previous generation, so that one stays until the next publication.
        _retire(self._folder, keep={final, _previous_name(self._folder, head.generation)})

    def discard(self) -> None:
        """Throw the draft away, if there is one left."""
        if self._shard is not None:
            self._shard.close()
        shutil.rmtree(self._folder / self._name, ignore_errors=True)

    def _draft(self) -> Shard:
        """Return the private copy, made at the first write: a publication that writes nothing copies nothing."""
        if self._shard is None:
            draft = self._folder / self._name
            if self.previous is not None and self.previous.head.embedder.fingerprint == self._embedder.fingerprint:
                self._shard = Shard.copy(self._folder / _read_head(self._folder / _HEAD)[1], draft)
            else:
                self._shard = Shard.create(draft, self._embedder.size)
        return self._shard


def _folder_name(name: str) -> str:
    """Return a name for the file system that no site or version can turn into a path."""
    return quote(name, safe="").replace(".", "%2E")


def _read_head(path: Path) -> tuple[Head, str]:
    try:
        raw = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        site = unquote(path.parent.parent.name)
        raise IndexMissing(f"Nothing was published for {site!r} yet: build the site with the plugin first.") from None
    except (OSError, ValueError) as error:
        raise IndexCorrupt(
            f"{path} can't be read ({type(error).__name__}): remove its folder and index again."
        ) from None
    try:
        fields = raw["head"]
        if int(fields["format"]) > FORMAT:
            raise IndexMismatch(
                f"The index is in format {fields['format']}, this release reads up to {FORMAT}: upgrade chapterverse."
            )
        parts = {"embedder": EmbedderCard(**fields["embedder"]), "languages": tuple(fields["languages"])}
        return Head(**{**fields, **parts}), str(raw["folder"])
    except (KeyError, TypeError, ValueError, AttributeError):
        raise IndexCorrupt(f"{path} is damaged: remove its folder and index again.") from None


def _write_head(path: Path, head: Head, folder: str) -> None:
    draft = path.with_suffix(".new")
    with draft.open("w", encoding="utf-8") as file:
        json.dump({"folder": folder, "head": asdict(head)}, file, ensure_ascii=False, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make a rename in the folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _generations(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if p.is_dir() and p.name[:6].isdigit())


def _previous_name(folder: Path, generation: int) -> str:
    older = [name for name in _generations(folder) if int(name[:6]) < generation]
    return older[-1] if older else ""


def _retire(folder: Path, keep: set[str]) -> None:
    for name in _generations(folder):
        if name not in keep:
            shutil.rmtree(folder / name, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what a killed publisher left; called under its lock, so nobody works on it."""
    for path in folder.glob("*.new"):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    with contextlib.suppress(IndexMissing):
        live = _read_head(folder / _HEAD)[1]
        # A kill between the rename and the head leaves a generation that no head ever named.
        _retire(folder, keep={n for n in _generations(folder) if n <= live})


@contextlib.contextmanager
def _locked(path: Path, scope: Scope) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise IndexLocked(
                f"Another process is publishing {scope} to {path.parent}: wait for it, then run again."
            ) from None
        yield
