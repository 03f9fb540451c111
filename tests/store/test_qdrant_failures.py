"""A Qdrant server that rejects, fails, hangs or is missing: spaced, bounded retries, then one sentence."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from chapterverse.errors import ConfigurationError, IndexFault
from chapterverse.ext.qdrant.server import QdrantRetry
from chapterverse.settings import Settings
from chapterverse.store import open_store
from fakes.docs import SCOPE, point, prose
from fakes.qdrant_server import GOOD, KEY, Fault, QdrantServer, Request
from fakes.qdrant_server.stores import NONE, publish, store_on, texts

A, B = (point(name, prose(name)) for name in "ab")


def read(server: QdrantServer, key: str = KEY) -> Any:
    return store_on(server, key=key).snapshot(SCOPE)


def write(server: QdrantServer, key: str = KEY) -> Any:
    return publish(store_on(server, key=key, tries=2), [B])


@pytest.mark.parametrize("do", [read, write])
@pytest.mark.parametrize("key", ["wrong-key", ""])
def test_a_refused_key(do: Callable[..., Any], key: str) -> None:
    with QdrantServer() as server, pytest.raises(ConfigurationError, match="refused the key: set QDRANT_API_KEY"):
        do(server, key)
    assert len(server.history) == 1


@pytest.mark.parametrize("do", [read, write])
def test_a_server_that_is_not_there(do: Callable[..., Any]) -> None:
    with QdrantServer() as server:
        pass
    with pytest.raises(IndexFault, match=r"127\.0\.0\.1 could not be reached or broke off"):
        do(server)


@pytest.mark.parametrize("do", [read, write])
@pytest.mark.parametrize(
    "fault",
    [
        Fault(500),
        Fault(503, {"Retry-After": "0"}),
        Fault(429, {"Retry-After": "0"}),
        Fault(429, {"Retry-After": "in a while"}),
        Fault(change=lambda _: b"<html>no server of ours</html>"),
        Fault(change=lambda _: {"result": None}),
        Fault(change=lambda _: []),
        Fault(cut=True),
        Fault(lost=True),
    ],
)
def test_every_failure_is_one_sentence_and_harms_nothing(do: Callable[..., Any], fault: Fault) -> None:
    with QdrantServer() as server:
        publish(store_on(server), [A])
        server.play(*[fault] * 50)
        with pytest.raises(IndexFault) as caught:
            do(server)
        said = str(caught.value)
        assert said.endswith(".")
        assert "\n" not in said
        assert KEY not in said
        assert "html" not in said
        server.faults.clear()
        assert texts(store_on(server)) == {A.chunk.text}


REPLIES: list[Any] = [[], 3, {}, {"points": 3}, {"points": [3]}, {"count": "x"}, {"points": [{"id": "x"}]}]
FOREIGN: list[dict[str, Any]] = [
    {},
    {"payload": None},
    {"payload": {"chunk_id": 3}},
    {"payload": {"chunk_id": "x"}, "vector": [1.0]},
]
REPLIES += [{"points": [{"id": "x", "score": 1.0, **point}]} for point in FOREIGN]


@pytest.mark.parametrize("result", REPLIES)
def test_a_reply_that_is_none_is_one_sentence(result: Any) -> None:
    with QdrantServer() as server:
        publish(store_on(server), [A])
        snapshot = store_on(server).snapshot(SCOPE)
        asks: list[Callable[[], Any]] = [
            snapshot.is_complete,
            lambda: snapshot.search_lexical(A.lexical, 3),
            lambda: snapshot.document_frequencies(A.lexical.indices),
            lambda: list(snapshot.points()),
            lambda: snapshot.page("a.md"),
            lambda: snapshot.values("url"),
        ]
        for ask in asks:
            server.play(*[Fault(change=lambda _: {"result": result})] * 3)
            with contextlib.suppress(IndexFault):
                # What can be understood as an answer is one: no point, or none of ours.
                assert not ask()
            server.faults.clear()


@pytest.mark.parametrize("info", [{"payload_schema": None}, {"payload_schema": 3}, {"payload_schema": {}}, {}])
def test_a_description_that_is_none_is_one_sentence(info: Any) -> None:
    with QdrantServer() as server:
        publish(store_on(server), [A])
        # Of the collection of points, which is described before the first write of each publication.
        before = next(i for i, r in enumerate(history_of_a_publication(server)) if r.path.endswith("/collections/docs"))
        server.play(*[GOOD] * before, *[Fault(change=lambda _: {"result": info})] * 2)
        with pytest.raises(IndexFault, match=r"check the address\.|give the index one of its own"):
            write(server)
        assert texts(store_on(server)) == {A.chunk.text}


def history_of_a_publication(server: QdrantServer) -> list[Request]:
    """Return the requests of a publication, which is not committed."""
    server.history.clear()
    with store_on(server).publish(SCOPE, NONE) as publication:
        publication.write([B])
    return [*server.history]


def test_a_storm_is_waited_out() -> None:
    waited: list[float] = []
    with QdrantServer() as server:
        faults = [Fault(503), Fault(429, {"Retry-After": "7"}), Fault(refuse=True), Fault(cut=True), GOOD, GOOD]
        server.play(*faults * 8)
        publish(store_on(server, sleep=waited.append, first_pause=1), [A])
        assert texts(store_on(server)) == {A.chunk.text}
    # What the server asked for, else longer each time and never twice the same.
    assert 7.0 in waited
    others = [seconds for seconds in waited if seconds != 7.0]
    assert all(0.5 <= seconds <= 8.0 for seconds in others)
    assert len(set(others)) == len(others) > 10


def test_tries_are_bounded_in_number_and_in_time() -> None:
    waited: list[float] = []
    with QdrantServer() as server:
        server.play(*[Fault(503)] * 100)
        with pytest.raises(IndexFault):
            publish(store_on(server, sleep=waited.append), [A])
        assert len(server.history) == QdrantRetry().tries == len(waited) + 1
        server.history.clear()
        server.faults.clear()
        server.play(*[Fault(429, {"Retry-After": "3600"})] * 100)
        with pytest.raises(IndexFault, match="allows no more requests for now"):
            publish(store_on(server, sleep=waited.append), [A])
        assert len(server.history) == 1


def test_a_reader_sends_a_request_once() -> None:
    with QdrantServer() as server:
        publish(store_on(server), [A])
        reader = open_store(Settings(store="qdrant:", qdrant_url=server.url, qdrant_api_key=KEY))
        server.history.clear()
        server.play(*[Fault(503)] * 10)
        with pytest.raises(IndexFault):
            reader.heads()
        assert len(server.history) == 1


def test_a_server_that_hangs_is_given_up() -> None:
    with QdrantServer() as server:
        server.play(Fault(hang=3.0))
        with pytest.raises(IndexFault, match="could not be reached or broke off"):
            publish(store_on(server, tries=1, try_seconds=1), [A])


def test_giving_up_takes_a_minute_at_most() -> None:
    retry = QdrantRetry()
    # The request that fails, then one try each to undo and to let the lease go.
    assert retry.total_seconds + 3 * retry.try_seconds <= 60
    with QdrantServer() as server:

        def fail() -> None:
            with store_on(server).publish(SCOPE, NONE) as publication:
                server.history.clear()
                server.play(*[Fault(503)] * 100)
                publication.write([A])

        with pytest.raises(IndexFault):
            fail()
        assert len(server.history) <= retry.tries + 2


@pytest.mark.parametrize("version", ["1.18.2", "0.9.0", "1.9.9-dev"])
def test_a_server_that_is_too_old(version: str) -> None:
    with QdrantServer(version=version) as server:
        with pytest.raises(IndexFault, match=r"runs Qdrant .*, which is too old: upgrade it to 1\.19 or later"):
            publish(store_on(server), [A])
        assert server.collections == []


@pytest.mark.parametrize("version", ["1.19.0", "1.20.3-rc1", "2.0.0", "dev"])
def test_a_server_that_is_new_enough(version: str) -> None:
    with QdrantServer(version=version) as server:
        publish(store_on(server), [A])
        assert sum(r.path == "/" for r in server.history) == 1


def test_without_a_key_none_is_sent() -> None:
    with QdrantServer(key=None) as server:
        publish(store_on(server, key=""), [A])
        assert texts(store_on(server, key="")) == {A.chunk.text}
        assert not any("api-key" in r.headers for r in server.history)


def test_the_server_of_the_environment() -> None:
    with QdrantServer() as server:
        store = open_store(Settings(store="qdrant:", qdrant_url=server.url, qdrant_api_key=KEY))
        publish(store, [A])
        assert texts(store) == {A.chunk.text}
        assert KEY not in repr(store) + repr(vars(store))


def test_a_failure_inside_the_block_is_not_hidden_by_the_one_of_undoing() -> None:
    with QdrantServer() as server:

        def fail() -> None:
            with store_on(server, tries=1).publish(SCOPE, NONE) as publication:
                publication.write([A])
                server.die_after(0)
                raise RuntimeError("the real reason")

        with pytest.raises(RuntimeError, match="the real reason"):
            fail()


def test_a_collection_that_is_not_ours_is_not_written_to() -> None:
    with QdrantServer() as server:
        body = {"vectors": {"text": {"size": 3, "distance": "Dot"}}}
        server.send("PUT", "/collections/docs", body)
        with pytest.raises(IndexFault, match=r"refused what was asked \(status 400\): give the index a collection of"):
            publish(store_on(server), [A])
        assert server.points("docs") == []
        publish(store_on(server, options="?collection=mine"), [A])


def test_the_store_loads_no_client() -> None:
    with QdrantServer() as server:
        code = (
            "import sys\n"
            "from chapterverse.model import EmbedderCard, Scope\n"
            "from chapterverse.settings import Settings\n"
            "from chapterverse.store import open_store\n"
            f"store = open_store(Settings(store='qdrant:{server.url}', qdrant_api_key={KEY!r}))\n"
            "with store.publish(Scope('docs'), EmbedderCard()) as publication: publication.preview()\n"
            "print(store.heads(), store.is_complete(Scope('docs')))\n"
            "print(sorted({'qdrant_client', 'qdrant_edge', 'httpx', 'numpy', 'pydantic'} & sys.modules.keys()))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert any(r.method == "PUT" for r in server.history)
    assert done.stdout.split("\n")[:2] == ["[] True", "[]"]


def test_no_request_names_more_than_the_server_takes() -> None:
    made = [point(f"p{i}", prose(i, 5)) for i in range(1200)]
    largest: dict[str, int] = {}

    def measure(request: Request) -> None:
        size = len(repr(request.body))
        largest[request.path] = max(size, largest.get(request.path, 0))

    with QdrantServer() as server:
        server.before = measure
        publish(store_on(server), made)
        publish(store_on(server), [], [p.chunk.chunk_id for p in made])
        snapshot = store_on(server).snapshot(SCOPE)
        assert list(snapshot.points(f"{i}.md" for i in range(3000))) == []
    # The server's own limit is 32 MB.
    assert max(largest.values()) < 4_000_000
