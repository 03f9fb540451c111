"""Measures the time that we add to an answer: `answering.py [--chunks 10000] [--questions 100]`.

Creates a site of about that many chunks, serves it with `chapterverse serve` and asks questions over HTTP. A provider
on loopback speaks OpenAI's chat protocol with two models: one answers at once, a usual one sends its first words after
300 ms and further ones every 10 ms. Each question goes to us, and the request body that we sent goes to the provider
alone, alternately. Prints the figures, and exits with 3 if a bar is missed:

    overhead      our seconds less the provider's for the same answer; quotes have no provider (bar: 40 ms at p50)
    first segment time to our first segment, a checked sentence, over the time to the end of the provider's first
                  sentence, with the usual model (bar: 1.1 at p50)
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from chapterverse.text.sentences import SentenceReader

OVERHEAD_SECONDS, FIRST_SEGMENT = 0.040, 1.1
AT_ONCE, USUAL = "at-once", "usual"
#: Seconds until a model's first words, and between the next ones.
PACES = {AT_ONCE: (0.0, 0.0), USUAL: (0.3, 0.01)}
SECTIONS, WARM = 8, 5
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "ar", "en", "il", "or", "un")]
_VOCABULARY = 6000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--provide", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.provide:
        provide()
    with tempfile.TemporaryDirectory(prefix="answering-") as folder, ExitStack() as stack:
        questions = made(Path(folder) / "pages", options.chunks, options.questions + WARM)
        run("index", "pages", "--source", "--base-url", "https://docs.example/", folder=folder)
        provider = Peer(stack.enter_context(started([sys.executable, __file__, "--provide"], folder)))
        ours = {
            name: Peer(stack.enter_context(serving(name, provider.port, folder)))
            for name in ("extractive", f"openai:{AT_ONCE}", f"openai:{USUAL}")
        }
        quoted = [whole(ours["extractive"], q) for q in questions][WARM:]
        at_once = paired(ours[f"openai:{AT_ONCE}"], provider, questions)
        usual = paired(ours[f"openai:{USUAL}"], provider, questions)
    return told(quoted, at_once, usual)


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds of one answer: until the first sentence is there, and until the end."""

    first: float
    total: float
    status: str = ""


Pairs = list[tuple[Taken, Taken]]


