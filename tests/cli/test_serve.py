"""`chapterverse serve` as a process: its names, its bounds on clients, its log."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from cli.shell import QUESTION, Shell, clean, command, get

EVENTS = [
    "query_received",
    *["query_state"] * 3,
    "retrieval_performed",
    "results_ranked",
    "results_filtered",
    "context_prepared",
    "response_generated",
    "response_summary",
    "query_state",
    "response_sent",
]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell.with_index(tmp_path_factory.mktemp("indexed"))
    (shell.root / "site/.env").write_text("KEY=secret")
    return shell


@dataclass(frozen=True)
class Served:
    """A process of `serve`.

    Attributes:
        address: where it says that it listens.
        log: the file of its standard error.
        client: keeps its connections, as a browser does.
    """

    address: str
    log: Path
    client: httpx.Client

    def events(self, *, atleast: int = 0) -> list[dict[str, Any]]:
        """Return the events in the log, as soon as there are so many."""
        deadline = time.monotonic() + 60
        while True:
            found = [json.loads(line) for line in self.log.read_text("utf-8").splitlines() if line.startswith("{")]
            if len(found) >= atleast or time.monotonic() > deadline:
                return found
            time.sleep(0.02)

    def status(self, path: str, host: str, **more: str) -> int:
        headers = {"host": host, **more}
        if "origin" in more:
            return self.client.post(f"{self.address}{path}", json={"query": QUESTION}, headers=headers).status_code
        return self.client.get(f"{self.address}{path}", headers=headers).status_code


@contextmanager
def served(
    shell: Shell, *arguments: str, files: int = 0, stop: int = signal.SIGINT, **variables: str
) -> Iterator[Served]:
    """Run `serve` on a free port, as one that may open so many files, and end it as a user does."""
    log = shell.root / f"log-{time.monotonic_ns()}"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    with log.open("w") as errors:
        process = subprocess.Popen(
            command("serve", "--port", "0", *arguments),
            cwd=shell.root, env=clean(variables), stdout=subprocess.PIPE, stderr=errors, text=True,
            preexec_fn=limit if files else None,
        )  # fmt: skip
    try:
        while not (found := re.search(r"Listening at (http://\S+)/ ", log.read_text("utf-8"))):
            assert process.poll() is None, log.read_text("utf-8")
            time.sleep(0.02)
        get(f"{found[1]}/v1/health")
        with httpx.Client(timeout=60) as client:
            yield Served(found[1], log, client)
        process.send_signal(stop)
        out, _ = process.communicate(timeout=60)
        assert process.returncode in (0, 130, -stop), log.read_text("utf-8")
        assert out == ""
        assert "Traceback" not in log.read_text("utf-8")
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_a_name_that_was_rebound_reads_no_file_and_spends_nothing(indexed: Shell) -> None:
    with served(indexed, "--site-dir", "site") as running:
        port = running.address.rpartition(":")[2]
        for name in ("evil.example", f"evil.example:{port}", f"127.0.0.1.evil.example:{port}", f"192.0.2.2:{port}"):
            for path in ("/", "/brew/", "/.env", "/sitemap.xml", "/v1/health", "/v1/status", "/widget/launcher.js"):
                assert running.status(path, name) == 403, (name, path)
            for path in ("/v1/chat", "/v1/retrieve"):
                assert running.status(path, name, origin=f"http://{name}") == 403, (name, path)
        for name in ("localhost", f"127.0.0.1:{port}", f"LOCALHOST.:{port}", f"[::1]:{port}", "tea.example.com"):
            assert running.status("/brew/", name) == 200, name
        assert running.status("/v1/chat", f"localhost:{port}", origin=f"http://localhost:{port}") == 200
        assert running.status("/.env", "localhost") == 404


def test_the_base_url_and_the_host_are_names_of_it(indexed: Shell) -> None:
    base = "https://docs.example.org/guide/"
    with served(indexed, "--site-dir", "site", "--host", "localhost", CHAPTERVERSE_BASE_URL=base) as running:
        assert running.status("/", "docs.example.org") == 200
        assert running.status("/", "docs.example.org.evil.example") == 403


@pytest.mark.parametrize("listed", ["", "http://docs.lan:8765"])
def test_on_every_network_it_is_reached_by_address_and_says_how_a_name_is_given(indexed: Shell, listed: str) -> None:
    with served(indexed, "--host", "0.0.0.0", CHAPTERVERSE_ALLOWED_ORIGINS=listed) as running:
        port = running.address.rpartition(":")[2]
        warned = "set CHAPTERVERSE_ALLOWED_ORIGINS to the origins of the pages that may ask" in running.log.read_text()
        assert warned is not bool(listed)
        assert running.status("/v1/health", f"127.0.0.1:{port}") == 200
        assert running.status("/v1/health", "docs.lan:8765") == (200 if listed else 403)
        assert running.status("/v1/health", "198.51.100.7") == (200 if listed else 403)


def test_its_log_has_the_events_of_a_question_and_none_of_its_words(indexed: Shell) -> None:
    with served(indexed, stop=signal.SIGTERM) as running:
        response = httpx.post(f"{running.address}/v1/chat", json={"query": QUESTION, "thread_id": "th-1"}, timeout=60)
        events = running.events(atleast=len(EVENTS))
        assert [event["event"] for event in events] == EVENTS
        for event in events:
            assert event["turn_id"] == response.json()["turn_id"]
            assert event["thread_id"] == "th-1"
            assert event["request_id"] == response.headers["x-request-id"]
        assert "degrees" not in running.log.read_text()
        httpx.post(f"{running.address}/v1/chat", json={"query": QUESTION}, timeout=60)
    # The last lines are not lost when it ends.
    assert [event["event"] for event in running.events()] == EVENTS * 2


def test_its_log_names_the_part_that_failed(indexed: Shell) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with served(
            indexed, CHAPTERVERSE_GENERATOR="openai:gpt-4.1", CHAPTERVERSE_OPENAI_URL=url, OPENAI_API_KEY="a"
        ) as running:
            response = httpx.post(f"{running.address}/v1/chat", json={"query": QUESTION}, timeout=60)
            assert response.json()["status"] == "degraded"
            (error,) = (e for e in running.events(atleast=len(EVENTS) + 1) if e["event"] == "error")
            assert (error["code"], error["part"]) == ("provider_unavailable", "generator")


@pytest.mark.slow
def test_a_log_that_nobody_reads_stops_no_answer(indexed: Shell) -> None:
    process = subprocess.Popen(
        command("serve", "--port", "0"),
        cwd=indexed.root,
        env=clean({"CHAPTERVERSE_RATES": "off"}),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        address = re.findall(r"http://[\d.:]+", said)[0]
        get(f"{address}/v1/health")
        with httpx.Client(timeout=60) as client:
            # A pipe holds 64 KB, and a question leaves more than one.
            for i in range(100):
                assert client.post(f"{address}/v1/chat", json={"query": f"{QUESTION} {i}"}).status_code == 200
        started = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(60)
        assert time.monotonic() - started < 30
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.mark.slow
def test_silent_connections_stop_no_answer_and_fill_no_log(indexed: Shell) -> None:
    with served(indexed, files=200, CHAPTERVERSE_RATES="off") as running, ExitStack() as stack:
        url = httpx.URL(running.address)
        for _ in range(260):
            stack.enter_context(socket.create_connection((url.host, url.port or 0), timeout=60))
        for i in range(10):
            answer = httpx.post(f"{running.address}/v1/chat", json={"query": QUESTION}, timeout=60)
            assert answer.json()["status"] == "answered", i
            time.sleep(0.1)
        told = [event for event in running.events() if event["event"] == "error"]
        assert [event["code"] for event in told] == ["connections_exhausted"] * len(told)
        assert 1 <= len(told) <= 2
        assert running.log.stat().st_size < 50_000
