"""A store on a hanging server: the first questions wait, others fail at once, and it is tried again."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.answer.test_pipeline import ScriptedGenerator
from api.index.live import asked, fits, live, names, settle
from api.index.live import publish as publish_s3
from chapterverse.errors import IndexUnavailable
from chapterverse.ext.qdrant.store import QdrantStore
from chapterverse.ext.s3.bucket import Bucket
from chapterverse.ext.s3.cache import Cache
from chapterverse.ext.s3.store import S3Store
from chapterverse.indexing import sync
from chapterverse.indexing.chunking import ChunkSizes
from chapterverse.indexing.target import Target
from chapterverse.ledger import open_ledger
from chapterverse.settings import Settings
from chapterverse.text import lexical
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span
from chapterverse_api.ext.agents.plans.draft import SCHEMA
from chapterverse_api.ext.agents.plans.plan import PlanRequest
from chapterverse_api.ext.agents.plans.requests import plan_step
from chapterverse_api.ext.budget.circuit_breaker import FAILURE_THRESHOLD, RESET_SECONDS
from chapterverse_api.ext.conversations.threads import Threads
from chapterverse_api.index.live_index import LiveIndex
from chapterverse_api.service import Service
from fakes.clocks import Clock
from fakes.docs import point, prose
from fakes.openai_server import KEY, OpenAIServer
from fakes.qdrant_server import QdrantServer, Request
from fakes.qdrant_server.stores import publish, store_on
from fakes.s3_server import shared

#: Seconds after which a request to the server is given up in these tests, and within which an answer is "at once".
GIVEN_UP, AT_ONCE = 1.5, 1.4
UNWEIGHED = "The index could not be reached any more; all words of the answer were weighed alike."


class Hanging:
    """A server that takes requests and says nothing, for the time of a `with`."""

    def __init__(self, server: QdrantServer, touches: Callable[[Request], bool] = lambda _: True) -> None:
        self.requests = 0
        self._over = threading.Event()
        self._server, self._touches = server, touches

    def __call__(self, request: Request) -> None:
        if self._touches(request):
            self.requests += 1
            self._over.wait(60)

    def __enter__(self) -> Hanging:
        self._server.before = self
        return self

    def __exit__(self, *_: object) -> None:
        self._server.before = None
        self._over.set()


@pytest.fixture
def server() -> Iterator[QdrantServer]:
    with QdrantServer() as server:
        yield server


@pytest.fixture
def clock() -> Clock:
    return Clock(1_800_000_000.0)


def reading(server: QdrantServer) -> QdrantStore:
    return store_on(server, try_seconds=GIVEN_UP)


def index_of(server: QdrantServer, clock: Clock) -> LiveIndex:
    return LiveIndex(reading(server), fits, clock=clock, freezes=False)


def found(index: LiveIndex) -> list[str]:
    return [h.chunk.text for h in asked(index).search_lexical(lexical.query_vector(prose("a"), ("en",)), 5)]


@contextmanager
def within(seconds: float, least: float = 0.0) -> Iterator[None]:
    started = time.perf_counter()
    yield
    assert least <= time.perf_counter() - started < seconds


def fails(ask: Callable[[], Any], count: int = 1) -> None:
    for _ in range(count):
        with pytest.raises(IndexUnavailable):
            ask()


def fails_at_once(ask: Callable[[], Any], count: int = 1) -> None:
    for _ in range(count):
        with within(AT_ONCE):
            fails(ask)


@pytest.mark.slow
def test_questions_to_a_store_that_hangs_are_refused_at_once_after_the_first(
    server: QdrantServer, clock: Clock
) -> None:
    publish(store_on(server), [point("a", prose("a"))])
    index = index_of(server, clock)
    assert found(index) == [prose("a")]
    with Hanging(server) as hanging:
        fails(lambda: found(index), FAILURE_THRESHOLD)
        assert index.is_skipped
        asked_until_then = hanging.requests
        fails_at_once(lambda: found(index), 20)
        assert hanging.requests == asked_until_then
        # Seldom asked, it is tried by a look in the background, and nobody waits for that.
        for _ in range(3):
            clock.now += RESET_SECONDS
            fails_at_once(lambda: found(index), 5)
            settle()
        assert asked_until_then < hanging.requests <= asked_until_then + 3
    # It is back: until the next look the others are refused, and then they are answered.
    fails_at_once(lambda: found(index))
    clock.now += RESET_SECONDS
    with within(AT_ONCE):
        assert found(index) == [prose("a")]
    assert [index.is_skipped, index.trouble] == [False, None]


@pytest.mark.slow
def test_one_failure_among_good_answers_leaves_it_asked(server: QdrantServer, clock: Clock) -> None:
    publish(store_on(server), [point("a", prose("a"))])
    index = index_of(server, clock)
    for _ in range(FAILURE_THRESHOLD + 1):
        with Hanging(server, lambda request: request.path.endswith("/query")):
            fails(lambda: found(index))
        assert found(index) == [prose("a")]


@pytest.mark.slow
def test_a_store_that_hangs_from_the_start_is_waited_for_once(server: QdrantServer, clock: Clock) -> None:
    publish(store_on(server), [point("a", prose("a"))])
    index = index_of(server, clock)
    with Hanging(server) as hanging:
        with within(2 * GIVEN_UP, least=GIVEN_UP):
            fails(lambda: found(index))
        fails_at_once(lambda: found(index), 10)
        for _ in range(8):
            clock.now += 10
            fails_at_once(lambda: found(index), 3)
            settle()
        # A look every ten seconds, until it is left alone for longer.
        assert 4 <= hanging.requests <= 6
    clock.now += RESET_SECONDS
    with within(AT_ONCE):
        assert found(index) == [prose("a")]
    assert index.trouble is None


@pytest.mark.parametrize("hangs", ["from the start", "as it is opened"])
def test_who_asks_at_once_waits_for_one_try_together(server: QdrantServer, clock: Clock, hangs: str) -> None:
    publish(store_on(server), [point("a", prose("a"))])
    index = index_of(server, clock)
    if hangs == "as it is opened":
        index.heads()
    with Hanging(server) as hanging, ThreadPoolExecutor(12) as pool:
        with within(2.5 * GIVEN_UP):
            assert [*pool.map(lambda _: fails(lambda: found(index)), range(12))]
        assert hanging.requests == 1
    clock.now += 10
    assert found(index) == [prose("a")]


@pytest.fixture
def service(server: QdrantServer, tmp_path: Path) -> Service:
    settings = Settings(ledger=f"sqlite:{tmp_path / 'ledger'}", site=quill.SCOPE.site)
    store = store_on(server)
    target = Target(quill.SCOPE, store, open_ledger(settings), None, ChunkSizes(), quill.BASE)
    sync.index([quill.source(path, text) for path, text in quill.PAGES.items()], target)
    return quill.service(settings, store=reading(server))


@pytest.mark.slow
def test_a_selection_is_answered_while_the_index_is_out_of_reach(server: QdrantServer, service: Service) -> None:
    def ask() -> Any:
        return quill.ask(service, "How do I clear the cache?")

    assert ask().status == "answered"
    assert service.status().degraded == []
    with Hanging(server):
        fails(ask, FAILURE_THRESHOLD)
        fails_at_once(ask, 3)
        assert service.status().degraded == ["index"]
        with within(AT_ONCE):
            said = quill.ask(service, None, selected_text="Quill keeps its cache in a folder called .quill.")
        assert (said.mode, said.status) == ("selected_text", "answered")


def test_an_answer_stands_whose_index_hangs_when_it_is_checked(server: QdrantServer, service: Service) -> None:
    # Quotes need no index for the check; a model's sentence does.
    model = ScriptedGenerator(Span("The command `quill cache clean` removes every entry.", ("1",)))
    service = quill.service(Settings(site=quill.SCOPE.site), store=reading(server), generator=model)
    with Hanging(server, after_the_search()):
        said = quill.ask(service, "How do I clear the cache?")
    assert said.status == "degraded"
    assert said.sources_cited
    assert said.degraded_reason == UNWEIGHED


def test_a_plan_stands_whose_index_hangs_when_it_is_checked(
    server: QdrantServer, service: Service, tmp_path: Path
) -> None:
    (tmp_path / "broken").write_bytes(b"no database" * 100)
    step = {"id": "a", "kind": "action", "text": "The command `quill cache clean` removes every entry."}
    members = SCHEMA.document["properties"]["steps"]["items"]["properties"]
    with OpenAIServer() as model:
        model.scripts.append([json.dumps({"title": "Clean", "steps": [{**dict.fromkeys(members), **step}]})])
        settings = Settings(
            site=quill.SCOPE.site,
            generator="openai:gpt-4.1-mini",
            openai_url=model.url,
            openai_api_key=KEY,
            records=f"sqlite:{tmp_path / 'broken'}",
        )
        planning = quill.service(settings, store=reading(server))
        assert isinstance(planning.resources.threads, Threads)
        planning.resources.threads.recall("abc")
        assert planning.resources.threads.degraded
        with Hanging(server, after_the_search()):
            reply = plan_step(planning, PlanRequest(query="How do I clear the cache?"), deadline=Deadline())
    # A plan is not kept: it loses nothing by a database that can't be reached.
    assert (reply.status, reply.planned_by, reply.degraded_reason) == ("open", "model", UNWEIGHED)


def after_the_search() -> Callable[[Request], bool]:
    """Return which requests of an answer come after the first, its search."""
    counts = list[Request]()

    def touches(request: Request) -> bool:
        counts.extend([request] if request.path.endswith("/query/batch") else [])
        return len(counts) > 1

    return touches


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    with shared().entered(tmp_path) as entered:
        yield Bucket(entered.bucket(), "index", GIVEN_UP)


@pytest.mark.slow
def test_a_bucket_that_hangs_is_waited_for_once(bucket: Bucket, clock: Clock, tmp_path: Path) -> None:
    publish_s3(bucket, "a")
    over = threading.Event()

    def hangs(environ: Any, start: Any, app: Any) -> Any:
        over.wait(60)
        return app(environ, start)

    shared().faults.extend([hangs] * 99)
    index = live(S3Store(bucket, Cache(tmp_path / "reader")), clock)
    try:
        with within(2 * GIVEN_UP, least=GIVEN_UP):
            fails(lambda: asked(index))
        fails_at_once(lambda: asked(index), 10)
        for _ in range(5):
            clock.now += 10
            fails_at_once(lambda: asked(index), 3)
            settle()
        assert index.is_skipped
    finally:
        shared().faults.clear()
        over.set()
    clock.now += RESET_SECONDS
    index.heads()
    settle()
    assert names(asked(index)) == ["a"]
    assert not index.is_skipped