class Peer:
    """A server on loopback, asked over one persistent connection."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def lines(self, path: str, body: bytes, accept: str) -> Iterator[bytes]:
        self._connection.request("POST", path, body, {"Content-Type": "application/json", "Accept": accept})
        reply = self._connection.getresponse()
        if reply.status != 200:
            sys.exit(f"{path} answered {reply.status}: {reply.read(500)!r}")
        while line := reply.readline():
            yield line
        # Read the end of the reply, so that the connection takes another request.
        reply.read()

    def get(self, path: str) -> bytes:
        self._connection.request("GET", path)
        return self._connection.getresponse().read()


def whole(peer: Peer, question: str) -> Taken:
    started = time.perf_counter()
    answer = json.loads(b"".join(peer.lines("/v1/chat", json.dumps({"query": question}).encode(), "application/json")))
    return Taken(0.0, time.perf_counter() - started, answer["status"])


def streamed(peer: Peer, question: str) -> Taken:
    """Ask us; the first sentence is the first `delta`, because earlier events are no answer."""
    started, first, event, status = time.perf_counter(), math.inf, b"", ""
    for line in peer.lines("/v1/chat", json.dumps({"query": question}).encode(), "text/event-stream"):
        if line.startswith(b"event:"):
            event = line.partition(b":")[2].strip()
        elif line.startswith(b"data:") and event == b"delta":
            first = min(first, time.perf_counter() - started)
        elif line.startswith(b"data:") and event == b"final":
            status = json.loads(line.partition(b":")[2])["status"]
    return Taken(first, time.perf_counter() - started, status)


def alone(provider: Peer, body: bytes) -> Taken:
    """Send our request to the provider directly."""
    started, first, sentences = time.perf_counter(), math.inf, SentenceReader()
    for line in provider.lines("/v1/chat/completions", body, "text/event-stream"):
        if b'"content"' in line:
            said = json.loads(line.partition(b":")[2])["choices"][0]["delta"]["content"]
            if list(sentences.read(said)):
                first = min(first, time.perf_counter() - started)
    return Taken(first, time.perf_counter() - started)


def paired(ours: Peer, provider: Peer, questions: Sequence[str]) -> Pairs:
    pairs = []
    for question in questions:
        taken = streamed(ours, question)
        # A question refused before the model sends it nothing.
        if taken.status in ("answered", "partial"):
            pairs.append((taken, alone(provider, provider.get("/last"))))
    return pairs[WARM:]


def told(quoted: Sequence[Taken], at_once: Pairs, usual: Pairs) -> int:
    answered = [t for t in quoted if t.status in ("answered", "partial")]
    overheads = {
        "quotes": [t.total for t in answered],
        "a model that answers at once": [mine.total - theirs.total for mine, theirs in at_once],
    }
    ratios = [mine.first / theirs.first for mine, theirs in usual]
    if not all((*overheads.values(), ratios)):
        sys.exit("No question was answered.")
    print("| answers by | answers | overhead p50 | p99 | first segment p50 | p99 |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, seconds in overheads.items():
        print(f"| {name} | {len(seconds)} | {_ms(seconds, 0.5)} | {_ms(seconds, 0.99)} | | |")
    print(f"| a usual model | {len(ratios)} | | | {_at(ratios, 0.5):.3f} × | {_at(ratios, 0.99):.3f} × |")
    slow = any(statistics.median(seconds) > OVERHEAD_SECONDS for seconds in overheads.values())
    return 3 if slow or statistics.median(ratios) > FIRST_SEGMENT else 0


def _at(values: Sequence[float], share: float) -> float:
    return sorted(values)[math.ceil(share * len(values)) - 1]


def _ms(seconds: Sequence[float], share: float) -> str:
    return f"{1000 * _at(seconds, share):.1f} ms"


def made(folder: Path, chunks: int, questions: int) -> list[str]:
    """Write pages with sections of one chunk each, and return `questions` questions about them."""
    chance, all_questions = random.Random(0), []
    pages = max(1, chunks // (SECTIONS + 1))
    folder.mkdir()
    words = ["".join(chance.choice(_SYLLABLES) for _ in range(chance.choice((2, 2, 3)))) for _ in range(_VOCABULARY)]
    for number in range(pages):
        # Each page has its own words, and shares others with all pages.
        own = [*chance.sample(words, 60), *words[:100]]
        parts = [f"# {_phrase(chance, own, 2)} {number}\n\n{_prose(chance, own, 3)}"]
        for _ in range(SECTIONS):
            heading, text = _phrase(chance, own, 3), _prose(chance, own, 8)
            parts.append(f"## {heading}\n\n{text}")
            all_questions.append(f"How does {heading.lower()} work with {' '.join(text.lower().split()[1:5])}?")
        (folder / f"page-{number}.md").write_text("\n\n".join(parts), "utf-8")
    return chance.sample(all_questions, questions)


def _phrase(chance: random.Random, own: Sequence[str], words: int) -> str:
    return " ".join(chance.choice(own) for _ in range(words)).capitalize()


def _prose(chance: random.Random, own: Sequence[str], sentences: int) -> str:
    return " ".join(f"The {_phrase(chance, own, 11).lower()}." for _ in range(sentences))


@contextmanager
def started(command: Sequence[str], folder: str, **environment: str) -> Iterator[int]:
    """Start a server and yield the port that it prints on standard error."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CHAPTERVERSE_")}
    process = subprocess.Popen(command, cwd=folder, env={**inherited, **environment}, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        for line in process.stderr:
            if match := re.search(r"127\.0\.0\.1:(\d+)", line):
                yield int(match[1])
                break
        else:
            sys.exit(f"{' '.join(command)} did not start.")
    finally:
        process.terminate()
        process.wait(30)


def serving(generator: str, provider: int, folder: str) -> Any:
    command = [sys.executable, "-c", "from chapterverse.cli import main; main()", "serve", "--port", "0"]
    url = f"http://127.0.0.1:{provider}"
    return started(command, folder, CHAPTERVERSE_GENERATOR=generator, CHAPTERVERSE_OPENAI_URL=url)


def run(*arguments: str, folder: str) -> None:
    command = [sys.executable, "-c", "from chapterverse.cli import main; main()", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    print(done.stderr.strip().splitlines()[-1], file=sys.stderr)


class Provider(BaseHTTPRequestHandler):
    """A model server that quotes the first source of each request."""

    protocol_version = "HTTP/1.1"
    #: Otherwise the end of a piece waits for the acknowledgment of the piece before.
    disable_nagle_algorithm = True
    last: ClassVar[bytes] = b""

    def do_GET(self) -> None:
        self._head("application/json", ("Content-Length", str(len(self.last))))
        self.wfile.write(self.last)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        type(self).last = body
        request = json.loads(body)
        first, next_ = PACES[request["model"]]
        self._head("text/event-stream", ("Transfer-Encoding", "chunked"))
        for number, piece in enumerate(_quoted(request)):
            time.sleep(next_ if number else first)
            self._send({"choices": [{"index": 0, "delta": {"content": piece}}]})
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self.wfile.write(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n")

    def _head(self, kind: str, header: tuple[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header(*header)
        self.end_headers()

    def _send(self, event: dict[str, Any]) -> None:
        line = f"data: {json.dumps(event)}\n\n".encode()
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")

    def log_message(self, *_: object) -> None: ...


def _quoted(request: dict[str, Any]) -> list[str]:
    """Return the first sentences of the first source with citations, in token-like pieces."""
    text = request["messages"][-1]["content"].partition('number="1">')[2]
    sentences = re.findall(r"The [^.\n]{20,}\.", text)[:4]
    answer = " ".join(f"{sentence[:-1]} [1]." for sentence in sentences)
    return re.findall(r"\s*\S+", answer)


def provide() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.daemon_threads = True
    print(f"127.0.0.1:{server.server_port}", file=sys.stderr, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
