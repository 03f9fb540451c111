"""A tool whose server stands behind nginx, which decodes a path, and whose key must reach no other path."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest

from api.answer.test_tool_rounds import Shop, entry
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.requests import ToolCall
from chapterverse_api.service import Service
from ext.net.test_fetch import GOOD, SEPARATORS, spellings
from fakes.loopback import Answer, Request

NGINX = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="needs nginx: apt-get install nginx-light, or brew install nginx"),
]

#: The path is decoded and merged, as `proxy_pass` with a path does, and decoded once more by the server behind.
CONFIGURATION = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass {shop}/; }}
  }}
}}
"""
ATTACKS = [
    "../../admin", "..%2F..%2Fadmin", "..%252F..%252Fadmin", "..\\..\\admin", "%2e%2e/%2e%2e/admin", "..;/..;/admin",
    "%c0%ae%c0%ae%c0%af%c0%ae%c0%ae%c0%afadmin", "．．／．．／admin", "A17/../../admin",
    "A17%00", "A17\x00/../../admin",
]  # fmt: skip


class Decoding(Shop):
    """A server that reads its path like the careless ones: decoded, with "\\" for "/", without parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.read: list[list[str]] = []
        self.planted = self.read_path

    def read_path(self, request: Request) -> Answer:
        path = unquote(unquote(urlsplit(request.path).path)).replace("\\", "/")
        self.read.append([part.partition(";")[0] for part in path.split("/")])
        return Answer(200, json.dumps({"order": "A17"}).encode(), {"Content-Type": "application/json"})


@pytest.fixture
def shop() -> Iterator[Decoding]:
    with Decoding() as running:
        yield running


@pytest.fixture
def front(shop: Decoding, tmp_path: Path) -> Iterator[str]:
    """The address of nginx before the shop."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    file = tmp_path / "nginx.conf"
    file.write_text(CONFIGURATION.format(folder=tmp_path, port=port, shop=shop.url))
    assert NGINX
    with subprocess.Popen([NGINX, "-c", file, "-e", tmp_path / "error.log", "-p", tmp_path]) as running:
        while running.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
        running.terminate()


def run(service: Service, value: str) -> Any:
    assert service.tools
    deadline = Deadline()
    call = ToolCall("order_status", json.dumps({"order": value}))
    return service.tools(service, deadline).run(call, deadline)


def opened(index: Path, shop: Shop, front: str, folder: Path) -> Service:
    file = folder / "tools.json"
    file.write_text(json.dumps({"tools": [entry(shop, url=f"{front}/api/orders/{{order}}", seconds=10)]}))
    return Service.open(
        Settings(
            store=f"edge:{index}",
            generator="openai:gpt-4.1-mini",
            openai_api_key="none",
            tools=str(file),
            allow_private=urlsplit(front).netloc,
            tool_secrets=(("CHAPTERVERSE_TOOL_ORDERS", "Bearer s3cret"),),
        )
    )


def test_no_argument_reaches_another_path(index: Path, shop: Decoding, front: str, tmp_path: Path) -> None:
    service = opened(index, shop, front, tmp_path)
    for value in (*ATTACKS, *(f"a{spelling}b" for sign in SEPARATORS for spelling in spellings(sign))):
        assert not run(service, value).ok, value
    assert shop.history == []
    for value in GOOD:
        assert run(service, value).ok, value
    assert [read[:-1] for read in shop.read] == [["", "api", "orders"]] * len(GOOD)
    assert [read[-1] for read in shop.read] == GOOD


def test_the_front_would_let_these_through(shop: Decoding, front: str) -> None:
    """Without the check they do reach another path, encoded or not."""
    for value in ("..%2F..%2Fadmin", quote("../../admin", safe=""), quote("..%2F..%2Fadmin", safe="")):
        urllib.request.urlopen(f"{front}/api/orders/{value}").read()
    assert [read for read in shop.read if ".." not in read] == [["", "admin"]] * 2
    assert shop.read[-1] == ["", "api", "orders", "..", "..", "admin"]


@pytest.mark.parametrize(
    "target", ["/admin", "/api/admin", "../orders/../admin", "/api/orders/..%2f..%2fadmin", "//127.0.0.2/"]
)
def test_a_redirect_outside_is_not_followed(
    index: Path, shop: Decoding, front: str, tmp_path: Path, target: str
) -> None:
    shop.planted = lambda _: Answer(302, b"", {"Location": target})
    result = run(opened(index, shop, front, tmp_path), "A17")
    assert (result.ok, result.error) == (False, "The tool gave no answer that can be used.")
    assert len(shop.history) == 1


def test_a_redirect_inside_is_followed(index: Path, shop: Decoding, front: str, tmp_path: Path) -> None:
    moved = Answer(302, b"", {"Location": "/api/orders/by-name/A17"})
    shop.planted = lambda request: moved if request.path.endswith("orders/A17") else shop.read_path(request)
    assert run(opened(index, shop, front, tmp_path), "A17").ok
    assert shop.read == [["", "api", "orders", "by-name", "A17"]]
