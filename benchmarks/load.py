"""Measures a server under load: `load.py [--minutes 10] [--seconds 20] [--connections 32] [--workers 2]`.

Creates a site of a few thousand chunks and serves it with one `chapterverse serve` process per core. wrk divides its
connections evenly among them, like a balancer; on a shared socket one process would accept most connections. A stand-in
for Cohere on loopback, in its own process, takes 50 ms for each embedding, ranking and answer. wrk asks over HTTP/1.1,
after ten seconds of warm-up, for `--seconds` and then for `--minutes`, while the service's resident memory is read from
/proc each second (Linux only). Prints the figures, with the service's CPU time per request, which other programs affect
least, and exits with 3 if a bar is missed:

    answers    the whole path with three provider calls: at least 60 per second, p99 at most twice the median
    refusals   a foreign origin, rejected by the guard: at least 1,000 per second
    memory     median of the last tenth over that of the second one: at most 1.05
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from urllib.request import Request, urlopen

from answering import made, run

ANSWERS, SPREAD, REFUSALS, GROWTH = 60, 2.0, 1000, 1.05
CHUNKS, QUESTIONS = 3000, 400
#: Enough to keep both cores busy while most requests wait for a provider.
CONNECTIONS, FOREIGNERS = 32, 64
#: Seconds after which each process has seen most questions once.
WARMING = 10
_HERE = Path(__file__).parent

#: Settings of the service: paid models, and no limits against floods.
_MODELS = {"EMBEDDER": "cohere:embed-english-light-v3.0", "RERANKER": "cohere", "GENERATOR": "cohere"}
_OPEN = {"RATES": "off", "DAILY_BUDGET_USD": "off"}

#: wrk counts microseconds. `BODIES` has a body per line; each thread asks one of the servers at `PORTS`.
_SCRIPT = """
local bodies, servers, threads = {}, {PORTS}, 0
for line in io.lines("BODIES") do bodies[#bodies + 1] = line end
setup = function(thread)
  threads = threads + 1
  thread.addr = wrk.lookup("127.0.0.1", servers[threads])[1]
  thread:set("at", math.floor(#bodies * threads / #servers))
end
request = function()
  -- Each thread begins elsewhere.
  at = at % #bodies + 1
  return wrk.format("POST", "/v1/chat", {["Content-Type"] = "application/json"ORIGIN}, bodies[at])
end
done = function(summary, latency)
  local e = summary.errors
  io.write(string.format('\\n{"requests": %d, "micros": %d, "p50": %d, "p99": %d, "refused": %d, "broken": %d}\\n',
    summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), e.status,
    e.connect + e.read + e.write + e.timeout))
end
"""


@dataclass(frozen=True, slots=True)
class Load:
    """wrk's figures; times in seconds.

    Attributes:
        cpu: of the service during the run.
        refused: responses of status 400 and above.
        broken: requests without a response.
    """

    requests: int
    seconds: float
    p50: float
    p99: float
    cpu: float
    refused: int
    broken: int

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Server:
    """Processes of ours, each with its own address."""

    addresses: tuple[str, ...]
    pids: tuple[int, ...]

    @property
    def cpu(self) -> float:
        """CPU seconds so far (`man 5 proc`: fields 14 and 15 of stat, in ticks)."""
        stats = (Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.pids)
        return sum(int(fields[11]) + int(fields[12]) for fields in stats) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> float:
        """Resident megabytes; what they share counts for each."""
        found = re.findall(r"VmRSS:\s+(\d+)", "".join(Path(f"/proc/{pid}/status").read_text() for pid in self.pids))
        return sum(map(int, found)) / 1e3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10, help="of watching the memory; 0 for none")
    parser.add_argument("--seconds", type=int, default=20, help="of each measurement")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--workers", type=int, default=2, help="processes of the service")
    parser.add_argument("--chunks", type=int, default=CHUNKS)
    options = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("wrk is missing: install the package wrk, of Debian, Ubuntu or Homebrew.")
    with tempfile.TemporaryDirectory(prefix="load-") as name, ExitStack() as stack:
        folder = Path(name)
        bodies = [json.dumps({"query": question}) for question in made(folder / "pages", options.chunks, QUESTIONS)]
        (folder / "bodies").write_text("\n".join(bodies), "utf-8")
        provider = stack.enter_context(server(folder, [sys.executable, str(_HERE / "load_provider.py")]))
        os.environ |= environment(*provider.addresses)
        run("index", "pages", "--source", "--base-url", "https://docs.example/", folder=name)
        command = [str(Path(sys.executable).with_name("chapterverse")), "serve", "--port=0"]
        workers = [stack.enter_context(server(folder, command)) for _ in range(options.workers)]
        service = Server(
            tuple(address for worker in workers for address in worker.addresses),
            tuple(pid for worker in workers for pid in worker.pids),
        )
        check(service, bodies[:20])
        wrk(folder, service, options.connections, WARMING)
        answers = wrk(folder, service, options.connections, options.seconds)
        refusals = wrk(folder, service, FOREIGNERS, options.seconds, origin="https://elsewhere.example")
        memory: list[float] = []
        if options.minutes:
            with watched(service, memory):
                wrk(folder, service, options.connections, round(options.minutes * 60))
    return told(answers, refusals, memory)


def environment(provider: str) -> dict[str, str]:
    variables = {f"CHAPTERVERSE_{name}": value for name, value in (_MODELS | _OPEN).items()}
    return {**variables, "CHAPTERVERSE_COHERE_URL": provider, "COHERE_API_KEY": "stand-in"}


@contextmanager
def server(folder: Path, command: Sequence[str]) -> Iterator[Server]:
    """Start a server that prints its address on standard error, and wait until it listens."""
    log = Path(tempfile.mkstemp(dir=folder)[1])
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=folder, stderr=out)
    try:
        deadline = time.monotonic() + 60
        while not (found := re.search(r"http://(127\.0\.0\.1):(\d+)", log.read_text())) or not listens(*found.groups()):
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"{' '.join(command)} did not start: {log.read_text()}")
            time.sleep(0.05)
        yield Server((found[0],), (process.pid,))
    finally:
        process.terminate()
        process.wait(30)


def listens(host: str, port: str) -> bool:
    try:
        socket.create_connection((host, int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def check(service: Server, bodies: Sequence[str]) -> None:
    """Warm the processes up with some questions, and verify that models answer them."""
    models, requests = 0, list(product(service.addresses, bodies))
    for address, body in requests:
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{address}/v1/chat", body.encode(), headers), timeout=60) as reply:
            answer = json.load(reply)
        models += answer["status"] in ("answered", "partial") and answer["degraded_reason"] is None
    if models < 0.9 * len(requests):
        sys.exit(f"Only {models} of {len(requests)} questions were answered by a model; the last one so: {answer}")


def wrk(folder: Path, service: Server, connections: int, seconds: int, *, origin: str = "") -> Load:
    script = folder / "script.lua"
    header = f', ["Origin"] = "{origin}"' if origin else ""
    ports = ", ".join(f'"{address.rpartition(":")[2]}"' for address in service.addresses)
    replacements = {"BODIES": str(folder / "bodies"), "PORTS": ports, "ORIGIN": header}
    script.write_text(re.sub("|".join(replacements), lambda name: replacements[name[0]], _SCRIPT))
    command = [
        "wrk",
        f"-t{len(service.addresses)}",
        f"-c{connections}",
        f"-d{seconds}s",
        "--timeout",
        "30s",
        "-s",
        str(script),
        service.addresses[0],
    ]
    before = service.cpu
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    if done.returncode:
        sys.exit(done.stderr)
    summary = json.loads(done.stdout.strip().splitlines()[-1])
    taken, p50, p99 = (summary[name] / 1e6 for name in ("micros", "p50", "p99"))
    return Load(summary["requests"], taken, p50, p99, service.cpu - before, summary["refused"], summary["broken"])


@contextmanager
def watched(service: Server, memory: list[float]) -> Iterator[None]:
    """Append a server's resident megabytes to the list each second."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1):
            memory.append(service.memory)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def told(answers: Load, refusals: Load, memory: Sequence[float]) -> int:
    missed = []
    print("| | a second | p50 | p99 | p99 / p50 | CPU a request |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, load in (("answers", answers), ("refusals", refusals)):
        times = f"{1000 * load.p50:.0f} ms | {1000 * load.p99:.0f} ms | {load.p99 / load.p50:.2f} ×"
        print(f"| {name} | {load.rate:.0f} | {times} | {1000 * load.cpu / load.requests:.2f} ms |")
    if answers.rate < ANSWERS or answers.p99 > SPREAD * answers.p50 or answers.refused or answers.broken:
        missed.append(f"answers ({answers.refused} refused, {answers.broken} without a response)")
    if refusals.rate < REFUSALS or refusals.refused != refusals.requests or refusals.broken:
        missed.append(f"refusals ({refusals.requests - refusals.refused} answered)")
    if memory:
        tenth = max(1, len(memory) // 10)
        early, late = statistics.median(memory[tenth : 2 * tenth] or memory), statistics.median(memory[-tenth:])
        print(f"\nmemory {early:.0f} MB, in the end {late:.0f} MB: {late / early:.3f} × over {len(memory)} seconds")
        if late > GROWTH * early:
            missed.append("memory")
    print(f"bars missed: {', '.join(missed)}" if missed else "every bar met")
    return 3 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
