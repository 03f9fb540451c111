"""How long a cold function takes, against a bare FastAPI + Mangum hello: `cold_start.py [--rounds N]`.

Packs what AWS Lambda would get (our two packages and `requirements/lambda.txt`, with bytecode, as `make package` does)
and starts it over and over in a process of its own, in turns with the hello, from the same folder and by the same
interpreter: with the index in S3 and in Qdrant, Cohere over REST, by AWS's runtime for Python and by ours that streams.
The time is from the start of the process to its first request for an invocation, by the clock and of the processor;
medians of the latter are compared, because a start waits for nothing else and a clock counts what other programs do.
Then one process answers `/v1/health` without a runtime around it. The bars: 1.25 times the hello, 2 ms at p50 and 10 ms
at p99; the exit code is 1 where one is missed. Needs `awslambdaric`, which `requirements/test.txt` locks for Linux.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path(__file__).resolve().parents[1]
RATIO, P50_MS, P99_MS = 1.25, 2.0, 10.0
REQUESTS = 2000

HELLO = """
from fastapi import FastAPI
from mangum import Mangum

app = FastAPI()

@app.get("/v1/health")
def health():
    return {"status": "ok"}

handler = Mangum(app, lifespan="off")
"""
OVERHEAD = """
import json, sys, time
from chapterverse_api.handler import handler
event, taken = json.loads(sys.argv[1]), []
for _ in range(int(sys.argv[2])):
    started = time.perf_counter()
    answer = handler(event, None)
    taken.append(time.perf_counter() - started)
    assert answer["statusCode"] == 200, answer
started = time.perf_counter()
import chapterverse_api.service
print(json.dumps([sorted(taken), time.perf_counter() - started]))
"""
HEALTH = {
    "version": "2.0",
    "rawPath": "/v1/health",
    "rawQueryString": "",
    "headers": {"host": "abc123.lambda-url.eu-central-1.on.aws", "x-forwarded-proto": "https"},
    "requestContext": {"http": {"method": "GET", "path": "/v1/health", "sourceIp": "203.0.113.7"}},
    "isBase64Encoded": False,
}

MODELS = {
    "CHAPTERVERSE_GENERATOR": "cohere",
    "CHAPTERVERSE_EMBEDDER": "cohere",
    "CHAPTERVERSE_RERANKER": "cohere",
    "COHERE_API_KEY": "key",
    "CHAPTERVERSE_ALLOWED_ORIGINS": "https://docs.example.com",
    "AWS_LAMBDA_FUNCTION_NAME": "chapterverse",
}
S3 = {
    **MODELS,
    "CHAPTERVERSE_STORE": "s3://bucket/index",
    "AWS_REGION": "eu-central-1",
    "AWS_ACCESS_KEY_ID": "id",
    "AWS_SECRET_ACCESS_KEY": "key",
}
QDRANT = {**MODELS, "CHAPTERVERSE_STORE": "qdrant:https://qdrant.example.com", "QDRANT_API_KEY": "key"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="cold-") as temporary:
        folder = Path(temporary)
        pack(folder)
        cold = measure_starts(folder, rounds)
        taken, service = measure_overhead(folder)
    p50, p99 = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
    print(f"/v1/health in process: p50 {p50:.2f} ms of {P50_MS:.0f}, p99 {p99:.2f} ms of {P99_MS:.0f}")
    print(f"left to import for the first question: {service:.0f} ms")
    return 0 if cold <= RATIO and p50 <= P50_MS and p99 <= P99_MS else 1


def measure_starts(folder: Path, rounds: int) -> float:
    """Print how long each kind of start takes, and return the worst ratio to the hello."""
    # The real interpreter: that of an environment would find this project's own folders.
    python = os.path.realpath(sys.executable)
    ric, ours = [python, "-m", "awslambdaric"], ["sh", str(ROOT / "infra" / "bootstrap"), python, "bootstrap.py"]
    handler = "chapterverse_api.handler.handler"
    cases = {
        "hello, awslambdaric": ([*ric, "hello.handler"], {}),
        "S3, awslambdaric": ([*ric, handler], S3),
        "Qdrant, awslambdaric": ([*ric, handler], QDRANT),
        "S3, streaming": (ours, S3),
        "Qdrant, streaming": (ours, QDRANT),
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    # The first round warms the disk's cache, and doesn't count.
    for counts in [False, *[True] * rounds]:
        for name, (command, settings) in cases.items():
            milliseconds = start(command, settings, folder)
            if counts:
                taken[name].append(milliseconds)
    medians = {
        name: [statistics.median(column) for column in zip(*values, strict=True)] for name, values in taken.items()
    }
    hello, *others = (processor for _, processor in medians.values())
    for name, (clock, processor) in medians.items():
        print(f"{name:22} {processor:5.0f} ms, {processor / hello:.2f} times the hello  ({clock:.0f} ms by the clock)")
    return max(others) / hello


def pack(folder: Path) -> None:
    """Fill a folder with what the function imports, compiled as it is shipped."""
    for package in (ROOT / "plugin" / "chapterverse", ROOT / "lambda" / "chapterverse_api"):
        shutil.copytree(package, folder / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    lock = (ROOT / "requirements" / "lambda.txt").read_text(encoding="utf-8")
    for name in [*re.findall(r"^([\w.-]+)==", lock, re.MULTILINE), "awslambdaric", "simplejson", "snapshot-restore-py"]:
        for file in distribution(name).files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = folder / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target)
    (folder / "hello.py").write_text(HELLO, encoding="utf-8")
    compileall.compile_dir(folder, quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)


def start(command: list[str], settings: dict[str, str], folder: Path) -> tuple[float, float]:
    """Return the milliseconds from the start of a process to its first request for an invocation.

    Returns:
        Those of the clock, and those of the processor.
    """
    asked, over = threading.Event(), threading.Event()
    clock = 0.0

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            nonlocal clock
            clock = time.perf_counter() - started
            asked.set()
            over.wait()

        def do_POST(self) -> None:
            raise RuntimeError(f"{command} says {self.path}")

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.005,), daemon=True).start()
    host = {"AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{server.server_port}", "LAMBDA_TASK_ROOT": str(folder)}
    started = time.perf_counter()
    process = subprocess.Popen(command, env=environment(folder) | host | settings, stdout=subprocess.DEVNULL)
    if not asked.wait(60):
        raise RuntimeError(f"{command} never asked for an invocation")
    process.kill()
    _, process.returncode, used = os.wait4(process.pid, 0)
    over.set()
    server.shutdown()
    server.server_close()
    return clock * 1000, (used.ru_utime + used.ru_stime) * 1000


def measure_overhead(folder: Path) -> tuple[list[float], float]:
    """Return the milliseconds of each answer, sorted, and those of importing what the first question needs."""
    command = [os.path.realpath(sys.executable), "-c", OVERHEAD, json.dumps(HEALTH), str(REQUESTS)]
    run = subprocess.run(command, env=environment(folder) | S3, capture_output=True, text=True, check=True)
    taken, service = json.loads(run.stdout.splitlines()[-1])
    return [seconds * 1000 for seconds in taken], service * 1000


def environment(folder: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    # Lambda's folder of code can't be written to.
    return {**kept, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}


if __name__ == "__main__":
    sys.exit(main())
