"""The Cohere embedder against a fake Cohere on loopback; the SDK is the oracle of the REST request."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chapterverse.embedding import open_embedder
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.ext.cohere.embedder import COHERE_EMBEDDERS, CohereEmbedder
from chapterverse.ext.net import JsonClient
from chapterverse.ext.net.retry import RateLimiter, RetryPolicy
from chapterverse.settings import Settings
from fakes.bags import typed_vector, vector, words
from fakes.billing import assert_sent_once
from fakes.cohere_server import KEY, TRIAL_LIMITS, CohereServer, with_vectors
from fakes.loopback import Fault, failing, rate_limited

SPELLED = ["embed-v4.0/512", "embed-english-v3.0@int8", "embed-v4.0/256@int8", "embed-v5.0-fast@int8"]

ASKING = "from chapterverse.embedding import open_embedder\nfrom chapterverse.settings import Settings\n"


@pytest.fixture
def server() -> Iterator[CohereServer]:
    with CohereServer() as running:
        yield running


def embedder(server: CohereServer, model: str = "", **settings: Any) -> CohereEmbedder:
    """An embedder whose waits between two tries take no time."""
    values = {"cohere_url": server.url, "cohere_api_key": KEY, **settings}
    cohere = CohereEmbedder.from_settings(Settings(**values), model)
    return replace(cohere, retry=RetryPolicy(sleep=lambda seconds: None))


BAD_VECTORS = {
    "too few": with_vectors(lambda v: v[:-1]),
    "too many": with_vectors(lambda v: [*v, v[0]]),
    "too short": with_vectors(lambda v: [v[0][:-1], *v[1:]]),
    "not a number": with_vectors(lambda v: [[math.nan, *v[0][1:]], *v[1:]]),
    "infinite": with_vectors(lambda v: [[math.inf, *v[0][1:]], *v[1:]]),
    "beyond a float": with_vectors(lambda v: [[10**400, *v[0][1:]], *v[1:]]),
    "text": with_vectors(lambda v: [["0.1", *v[0][1:]], *v[1:]]),
    "no list": with_vectors(lambda v: [None for _ in v]),
    "no vectors at all": Fault(change=lambda reply: {**reply, "embeddings": {}}),
    "no embeddings": Fault(change=lambda reply: {"id": "fake", "meta": None}),
}

#: What a build takes for a broken connection, and asks once more.
BROKEN = {
    "vectors under no name": Fault(change=lambda reply: {**reply, "embeddings": [[0.0] * 1024]}),
    "a list": Fault(change=lambda reply: [1, 2]),
    "no JSON": Fault(change=lambda reply: b"<html>not JSON</html>"),
    "too deep": Fault(change=lambda reply: b"[" * 100_000),
    "cut": Fault(cut=True),
}


def test_documents_get_one_vector_each_in_order(server: CohereServer) -> None:
    texts = [f"text number {i}" for i in range(5)]
    vectors = embedder(server).embed_documents(texts)
    assert vectors == [tuple(vector(text, 1024)) for text in texts]


def test_documents_are_sliced_at_96(server: CohereServer) -> None:
    texts = [f"text number {i}" for i in range(200)]
    assert len(embedder(server).embed_documents(texts)) == 200
    assert [len(r.body["texts"]) for r in server.history] == [96, 96, 8]
    assert [text for r in server.history for text in r.body["texts"]] == texts
    assert server.connections == 1


def test_no_documents_are_no_request(server: CohereServer) -> None:
    assert embedder(server).embed_documents([]) == []
    assert server.history == []


@pytest.mark.parametrize("model", [*COHERE_EMBEDDERS, *SPELLED])
def test_rest_sends_what_the_sdk_sends(server: CohereServer, model: str) -> None:
    cohere = embedder(server, model)
    cohere.embed_documents(["Grüße, ‘world’ \U0001f30d\n\tcode"])
    cohere.embed_query("Grüße, ‘world’ \U0001f30d\n\tcode")
    built, asked = server.history
    assert asked.path == built.path == "/v2/embed"
    assert asked.body == {**built.body, "input_type": "search_query"}
    assert asked.headers["authorization"] == built.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["content-type"] == built.headers["content-type"]
    assert built.body["input_type"] == "search_document"
    assert built.body["truncate"] == "NONE"


@pytest.mark.parametrize("model", [*COHERE_EMBEDDERS, *SPELLED])
def test_the_card_tells_the_size_that_comes_back(server: CohereServer, model: str) -> None:
    cohere = embedder(server, model)
    assert len(cohere.embed_query("hello")) == cohere.card.size
    assert cohere.card.name == f"cohere:{model}"


@pytest.mark.parametrize("bad", [0.5, 1.0, "1", True, 128, -129, None])
def test_small_numbers_are_taken_as_they_come(server: CohereServer, bad: Any) -> None:
    asked = embedder(server, "embed-english-light-v3.0@int8")
    for ask in (lambda: asked.embed_documents(["one"]), lambda: asked.embed_query("one")):
        server.play(with_vectors(lambda v: [[bad, *v[0][1:]]]))
        with pytest.raises(ProviderError, match="no vector of 384 numbers"):
            ask()


def test_only_the_fifth_generation_shares_a_space(server: CohereServer) -> None:
    prints = {name: embedder(server, name).card.fingerprint for name in [*COHERE_EMBEDDERS, *SPELLED]}
    assert prints["embed-v5.0-pro"] == prints["embed-v5.0-fast"]
    assert len(set(prints.values())) == len(COHERE_EMBEDDERS) + len(SPELLED) - 1


@pytest.mark.parametrize("model", ["embed-v4.0/256@int8", "embed-english-light-v3.0@int8"])
def test_small_numbers_are_asked_for_on_both_sides(server: CohereServer, model: str) -> None:
    cohere = embedder(server, model)
    expected = tuple(map(float, typed_vector("one", cohere.card.size, "int8")))
    assert cohere.embed_documents(["one"]) == [expected]
    assert cohere.embed_query("one") == expected
    assert all(number.is_integer() for number in expected)
    assert [r.body["embedding_types"] for r in server.history] == [["int8"], ["int8"]]


def test_the_default_model_is_english_v3(server: CohereServer) -> None:
    card = embedder(server).card
    assert (card.name, card.size, card.limit) == ("cohere:embed-english-v3.0", 1024, 512)


@pytest.mark.parametrize("position", [0, 1, 47, 95, 96, 120])
def test_a_text_over_the_limit_is_found(server: CohereServer, position: int) -> None:
    texts = [f"text number {i}" for i in range(121)]
    texts[position] = words(513)
    with pytest.raises(TextTooLong, match=f"Text {position} is too long for embed-english-v3.0") as caught:
        embedder(server).embed_documents(texts)
    assert caught.value.position == position


def test_the_first_of_two_long_texts_is_named(server: CohereServer) -> None:
    with pytest.raises(TextTooLong) as caught:
        embedder(server).embed_documents(["short", words(600), "short", words(600)])
    assert caught.value.position == 1


def test_a_text_at_the_limit_is_taken(server: CohereServer) -> None:
    assert len(embedder(server).embed_documents([words(512)])) == 1


def test_a_request_refused_for_another_reason_is_no_long_text(server: CohereServer) -> None:
    with pytest.raises(ProviderError, match="refused the request") as caught:
        embedder(server).embed_documents(["good", "", "good"])
    assert not isinstance(caught.value, TextTooLong)


def test_a_build_waits_out_what_passes(server: CohereServer) -> None:
    slept: list[float] = []
    cohere = replace(embedder(server), retry=RetryPolicy(sleep=slept.append))
    server.play(rate_limited(30), Fault(503, {"Retry-After": "90"}), Fault(cut=True), failing(500))
    assert cohere.embed_documents(["one"]) == [tuple(vector("one", 1024))]
    assert slept[:2] == [30, 90]
    assert 3.6 <= slept[2] <= 4.4
    assert slept[3] == 0.001
    assert len(server.history) == 5


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_reply_is_asked_for_again_by_a_build(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    assert embedder(server).embed_documents(["one"]) == [tuple(vector("one", 1024))]
    server.play(*[fault] * 6)
    with pytest.raises(ProviderError, match="Cohere") as caught:
        embedder(server).embed_documents(["one"])
    assert caught.value.retryable
    server.play(fault)
    with pytest.raises(ProviderError):
        embedder(server).embed_query("one")


def test_a_build_keeps_the_pace(server: CohereServer) -> None:
    cohere = embedder(server, "embed-english-light-v3.0")
    assert (cohere.rate_limiter.max_inputs, cohere.rate_limiter.seconds) == (2000, 61)
    now, sent = [0.0], []

    def sleep(seconds: float) -> None:
        sent.append(sum(len(r.body["texts"]) for r in server.history))
        now[0] += seconds

    paced = replace(cohere, rate_limiter=RateLimiter(200, 60, clock=lambda: now[0], sleep=sleep))
    paced.embed_documents(["one"] * 250)
    assert (sent, now[0]) == ([192], 60)


def test_a_trial_key_that_is_used_up_is_explained() -> None:
    month = "You are using a Trial key, which is limited to 1000 API calls / month. Secret: s3cret"
    minute = "You are using a Trial key, which is limited to 40 API calls / minute."
    with CohereServer(limits=TRIAL_LIMITS) as server:
        cohere = embedder(server)
        cohere.embed_query("one")
        server.play(*[Fault(429, said="too many requests")] * 6)
        with pytest.raises(
            ProviderError, match="its 40 calls of this minute, or its 1000 calls of this month"
        ) as caught:
            cohere.embed_documents(["one"])
        assert caught.value.retryable
        asked = len(server.history)
        server.play(Fault(429, said=month))
        with pytest.raises(ProviderError, match="used up its 1000 calls of this month: use a production key") as caught:
            cohere.embed_documents(["one"])
        assert not caught.value.retryable
        assert len(server.history) == asked + 1
        assert "s3cret" not in str(caught.value)
    with CohereServer() as server:
        server.play(*[Fault(429, said=minute)] * 2)
        with pytest.raises(ProviderError, match="trial key has used up its calls of this minute"):
            embedder(server).embed_query("one")


@pytest.mark.parametrize("fault", BAD_VECTORS.values(), ids=BAD_VECTORS.keys())
def test_a_reply_that_is_no_vector_is_refused_by_a_build(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match="Cohere"):
        embedder(server).embed_documents(["one", "two"])


@pytest.mark.parametrize("fault", BAD_VECTORS.values(), ids=BAD_VECTORS.keys())
def test_a_reply_that_is_no_vector_is_refused_for_a_question(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError):
        embedder(server).embed_query("one")


@pytest.mark.parametrize("status", [408, 500, 502, 504])
def test_a_question_that_may_be_billed_is_not_tried_again(server: CohereServer, status: int) -> None:
    assert_sent_once(server, status, lambda: embedder(server).embed_query("one"))


@pytest.mark.parametrize("status", [429, 503])
def test_a_question_is_tried_twice(server: CohereServer, status: int) -> None:
    server.play(failing(status))
    assert len(embedder(server).embed_query("one")) == 1024
    server.play(failing(status), failing(status))
    with pytest.raises(ProviderError) as caught:
        embedder(server).embed_query("one")
    assert caught.value.retryable
    assert len(server.history) == 4


def test_a_question_does_not_wait_long(server: CohereServer) -> None:
    server.play(rate_limited(30))
    started = time.monotonic()
    with pytest.raises(ProviderError, match="rate limit"):
        embedder(server).embed_query("one")
    assert time.monotonic() - started < 10
    assert len(server.history) == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "malformed"),
        (401, "COHERE_API_KEY"),
        (402, "billing"),
        (404, "does not know this model"),
        (498, "content filter"),
    ],
)
def test_a_refusal_is_final_and_says_what_to_do(server: CohereServer, status: int, reason: str) -> None:
    server.play(failing(status))
    with pytest.raises(ProviderError, match=reason) as caught:
        embedder(server).embed_query("one")
    assert not caught.value.retryable
    assert len(server.history) == 1


def test_a_wrong_key_is_named_but_not_shown(server: CohereServer) -> None:
    cohere = embedder(server, cohere_api_key="s3cret-value")
    cohere.embed_documents([])
    for ask in (lambda: cohere.embed_query("one"), lambda: cohere.embed_documents(["one"])):
        with pytest.raises(ProviderError, match="check COHERE_API_KEY") as caught:
            ask()
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in repr(cohere)


def test_a_question_loads_no_sdk(server: CohereServer) -> None:
    program = f"""{ASKING}
