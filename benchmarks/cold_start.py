"""Measures a cold start against a FastAPI and Mangum hello: `cold_start.py [--rounds 15] [--chunks 3000] [--records]`.

Packs the function with `scripts/package.py` and starts it repeatedly in its own process, alternating with the hello,
from the same folder and with Lambda's Python 3.13, under AWS's runtime client and under our streaming runtime. Two
times, wall clock and CPU, of the process and its children:

    start         until the process asks for its first invocation; with the index in S3 and in Qdrant and Cohere over
                  REST, none of which is called yet
    first answer  until the process asks for its second invocation: the hello after a request, ours after a question
                  about a site of 3,000 chunks in moto's S3 and in a stand-in for Qdrant, which run in this program's
                  process; the extractive generator answers, so no model is called

CPU times are compared, because a start waits for nothing else of its own and the wall clock includes other programs:
medians, with the smallest and largest ratio of one round. Then one process answers `/v1/health` without a runtime. The
bars: 1.25 times the hello's start, 1.45 (Qdrant) and 1.6 times (S3) its first answer, 2 ms at p50 and 10 ms at p99; the
exit code is 1 if one is missed. Linux only.

With `--records` instead: what it costs the first answer to keep the conversation in Postgres. The package then holds
the driver, and a PostgreSQL of the tests runs beside. The same question is asked with and without, from the same
package, in alternating rounds. The bar is 1.4 times the processor time without.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from answering import made, run

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests")]

import environment  # noqa: E402
import package  # noqa: E402

from fakes import qdrant_server  # noqa: E402
from fakes.qdrant_server import QdrantServer  # noqa: E402
from fakes.s3_server import S3Server  # noqa: E402
from lambdas.runtime_api import RuntimeApi  # noqa: E402

START, P50_MS, P99_MS = 1.25, 2.0, 10.0
FIRST_ANSWER = {"Qdrant": 1.45, "S3": 1.6}
#: Times the first answer that keeps nothing.
RECORDS = 1.4
REQUESTS = 2000
#: AWS's runtime client and its dependencies, which Lambda provides.
CLIENT = ("awslambdaric", "simplejson", "snapshot-restore-py")
SECONDS = 60.0

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
HANDLER = "chapterverse_api.handler.handler"
HEALTH: dict[str, Any] = {
    "version": "2.0",
    "rawPath": "/v1/health",
    "rawQueryString": "",
    "headers": {"host": "abc123.lambda-url.eu-central-1.on.aws", "x-forwarded-proto": "https"},
    "requestContext": {"http": {"method": "GET", "path": "/v1/health", "sourceIp": "203.0.113.7"}},
    "isBase64Encoded": False,
}

ANYWHERE = {"CHAPTERVERSE_ALLOWED_ORIGINS": "https://docs.example.com", "AWS_LAMBDA_FUNCTION_NAME": "chapterverse"}
MODELS = {
    **ANYWHERE,
    "CHAPTERVERSE_GENERATOR": "cohere",
    "CHAPTERVERSE_EMBEDDER": "cohere",
    "CHAPTERVERSE_RERANKER": "cohere",
    "COHERE_API_KEY": "key",
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
    parser.add_argument("--chunks", type=int, default=3000)
    parser.add_argument("--records", action="store_true", help="compare an answer that is kept in Postgres instead")
    options = parser.parse_args()
    if options.records:
        return measure_records(options.rounds, options.chunks)
    with tempfile.TemporaryDirectory(prefix="cold-") as temporary, ExitStack() as stack:
        folder = Path(temporary)
        function = Function.pack(folder)
        stores, question = stack.enter_context(published(folder, options.chunks))
        starts = compared("start", function, {"S3": S3, "Qdrant": QDRANT}, "", options.rounds)
        answers = compared("first answer", function, stores, question, options.rounds)
        taken, service = measure_overhead(function)
    p50, p99 = taken[len(taken) // 2], taken[len(taken) * 99 // 100]
    print(f"/v1/health in process: p50 {p50:.2f} ms of {P50_MS:.0f}, p99 {p99:.2f} ms of {P99_MS:.0f}")
    print(f"left to import for the first question: {service:.0f} ms")
    slow = [f"start with {store}: {ratio:.2f} of {START}" for store, ratio in starts.items() if ratio > START]
    slow += [
        f"first answer with {store}: {ratio:.2f} of {FIRST_ANSWER[store]}"
        for store, ratio in answers.items()
        if ratio > FIRST_ANSWER[store]
    ]
    slow += ["/v1/health"] if p50 > P50_MS or p99 > P99_MS else []
    print(f"bars missed: {', '.join(slow)}" if slow else "every bar met")
    return 1 if slow else 0


def measure_records(rounds: int, chunks: int) -> int:
    """Print what a kept conversation costs the first answer; return 1 if that is too much."""
    from fakes import postgres

    with tempfile.TemporaryDirectory(prefix="cold-") as temporary, ExitStack() as stack:
        folder = Path(temporary)
        function = Function.pack(folder, "--with", "postgres")
        stores, question = stack.enter_context(published(folder, chunks))
        server = postgres.PostgresServer()
        stack.callback(server.close)
        kept = {"CHAPTERVERSE_RECORDS": server.database()}
        cases = {"nothing": stores["S3"], "Postgres": stores["S3"] | kept}
        ratios = compared(
            "first answer", function, cases, question, rounds, thread="7f9c1e52-8a43-4d5b-9f0e-2f6f3c1b7a10"
        )
    ratio = ratios["Postgres"] / ratios["nothing"]
    print(f"kept in Postgres: {ratio:.2f} times an answer that is not kept, of {RECORDS}")
    return int(ratio > RECORDS)


class Function:
    """The packed function, the hello beside it, and Lambda's runtime client; see `pack`."""

    def __init__(self, folder: Path, python: str, beside: Path) -> None:
        self.folder = folder
        self.python = python
        self._beside = beside

    @classmethod
    def pack(cls, folder: Path, *options: str) -> Function:
        """Fill a folder with the function, compiled as it is shipped, by these options of `package.py`."""
        machine = package.MACHINES.get(platform.machine(), platform.machine())
        command: list[str | Path] = [
            sys.executable,
            ROOT / "scripts" / "package.py",
            "--machine",
            machine,
            "--out",
            folder / "lambda",
        ]
        command += options
        done = subprocess.run(command, stdout=subprocess.DEVNULL)
        python = package.local_python()
        if done.returncode or python is None:
            sys.exit(done.returncode or 1)
        (folder / "lambda" / "hello.py").write_text(HELLO, encoding="utf-8")
        client = folder / "client"
        lock = (ROOT / "requirements" / "test.txt").read_text(encoding="utf-8")
        pins = re.findall(rf"^(?:{'|'.join(CLIENT)})==[^ ;]+", lock, re.MULTILINE)
        install: list[str | Path] = [
            environment.UV,
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--python",
            python,
            "--target",
            client,
        ]
        subprocess.run([*install, *pins], check=True)
        compiling: list[str | Path] = [python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash"]
        compiling += ["-x", "/lambda/(?!hello)"]
        subprocess.run([*compiling, folder], check=True)
        # The real interpreter: an environment's would find this project's folders, and a shim starts twice.
        answer = subprocess.run([python, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True)
        return cls(folder / "lambda", os.path.realpath(answer.stdout.strip()), client)

    def command(self, runtime: str, handler: str) -> list[str]:
        if runtime == "awslambdaric":
            return [self.python, "-m", "awslambdaric", handler]
        return ["sh", str(self.folder / "bootstrap"), self.python, "bootstrap.py"]

    def variables(self, settings: Mapping[str, str]) -> dict[str, str]:
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        path = {"PYTHONPATH": f"{self.folder}:{self._beside}", "LAMBDA_TASK_ROOT": str(self.folder)}
        # On Lambda the code's folder is read-only.
        return {**inherited, **path, "PYTHONDONTWRITEBYTECODE": "1", **settings}


@contextmanager
def published(folder: Path, chunks: int) -> Iterator[tuple[dict[str, dict[str, str]], str]]:
    """Index a site in both stores; yield each store's settings, and a question that the site answers."""
    question = made(folder / "pages", chunks, 1)[0]
    bucket = S3Server()
    with QdrantServer() as qdrant:
        stores = {
            "S3": {"CHAPTERVERSE_STORE": f"s3://{bucket.bucket()}/index", **bucket.environment},
            "Qdrant": {"CHAPTERVERSE_STORE": f"qdrant:{qdrant.url}", "QDRANT_API_KEY": qdrant_server.KEY},
        }
        before = dict(os.environ)
        for store, settings in stores.items():
            ledger = {"CHAPTERVERSE_LEDGER": f"sqlite:{folder / store}.sqlite", "CHAPTERVERSE_PUBLISH": "1"}
            os.environ.update(settings | ledger)
            run("index", "pages", "--source", "--base-url", "https://docs.example/", folder=str(folder))
            os.environ.clear()
            os.environ.update(before)
        yield {store: ANYWHERE | settings for store, settings in stores.items()}, question


#: A runtime, a handler, settings, and the method, path and body of a request.
Case = tuple[str, str, Mapping[str, str], tuple[str, str, str] | None]


def compared(
    what: str,
    function: Function,
    stores: Mapping[str, Mapping[str, str]],
    question: str,
    rounds: int,
    thread: str | None = None,
) -> dict[str, float]:
    """Print the times of each kind of start, and return the worst ratio to the hello for each store.

    Args:
        question: asked and answered before the time is taken; "" for none.
        thread: of which conversation it is.
    """
    body = {"query": question, **({"thread_id": thread} if thread else {})}
    asked = ("POST", "/v1/chat", json.dumps(body)) if question else None
    hello: Case = ("awslambdaric", "hello.handler", {}, ("GET", "/v1/health", "") if question else None)
    cases: dict[str, Case] = {"hello": hello} | {
        f"{store}, {runtime}": (runtime, HANDLER, settings, asked)
        for runtime in ("awslambdaric", "streaming")
        for store, settings in stores.items()
    }
    times_by_case: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    # The first round warms the disk cache and doesn't count.
    for counts in [False, *[True] * rounds]:
        for name, (runtime, of, settings, request) in cases.items():
            taken = start(function, function.command(runtime, of), settings, event(*request) if request else None)
            if counts:
                times_by_case[name].append(taken)
    hellos = [processor for _, processor in times_by_case["hello"]]
    worst = dict.fromkeys(stores, 0.0)
    print(
        f"{what}, {rounds} rounds: processor's ms, times the hello (smallest and largest of a round), ms by the clock"
    )
    for name, times in times_by_case.items():
        clock, processor = (statistics.median(column) for column in zip(*times, strict=True))
        ratio = processor / statistics.median(hellos)
        ratios = [one / of_hello for (_, one), of_hello in zip(times, hellos, strict=True)]
        print(f"  {name:22} {processor:5.0f}  {ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})  {clock:5.0f}")
        if name != "hello":
            store = name.partition(",")[0]
            worst[store] = max(worst[store], ratio)
    return worst


def start(
    function: Function, command: list[str], settings: Mapping[str, str], request: bytes | None
) -> tuple[float, float]:
    """Return the milliseconds until a process started or answered: wall clock and CPU."""
    with RuntimeApi() as api, tempfile.TemporaryDirectory(prefix="cold-") as writable:
        host = {"AWS_LAMBDA_RUNTIME_API": api.address, "_HANDLER": HANDLER, "TMPDIR": writable}
        started = time.perf_counter()
        process = subprocess.Popen(command, env=function.variables({**host, **settings}), stdout=subprocess.DEVNULL)
        try:
            if not api.asked.wait(SECONDS):
                sys.exit(f"{command} never asked for an invocation.")
            if request is not None:
                answer(api, request, command)
            clock = time.perf_counter() - started
        finally:
            process.kill()
            _, process.returncode, used = os.wait4(process.pid, 0)
    return clock * 1000, (used.ru_utime + used.ru_stime) * 1000


def answer(api: RuntimeApi, request: bytes, command: list[str]) -> None:
    """Have a process answer a request and ask for the next invocation."""
    api.asked.clear()
    reply = api.invoke(request, SECONDS).body(SECONDS)
    if b'"statusCode": 200' not in reply or b"not_in_docs" in reply:
        sys.exit(f"{command} answered {reply[:500]!r}.")
    if not api.asked.wait(SECONDS):
        sys.exit(f"{command} asked for no second invocation.")


def event(method: str, path: str, body: str) -> bytes:
    """Return a request in the format of a Function URL."""
    http = {**HEALTH["requestContext"]["http"], "method": method, "path": path}
    headers = {**HEALTH["headers"], "content-type": "application/json"}
    return json.dumps(
        {**HEALTH, "rawPath": path, "headers": headers, "requestContext": {"http": http}, "body": body}
    ).encode()


def measure_overhead(function: Function) -> tuple[list[float], float]:
    """Return the sorted milliseconds per answer, and those for importing what the first question needs."""
    command = [function.python, "-c", OVERHEAD, json.dumps(HEALTH), str(REQUESTS)]
    run = subprocess.run(command, env=function.variables(S3), capture_output=True, text=True, check=True)
    taken, service = json.loads(run.stdout.splitlines()[-1])
    return [seconds * 1000 for seconds in taken], service * 1000


if __name__ == "__main__":
    sys.exit(main())
