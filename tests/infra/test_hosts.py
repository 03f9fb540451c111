"""The files for hosts other than AWS: what they name exists, and the image's command answers under their settings."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from chapterverse.manifests import SETTINGS
from cli.shell import QUESTION, Shell, clean
from infra.conftest import ROOT, Tool

HOSTS = ROOT / "infra" / "hosts"
CONTAINERFILE = (ROOT / "infra" / "Containerfile").read_text("utf-8")
FLY = tomllib.loads((HOSTS / "fly.toml").read_text("utf-8"))
RENDER: Any = yaml.safe_load((HOSTS / "render.yaml").read_text("utf-8"))
CLOUD_RUN: Any = yaml.safe_load((HOSTS / "cloudrun.yaml").read_text("utf-8"))
SERVICE = (HOSTS / "chapterverse.service").read_text("utf-8")
COMMAND: list[str] = json.loads(re.findall(r"^CMD (\[.*\])$", CONTAINERFILE, re.MULTILINE)[-1])
#: Runs a command where the whole file system is read-only but for one folder, as a container with one volume.
READ_ONLY = """
mount --bind "$VOLUME" "$VOLUME"
for place in $(cut -d' ' -f5 /proc/self/mountinfo); do
    case "$place" in "$VOLUME"|/dev|/dev/pts|/proc*|/sys*) continue ;; esac
    mount -o remount,bind,ro "$place" 2>/dev/null || :
done
if touch "$PROBE" 2>/dev/null; then echo "the root can be written" >&2; exit 9; fi
exec "$@"
"""


def variables(text: str) -> set[str]:
    return set(re.findall(r"CHAPTERVERSE_[A-Z_]+|QDRANT_[A-Z_]+", text))


@pytest.mark.parametrize("file", sorted(HOSTS.iterdir()), ids=lambda f: str(f.name))
def test_every_variable_is_one_that_is_read(file: Path) -> None:
    assert variables(file.read_text("utf-8")) <= {s.variable for s in SETTINGS.values()}


def test_all_look_for_the_api_where_the_image_listens() -> None:
    port = int(COMMAND[COMMAND.index("--port") + 1])
    (service,) = RENDER["services"]
    (container,) = CLOUD_RUN["spec"]["template"]["spec"]["containers"]
    values = {row["key"]: row.get("value") for row in service["envVars"]}
    ports = [FLY["http_service"]["internal_port"], int(values["PORT"]), container["ports"][0]["containerPort"]]
    ports += map(int, re.findall(r"--port (\d+)", SERVICE))
    ports += map(int, re.findall(r"127\.0\.0\.1:(\d+)", (HOSTS / "Caddyfile").read_text("utf-8")))
    assert ports == [port] * 5
    checks = [service["healthCheckPath"], FLY["http_service"]["checks"][0]["path"]]
    assert [*checks, container["startupProbe"]["httpGet"]["path"]] == ["/v1/health"] * 3


def fly_proxies() -> str:
    found = FLY["env"]["FORWARDED_ALLOW_IPS"]
    assert "fly ips list" in (HOSTS / "fly.toml").read_text("utf-8")
    return str(found).replace("APP-IPV4", "198.51.100.3").replace("APP-IPV6", "2001:db8::3")


def render_proxies() -> str:
    return next(str(v["value"]) for v in RENDER["services"][0]["envVars"] if v["key"] == "FORWARDED_ALLOW_IPS")


def cloud_run_proxies() -> str:
    (container,) = CLOUD_RUN["spec"]["template"]["spec"]["containers"]
    return next(str(v["value"]) for v in container["env"] if v["name"] == "FORWARDED_ALLOW_IPS")


@pytest.mark.parametrize(
    ("trusted", "proxy", "passed_on"),
    [
        (fly_proxies, "172.16.4.2", "198.51.100.3"),
        (fly_proxies, "fdaa::3", "2001:db8::3"),
        (render_proxies, "10.201.3.4", "104.22.5.6"),
        (render_proxies, "10.201.3.4", "2606:4700::5"),
        (cloud_run_proxies, "169.254.169.126", ""),
    ],
)
@pytest.mark.parametrize("forged", ["", "192.0.2.66, "])
def test_each_reader_has_his_own_limit(trusted: Callable[[], str], proxy: str, passed_on: str, forged: str) -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["client"][0])

    header = f"{forged}203.0.113.7" + (f", {passed_on}" if passed_on else "")
    scope: Any = {"type": "http", "client": (proxy, 1), "headers": [(b"x-forwarded-for", header.encode())]}
    nothing: Any = None
    asyncio.run(ProxyHeadersMiddleware(app, trusted_hosts=trusted())(scope, nothing, nothing))
    assert seen == ["203.0.113.7"]


def test_hadolint_and_caddy_find_nothing(tool: Tool, tmp_path: Path) -> None:
    images = [HOSTS / "Containerfile", ROOT / "infra" / "Containerfile"]
    done = tool("lint", "hadolint", *images)
    assert (done.returncode, done.stdout) == (0, "")
    validate = ("lint", "caddy", "validate", "--adapter", "caddyfile", "--config")
    assert tool(*validate, HOSTS / "Caddyfile").returncode == 0
    assert tool("lint", "caddy", "fmt", "--diff", HOSTS / "Caddyfile").returncode == 0
    planted = tmp_path / "Caddyfile"
    planted.write_text((HOSTS / "Caddyfile").read_text("utf-8").replace("reverse_proxy", "reverse"), "utf-8")
    assert tool(*validate, planted).returncode == 1


def test_systemd_takes_the_unit_and_finds_it_closed(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("there is no systemd-analyze")
    unit = tmp_path / "chapterverse.service"
    program = "/opt/chapterverse/bin/chapterverse"
    assert program in SERVICE
    unit.write_text(SERVICE.replace(program, "/bin/true"), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if "chapterverse.service" in line] == []
    judged: list[str | Path] = ["systemd-analyze", "security", "--offline=yes", "--threshold=25", "--no-pager", unit]
    done = subprocess.run(judged, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def free_port() -> str:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return str(sock.getsockname()[1])


@contextmanager
def started(volume: Path, settings: dict[str, str]) -> Iterator[httpx.Client]:
    """Run the image's command on a free port, with a read-only root and one volume."""
    port = free_port()
    program = [str(Path(sys.executable).with_name(COMMAND[0])), *COMMAND[1:]]
    program[program.index("--port") + 1] = port
    own = {"VOLUME": str(volume), "PROBE": str(volume.parent / "probe"), "HOME": str(volume), "TMPDIR": str(volume)}
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", READ_ONLY, "sh", *program]
    environment = clean({**settings, **own, "PYTHONDONTWRITEBYTECODE": "1"})
    process = subprocess.Popen(command, env=environment, cwd=volume, stderr=subprocess.PIPE, text=True)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            for _ in range(600):
                if process.poll() is not None:
                    pytest.fail(str(process.stderr.read() if process.stderr else ""))
                try:
                    client.get("/v1/health")
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            yield client
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True).returncode:
        pytest.skip("no file system may be mounted here")
    root = tmp_path_factory.mktemp("tea")
    Shell.with_site(root).run("index", "site", "--store", f"edge:{root / 'index'}")
    return root / "index"


