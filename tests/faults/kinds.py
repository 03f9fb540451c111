"""The kinds of places of an index: how each is opened, and copied while closed."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from psycopg import sql

from chapterverse.store import files
from fakes import postgres, s3_server
from fakes.qdrant_server import KEY, QdrantServer
from faults.publishing import Place


class Kind(Protocol):
    """A store with its ledger; all of a place lies in one folder while nobody has it open."""

    def opened(self, folder: Path, plant: str = "") -> contextlib.AbstractContextManager[Place]: ...

    def copy(self, folder: Path, twin: Path) -> None: ...


class Remote(Kind, Protocol):
    """A store behind a network."""

    def port(self, place: Place) -> int:
        """Return where its server listens on loopback."""
        ...

    def through(self, place: Place, url: str) -> Place:
        """Return the same place, reached by another address."""
        ...


class Embedded:
    """The engine in process, and SQLite inside its folder."""

    @contextlib.contextmanager
    def opened(self, folder: Path, plant: str = "") -> Iterator[Place]:
        folder.mkdir(parents=True, exist_ok=True)
        yield Place(folder, f"edge:{folder / 'index'}", plant=plant)

    def copy(self, folder: Path, twin: Path) -> None:
        files.copy_folder(folder, twin)


class Qdrant:
    """A server over REST, and SQLite in the publisher's working directory."""

    @contextlib.contextmanager
    def opened(self, folder: Path, plant: str = "") -> Iterator[Place]:
        for name in ("server", "work"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        with QdrantServer(folder / "server") as server:
            key = (("QDRANT_API_KEY", KEY),)
            yield Place(folder / "work", f"qdrant:{server.url}", plant=plant, environment=key)

    def copy(self, folder: Path, twin: Path) -> None:
        files.copy_folder(folder, twin)

    def port(self, place: Place) -> int:
        return int(place.store.rpartition(":")[2])

    def through(self, place: Place, url: str) -> Place:
        return replace(place, store=f"qdrant:{url}")


class S3:
    """A bucket, and SQLite in the publisher's working directory; the objects lie on the server, under its name."""

    @contextlib.contextmanager
    def opened(self, folder: Path, plant: str = "") -> Iterator[Place]:
        folder.mkdir(parents=True, exist_ok=True)
        server, name = s3_server.shared(), folder / "bucket"
        if not name.exists():
            name.write_text(server.bucket())
        environment = tuple(server.environment.items())
        yield Place(folder, f"s3://{name.read_text()}/index", plant=plant, environment=environment)

    def copy(self, folder: Path, twin: Path) -> None:
        files.copy_folder(folder, twin)
        server = s3_server.shared()
        client, source, target = server.client(), (folder / "bucket").read_text(), server.bucket()
        for found in client.list_objects_v2(Bucket=source).get("Contents", ()):
            client.copy_object(Bucket=target, Key=found["Key"], CopySource={"Bucket": source, "Key": found["Key"]})
        (twin / "bucket").write_text(target)

    def port(self, place: Place) -> int:
        return int(dict(place.environment)["AWS_ENDPOINT_URL"].rpartition(":")[2])

    def through(self, place: Place, url: str) -> Place:
        return replace(place, environment=(*place.environment, ("AWS_ENDPOINT_URL", url)))


class Postgres:
    """The engine in process, and the ledger on a Postgres server; the rows lie there, under a database's name."""

    @contextlib.contextmanager
    def opened(self, folder: Path, plant: str = "") -> Iterator[Place]:
        folder.mkdir(parents=True, exist_ok=True)
        name = folder / "database"
        if not name.exists():
            name.write_text(postgres.server().database())
        yield Place(folder, f"edge:{folder / 'index'}", name.read_text(), plant)

    def copy(self, folder: Path, twin: Path) -> None:
        files.copy_folder(folder, twin)
        names = [urlsplit((folder / "database").read_text()).path[1:], f"twin_{uuid.uuid4().hex}"]
        with postgres.server().superuser() as db:
            template, copy = map(sql.Identifier, names)
            owner = sql.Identifier(postgres.USER)
            db.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER {}").format(copy, template, owner))
        (twin / "database").write_text(postgres.server().uri(names[1]))