import sys
settings = Settings(embedder="cohere", cohere_url={server.url!r}, cohere_api_key={KEY!r})
vector = open_embedder(settings).embed_query("one")
assert len(vector) == 1024
print(sorted(sys.modules.keys() & {{"cohere", "httpx", "requests", "pydantic", "numpy"}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_build_without_the_sdk_says_what_to_install(server: CohereServer) -> None:
    program = f"""{ASKING}
import sys
sys.modules["cohere"] = None
settings = Settings(embedder="cohere", cohere_url={server.url!r}, cohere_api_key={KEY!r})
try:
    open_embedder(settings).embed_documents(["one"])
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ConfigurationError")
    assert 'pip install "chapterverse[build]"' in done.stdout


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"embedder": "cohere"}, "set COHERE_API_KEY"),
        ({"embedder": "cohere:embed-v4.0/300", "cohere_api_key": "k"}, "no vectors of 300 numbers"),
        ({"embedder": "cohere", "cohere_api_key": "  "}, "set COHERE_API_KEY"),
        ({"embedder": "cohere", "cohere_api_key": "k\r\nX-Evil: 1"}, "characters that no key has"),
        ({"embedder": "cohere:embed-v9", "cohere_api_key": "k"}, "no Cohere embedding model 'embed-v9'"),
        ({"embedder": "cohere", "cohere_api_key": "k", "cohere_url": "ftp://host"}, "https://HOST"),
        ({"embedder": "cohere", "cohere_api_key": "k", "cohere_url": "https://host:port"}, "https://HOST"),
    ],
)
def test_a_wrong_setting_is_one_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        open_embedder(Settings().override(**settings))
    assert "Evil" not in str(caught.value)


def test_the_fake_refuses_what_the_real_one_refuses(server: CohereServer) -> None:
    rest = JsonClient(server.url, {"Authorization": f"Bearer {KEY}"})
    good = {"model": "embed-english-v3.0", "input_type": "search_query", "texts": ["a"]}
    assert rest.post("/v2/embed", good).status == 200
    mistakes: list[dict[str, Any]] = [
        {"unknown": 1}, {"texts": []}, {"texts": ["a"] * 97}, {"texts": [""]}, {"input_type": "query"},
        {"truncate": "none"}, {"texts": [words(600)], "truncate": "NONE"}, {"output_dimension": 512},
    ]  # fmt: skip
    for wrong in mistakes:
        assert rest.post("/v2/embed", {**good, **wrong}).status == 400, json.dumps(wrong)
    assert rest.post("/v2/embed", {**good, "model": "embed-english-v2.0"}).status == 404
    assert JsonClient(server.url, {}).post("/v2/embed", good).status == 401