def fly(volume: Path) -> dict[str, str]:
    found = {name: str(value).replace("/data", str(volume)) for name, value in FLY["env"].items()}
    # The test is the proxy, too.
    return found | {"FORWARDED_ALLOW_IPS": found["FORWARDED_ALLOW_IPS"] + ",127.0.0.1"}


def vm(volume: Path) -> dict[str, str]:
    found = dict(line.split("=", 1) for line in re.findall(r"^Environment=(.*)$", SERVICE, re.MULTILINE))
    return {name: value.replace("/var/lib/chapterverse", str(volume)) for name, value in found.items()}


def ask(client: httpx.Client) -> dict[str, Any]:
    origin = {"Origin": "https://docs.example.com", "X-Forwarded-For": "203.0.113.7"}
    response = client.post("/v1/chat", json={"query": QUESTION, "thread_id": "t" * 32}, headers=origin)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("settings", [fly, vm])
def test_a_volume_keeps_index_records_and_budget(settings: Any, index: Path, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    shutil.copytree(index, volume / "index")
    for _ in range(2):
        with started(volume, settings(volume)) as client:
            assert "Eighty degrees" in ask(client)["response"]
    assert {"limits.sqlite", "records.sqlite"} <= {f.name for f in volume.iterdir()}


@pytest.mark.slow
def test_an_index_in_the_image_needs_no_volume(index: Path, tmp_path: Path) -> None:
    (tmp_path / "volume").mkdir()
    image = (HOSTS / "Containerfile").read_text("utf-8")
    assert re.findall(r"CHAPTERVERSE_STORE=edge:(\S+)", image) == ["/srv/index"] * 2
    assert f"CMD {json.dumps(COMMAND)}" in image
    # Read-only, as it is in an image.
    settings = {"CHAPTERVERSE_STORE": f"edge:{index}", "CHAPTERVERSE_ALLOWED_ORIGINS": "https://docs.example.com"}
    with started(tmp_path / "volume", settings) as client:
        assert "Eighty degrees" in ask(client)["response"]
        # An index that can't be written is opened as a copy, in temporary space.
        (copy,) = (tmp_path / "volume").iterdir()
        assert copy.name.startswith("chapterverse-")
