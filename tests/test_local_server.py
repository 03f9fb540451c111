from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from chapterverse import local_server
from chapterverse.errors import ConfigurationError
from chapterverse.settings import Settings


async def hello(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An ASGI app that greets."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": b"hello"})


def fetch(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:
        return bytes(answer.read())


# Ports


def test_port_zero_takes_a_free_one() -> None:
    with local_server.bind("127.0.0.1", 0) as one, local_server.bind("127.0.0.1", 0) as other:
        ports = {sock.getsockname()[1] for sock in (one, other)}
        assert len(ports) == 2
        assert min(ports) > 1023


def test_a_busy_port_is_told_in_one_sentence() -> None:
    with local_server.bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError) as caught:
            local_server.bind("127.0.0.1", port)
    assert str(caught.value) == (
        f"Port {port} on 127.0.0.1 can't be used (Address already in use): choose another with --port or --host."
    )


def test_a_port_is_free_again_at_once() -> None:
    with local_server.bind("127.0.0.1", 0) as sock:
        port = sock.getsockname()[1]
    local_server.bind("127.0.0.1", port).close()


@pytest.mark.parametrize("host", ["203.0.113.7", "no-such-host.invalid", "256.1.1.1"])
def test_an_address_of_another_machine_is_told_in_one_sentence(host: str) -> None:
    with pytest.raises(
        ConfigurationError, match=r"^Port 0 on .* can't be used \(.+\): choose another with --port or --host\.$"
    ):
        local_server.bind(host, 0)


@pytest.mark.parametrize(
    ("host", "name"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("localhost", "127.0.0.1")]
)
def test_an_address_is_one_that_a_browser_here_can_open(host: str, name: str) -> None:
    with local_server.bind(host, 0) as sock:
        assert local_server.socket_origin(sock) == f"http://{name}:{sock.getsockname()[1]}"


@pytest.mark.parametrize("host", ["::1", "::"])
def test_an_address_of_ipv6_is_in_brackets(host: str) -> None:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    with local_server.bind(host, 0) as sock:
        assert local_server.socket_origin(sock) == f"http://[::1]:{sock.getsockname()[1]}"


# In the background


def test_a_service_runs_beside_and_ends() -> None:
    service = local_server.Background(hello, local_server.bind("127.0.0.1", 0))
    assert fetch(service.address) == b"hello"
    before = threading.active_count()
    service.stop()
    assert threading.active_count() < before
    with pytest.raises(OSError, match="refused"):
        fetch(service.address)


def test_a_service_that_cannot_start_is_told() -> None:
    sock = local_server.bind("127.0.0.1", 0)
    sock.close()
    with pytest.raises((ConfigurationError, OSError)):
        local_server.Background(hello, sock)


# The preview of `mkdocs serve`


def preview(tmp_path: Path) -> local_server.Preview:
    told: list[str] = []
    made = local_server.Preview.start(Settings(store=f"edge:{tmp_path}"), "127.0.0.1:8000", told.append)
    assert made is not None, told
    assert told == [f"The chat of this preview answers at {made.address}"]
    return made


def test_a_preview_answers(tmp_path: Path) -> None:
    running = preview(tmp_path)
    try:
        assert b"ok" in fetch(f"{running.address}/v1/health")
    finally:
        running.stop()


def test_of_rebuilds_that_wait_only_the_newest_counts(tmp_path: Path) -> None:
    running = preview(tmp_path)
    entered, go_on, done = threading.Event(), threading.Event(), list[int]()

    def first() -> None:
        entered.set()
        go_on.wait(60)
        done.append(0)

    try:
        running.submit(first)
        assert entered.wait(60)
        for i in range(1, 5):
            running.submit(partial(done.append, i))
        go_on.set()
        deadline = time.monotonic() + 60
        while len(done) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    finally:
        running.stop()
    assert done == [0, 4]


def test_a_preview_without_a_service_says_why() -> None:
    program = """
import sys
sys.modules["fastapi"] = None
from chapterverse import local_server
from chapterverse.settings import Settings
assert local_server.Preview.start(Settings(), "127.0.0.1:8000", print) is None
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("The preview has no chat: The service can't be loaded (fastapi is missing)")
    assert done.stdout.count("\n") == 1


# The service's package


def test_a_service_without_its_dependencies_is_told_in_one_sentence() -> None:
    program = """
import sys
sys.modules["fastapi"] = None
from chapterverse.errors import ConfigurationError
from chapterverse.extensions import load
try:
    load("chapterverse_api.app:create_app")
except ConfigurationError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ('The service can\'t be loaded (fastapi is missing): pip install "chapterverse[api]".\n')
