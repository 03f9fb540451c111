"""Measures how soon a service answers from S3: `opening.py [--chunks 1000 5000 20000] [--rounds 5] [--dense 0]`.

Publishes an index of that many chunks of about 1 kB to moto's server on loopback, and has fresh processes with empty
temporary folders read it. Prints for each size the artefact's megabytes and the median milliseconds of: reading the
head; fetching, which unpacks and hashes while the rest arrives; opening; the first search with its evidence; and from
the last byte to the answer. Also unpacking alone, as if all bytes came at once, and the CPU milliseconds of unpacking,
opening and searching, which are more stable on a busy machine. The bar: 400 ms after the download for 20,000 chunks;
the exit code is 3 if it is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chapterverse.model import Point

BAR_MS, BAR_CHUNKS = 400, 20_000
PER_PAGE, WORDS, BATCH = 4, 150, 1000
STAGES = ("head", "fetch", "open", "search", "after", "unpack", "CPU")

#: The program of a fresh process; it does what the service does.
READ = """
import json, sys, tempfile, time
from pathlib import Path
from chapterverse.settings import Settings
from chapterverse.store import open_store
from chapterverse.ext.s3.pack import unpack
from chapterverse_api.contract import RetrievalRequest
from chapterverse_api.commands import ServiceSession

took, began = {}, time.perf_counter()
def done(stage):
    global began
    took[stage], began = 1000 * (time.perf_counter() - began), time.perf_counter()

store = open_store(Settings(store=sys.argv[1]))
(head,) = store.heads()
done("head")
from chapterverse.store.shard import Shard
service = ServiceSession.open(Settings(store=sys.argv[1]))
record, prefix = store._live(head.scope), store._prefix(head.scope)
packed, pieces = record.artefact.packed, []
def noted(stream):
    global last
    for piece in stream:
        pieces.append(piece)
        last = time.perf_counter()
        yield piece
began = time.perf_counter()
folder = Path(tempfile.mkdtemp())
unpack(noted(store._bucket.stream(prefix.key(record.artefact.name), packed.size)), folder / "live", packed)
done("fetch")
worked = time.process_time()
snapshot = Shard.load(folder / "live", head)
done("open")
live = service.resources.index._live
live._open[head.scope], live._heads, live._last_check = snapshot, [head], time.time()
found = service.retrieve(RetrievalRequest(query=sys.argv[2]))
done("search")
assert found.retrieved_chunks
took["after"] = 1000 * (time.perf_counter() - last)
unpack(pieces, folder / "again", packed)
done("unpack")
took["CPU"] = 1000 * (time.process_time() - worked)
print(json.dumps({**took, "bytes": packed.size}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[1000, 5000, 20_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dense", type=int, default=0, help="numbers of a dense vector; 0 for none")
    arguments = parser.parse_args()
    print(f"{'chunks':>8}{'MB':>8}" + "".join(f"{stage:>10}" for stage in STAGES))
    missed = False
    with s3() as environment:
        os.environ.update(environment)
        for chunks in arguments.chunks:
            after = measured(chunks, arguments.dense, arguments.rounds)
            missed = missed or (chunks <= BAR_CHUNKS and after > BAR_MS)
    print("bar missed" if missed else "bar met")
    return 3 if missed else 0


def measured(chunks: int, dense: int, rounds: int) -> float:
    """Publish an index, print the figures of reading it, and return the milliseconds after the last byte."""
    place = f"s3://opening/{chunks}"
    publish(place, chunks, dense)
    runs = [read(place) for _ in range(rounds)]
    medians = {stage: statistics.median(run[stage] for run in runs) for stage in STAGES}
    figures = "".join(f"{figure:10.0f}" for figure in medians.values())
    print(f"{chunks:8}{runs[0]['bytes'] / 1e6:8.1f}{figures}", flush=True)
    return medians["after"]


def read(place: str) -> dict[str, float]:
    folder = tempfile.mkdtemp(prefix="opening-")
    try:
        done = subprocess.run(
            [sys.executable, "-c", READ, place, prose(random.Random(7), 6)],
            env={**os.environ, "TMPDIR": folder}, capture_output=True, text=True, check=True,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def publish(place: str, chunks: int, dense: int) -> None:
    from chapterverse.model import EmbedderCard, Head, Scope
    from chapterverse.settings import Settings
    from chapterverse.store import open_store

    card = EmbedderCard("fake:vectors", dense, 0, "fake") if dense else EmbedderCard()
    with open_store(Settings(store=place)).publish(Scope("docs"), card) as publication:
        for start in range(0, chunks, BATCH):
            publication.write([point(i, dense) for i in range(start, min(chunks, start + BATCH))])
        pages = -(-chunks // PER_PAGE)
        publication.commit(Head("docs", "", 1, pages, chunks, "benchmark", embedder=card))


def point(number: int, dense: int) -> Point:
    from chapterverse.model import Chunk, Point, Scope, chunk_id, embed_hash
    from chapterverse.text.lexical import document_vector

    chance, page = random.Random(number), number // PER_PAGE
    text, path = prose(chance, WORDS), (f"Page {page}", f"Section {number}")
    place = f"{page // 200}/{page}.md"
    chunk = Chunk(
        chunk_id=chunk_id(
            Scope("docs"), language="en", file_path=place, anchor=f"s{number}", index=number % PER_PAGE, text=text,
            path=path,
        ),
        embed_hash=embed_hash("none/0", text), text=text, chapter_title=path[0], section_heading=path[1],
        heading_path=path, chunk_index=number % PER_PAGE, source_file_path=place, anchor_verified=True,
        url=f"https://docs.example/{page // 200}/{page}/#s{number}", source_domain="docs.example",
    )  # fmt: skip
    return Point(chunk, document_vector(path, text), tuple(chance.gauss(0, 1) for _ in range(dense)) or None)


def prose(chance: random.Random, words: int) -> str:
    """Return words with a natural distribution: few are in most documents, most are in few."""
    return " ".join(_word(int(20_000 * chance.random() ** 3)) for _ in range(words)).capitalize() + "."


def _word(number: int) -> str:
    word = ""
    while number or not word:
        number, letter = divmod(number, 20)
        word += "bcdfghjklmnprstvwxyz"[letter] + "aeiou"[letter % 5]
    return word


@contextmanager
def s3() -> Iterator[dict[str, str]]:
    """Run moto's server with a bucket; yield the variables for using it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    program = f"import moto.server; moto.server.main(['-H', '127.0.0.1', '-p', '{port}'])"
    server = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
        wait_for(port)
        import boto3

        boto3.client(
            "s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
        ).create_bucket(Bucket="opening")
        yield {**keys, "AWS_ENDPOINT_URL": url}
    finally:
        server.kill()
        server.wait()


def wait_for(port: int) -> None:
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    sys.exit("moto's server does not start")


if __name__ == "__main__":
    sys.exit(main())
