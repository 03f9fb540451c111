"""A real pgbouncer in transaction mode in front of a PostgreSQL, from the package of the system."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from fakes.postgres import PASSWORD, USER, PostgresServer

_SECONDS_TO_START = 20.0


def program() -> str | None:
    """Return the program; None if it is not installed."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def pooling(server: PostgresServer) -> Iterator[int]:
    """Run a pooler of a server, and give its port."""
    port = _free_port()
    with tempfile.TemporaryDirectory(prefix="pgbouncer-") as name:
        folder = Path(name)
        (folder / "users.txt").write_text(f'"{USER}" "{PASSWORD}"\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={server.port}\n"
            f"[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port={port}\nunix_socket_dir=\nauth_type=plain\n"
            f"auth_file={folder}/users.txt\npool_mode=transaction\ndefault_pool_size=2\n"
        )
        owner = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        for path in (folder, *folder.iterdir()):
            if owner:
                os.chown(path, owner.pw_uid, owner.pw_gid)
        started = subprocess.Popen(
            [str(program()), str(folder / "pgbouncer.ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=owner.pw_uid if owner else None,
            group=owner.pw_gid if owner else None,
            extra_groups=[] if owner else None,
        )
        try:
            _wait(port)
            yield port
        finally:
            started.kill()
            started.wait()


def address(port: int, database: str, password: str = PASSWORD, query: str = "?pgbouncer=true") -> str:
    return f"postgresql://{USER}:{quote(password, safe='')}@127.0.0.1:{port}/{database}{query}"


def _wait(port: int) -> None:
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError("pgbouncer did not start")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
