"""Opens the index to compare with: a store, an exported file, or a git ref that is built in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from chapterverse.errors import ConfigurationError, IndexMissing, InputError
from chapterverse.ext.transfer.maintenance import fill, read_export
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.model import EmbedderCard, Head, Scope
from chapterverse.progress import Progress
from chapterverse.project import build_command
from chapterverse.settings import Settings
from chapterverse.store import only_scope, open_store

_STORE = re.compile(r"(?:edge|qdrant|s3):")
_RUNNABLE = re.compile(r"`([^`]+)`")


@contextlib.contextmanager
def open_base(base: str, build: str | None, settings: Settings, head: Head, report: Progress) -> Iterator[Settings]:
    """Yield the settings of the index that `base` names; what was built for it is removed afterwards.

    Args:
        build: the command that builds a git ref; None takes that of the generator.
        head: of the index to compare.

    Raises:
        InputError: `base` names nothing, or is of another site.
        ConfigurationError: the ref can't be built.
    """
    with _terminable(), tempfile.TemporaryDirectory(prefix="chapterverse-base-") as folder:
        temporary = settings.override(store=f"edge:{folder}/index", ledger=f"sqlite:{folder}/ledger.db")
        if _STORE.match(base):
            found = settings.override(store=base)
        elif Path(base).is_file():
            found = temporary
            _import(Path(base), temporary, head, report)
        else:
            found, commit = temporary, _commit(base)
            report("Building the base", 0, 1)
            with _checkout(commit, Path(folder, "checkout")) as checkout:
                _build(base, build, temporary, head, checkout)
            report("Building the base", 1, 1)
        yield found.override(**_scope(found, head, base))


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """End by SIGTERM as by an exception, so that nothing is left."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _scope(settings: Settings, head: Head, base: str) -> dict[str, str]:
    store = open_store(settings)
    try:
        scope = only_scope(store, head.site, head.version, place=settings.store)
    except IndexMissing:
        held = ", ".join(str(other.scope) for other in store.heads())
        reason = f"only one of {held}" if held else "no index"
        raise InputError(f"{base} holds {reason}, so there is nothing to compare {head.scope} with.") from None
    return {"site": scope.site, "docs_version": scope.version}


def _import(file: Path, settings: Settings, head: Head, report: Progress) -> None:
    try:
        with file.open(encoding="utf-8") as lines:
            exported = read_export(lines, str(file))
    except UnicodeDecodeError:
        raise InputError(f"{file} is no UTF-8 text: write one with `chapterverse export`.") from None
    # A canonical file doesn't name its site; that its chunks are of this one is checked by their ids.
    scope = exported.head.scope if exported.head else Scope(head.site, head.version)
    card = exported.head.embedder if exported.head else head.embedder if exported.size else EmbedderCard()
    target = Target(scope, open_store(settings), open_ledger(settings), base_url=exported.base_url, made_by=card)
    fill(exported, target, report)


def _commit(ref: str) -> str:
    if commit := _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"):
        return commit
    if Path(ref).is_dir():
        raise InputError(f"{ref} is a folder: an embedded index is named edge:{ref}.")
    raise InputError(f"{ref} is no store, no file and no commit here: name one that is.")


@contextlib.contextmanager
def _checkout(commit: str, folder: Path) -> Iterator[Path]:
    """Yield a checkout with its own files and the same history, which plugins for dates read."""
    try:
        add = ["git", "worktree", "add", "--quiet", "--detach", str(folder), commit]
        if subprocess.run(add, check=False).returncode:  # noqa: S603
            raise ConfigurationError(f"Git can't check out {commit[:12]} apart: see above.")
        yield folder
    finally:
        remove = ["git", "worktree", "remove", "--force", str(folder)]
        subprocess.run(remove, check=False, stderr=subprocess.DEVNULL)  # noqa: S603


def _build(ref: str, command: str | None, settings: Settings, head: Head, checkout: Path) -> None:
    folder = checkout / _git("rev-parse", "--show-prefix")
    if not folder.is_dir():
        raise ConfigurationError(f"{ref} has no folder like this one: run this where both have their docs.")
    command = command or _known_command(folder, ref)
    own = {
        "store": settings.store, "ledger": settings.ledger, "site": head.site, "docs_version": head.version,
        # Nothing is charged for it but vectors, which answers differ by: it gets those that the index to compare has.
        "enricher": "none", "report": "false", "embedder": head.embedder.name,
    }  # fmt: skip
    if code := _run(command, folder, {f"CHAPTERVERSE_{name.upper()}": value for name, value in own.items()}):
        raise ConfigurationError(f"`{command}` ended with {code} on {ref}: see above.")
    if not open_store(settings).heads():
        raise ConfigurationError(f"`{command}` left no index of {ref}: add `chapterverse index SITE_DIR` to it.")


def _run(command: str, folder: Path, own: Mapping[str, str]) -> int:
    """Run the caller's own command, and end it with this program. What it prints is no result of ours."""
    environment = os.environ | own
    with subprocess.Popen(command, shell=True, cwd=folder, env=environment, stdout=2, start_new_session=True) as child:  # noqa: S602
        try:
            return child.wait()
        except BaseException:
            os.killpg(child.pid, signal.SIGKILL)
            raise


def _known_command(folder: Path, ref: str) -> str:
    steps = _RUNNABLE.findall(build_command(folder))
    # Sphinx needs folders, too.
    if steps[0] == "sphinx-build" or "SITE_DIR" in steps[-1]:
        raise ConfigurationError(f"Nothing says how {ref} is built: pass --build COMMAND.")
    return " && ".join(steps)


def _git(*arguments: str) -> str:
    """Return what git prints, "" if it fails or there is no git."""
    try:
        done = subprocess.run(["git", *arguments], capture_output=True, text=True)  # noqa: S603, S607
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
