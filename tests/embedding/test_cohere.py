"""The Cohere embedder against a fake Cohere on loopback; the SDK is the oracle of the REST request."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from chapterverse.embedding import open_embedder
from chapterverse.embedding.cohere import MODELS, CohereEmbedder
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.rest import JsonClient
from chapterverse.settings import Settings
from fakes.cohere_server import KEY, CohereServer, Fault, failing, rate_limited, vector, with_vectors

ASKING = "from chapterverse.embedding import open_embedder\nfrom chapterverse.settings import Settings\n"


@pytest.fixture
def server() -> Iterator[CohereServer]:
    with CohereServer() as running:
        yield running


def embedder(server: CohereServer, model: str = "", **settings: Any) -> CohereEmbedder:
    values = {"cohere_url": server.url, "cohere_api_key": KEY, **settings}
    return CohereEmbedder.from_settings(Settings(**values), model)


def words(count: int) -> str:
    return " ".join(f"w{i}" for i in range(count))


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
    "vectors under no name": Fault(change=lambda reply: {**reply, "embeddings": [[0.0] * 1024]}),
    "no embeddings": Fault(change=lambda reply: {"id": "fake", "meta": None}),
    "a list": Fault(change=lambda reply: [1, 2]),
    "no JSON": Fault(change=lambda reply: b"<html>not JSON</html>"),
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


@pytest.mark.parametrize("model", MODELS)
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


@pytest.mark.parametrize("model", MODELS)
def test_the_card_tells_the_size_that_comes_back(server: CohereServer, model: str) -> None:
    cohere = embedder(server, model)
    assert len(cohere.embed_query("hello")) == cohere.card.size
    assert cohere.card.name == f"cohere:{model}"


def test_only_the_fifth_generation_shares_a_space(server: CohereServer) -> None:
    spaces = {name: embedder(server, name).card.space for name in MODELS}
    assert spaces["embed-v5.0-pro"] == spaces["embed-v5.0-fast"]
    assert len(set(spaces.values())) == len(MODELS) - 1


def test_the_default_model_is_english_v3(server: CohereServer) -> None:
    card = embedder(server).card
    assert (card.name, card.size, card.limit) == ("cohere:embed-english-v3.0", 1024, 512)


@pytest.mark.parametrize("position", [0, 1, 47, 95, 96, 120])
def test_a_text_over_the_limit_is_found(server: CohereServer, position: int) -> None:
    texts = [f"text number {i}" for i in range(121)]
    texts[position] = words(513)
    with pytest.raises(TextTooLong, match="over the 512 tokens") as caught:
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


def test_a_build_waits_out_a_rate_limit(server: CohereServer) -> None:
    server.play(rate_limited(0.05), rate_limited(0.05), failing(503))
    started = time.monotonic()
    assert len(embedder(server).embed_documents(["one"])) == 1
    assert time.monotonic() - started > 0.1
    assert len(server.history) == 4


def test_a_build_gives_up_after_six_tries(server: CohereServer) -> None:
    server.play(*[rate_limited()] * 20)
    with pytest.raises(ProviderError, match="rate limit") as caught:
        embedder(server).embed_documents(["one"])
    assert caught.value.retryable
    assert len(server.history) == 6


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


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
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
    [(400, "malformed"), (401, "COHERE_API_KEY"), (402, "billing"), (404, "does not know this model"), (498, "498")],
)
def test_a_refusal_is_final_and_says_what_to_do(server: CohereServer, status: int, reason: str) -> None:
    server.play(failing(status))
    with pytest.raises(ProviderError, match=reason) as caught:
        embedder(server).embed_query("one")
    assert not caught.value.retryable
    assert len(server.history) == 1


def test_a_wrong_key_is_named_but_not_shown(server: CohereServer) -> None:
    cohere = embedder(server, cohere_api_key="s3cret-value")
    for ask in (lambda: cohere.embed_query("one"), lambda: cohere.embed_documents(["one"])):
        with pytest.raises(ProviderError, match="check COHERE_API_KEY") as caught:
            ask()
        assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(cohere)


def test_questions_share_a_connection(server: CohereServer) -> None:
    cohere = embedder(server)
    for _ in range(3):
        cohere.embed_query("one")
    assert server.connections == 1


def test_a_connection_that_was_closed_while_idle_is_replaced(server: CohereServer) -> None:
    cohere = embedder(server)
    server.play(Fault(close=True))
    cohere.embed_query("one")
    time.sleep(0.05)
    assert len(cohere.embed_query("two")) == 1024
    assert len(server.history) == 2


@pytest.mark.parametrize("fault", [Fault(hang=10), Fault(drip=0.02)], ids=["silent", "dripping"])
def test_a_question_has_a_time_in_all(server: CohereServer, fault: Fault) -> None:
    impatient = JsonClient(server.url, {"Authorization": f"Bearer {KEY}"}, total_seconds=0.3)
    server.play(fault)
    started = time.monotonic()
    with pytest.raises(ProviderError, match="in time") as caught:
        replace(embedder(server), rest=impatient).embed_query("one")
    assert caught.value.retryable
    assert time.monotonic() - started < 5


def test_no_server_is_one_sentence() -> None:
    with CohereServer() as gone:
        cohere = embedder(gone)
    with pytest.raises(ProviderError, match="could not be reached") as caught:
        cohere.embed_query("one")
    assert caught.value.retryable


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
        ({"embedder": "cohere", "cohere_api_key": "  "}, "set COHERE_API_KEY"),
        ({"embedder": "cohere", "cohere_api_key": "k\r\nX-Evil: 1"}, "characters that no key has"),
        ({"embedder": "cohere:embed-v9", "cohere_api_key": "k"}, "no Cohere embedding model 'embed-v9'"),
        ({"embedder": "cohere", "cohere_api_key": "k", "cohere_url": "ftp://host"}, "https://HOST"),
        ({"embedder": "cohere", "cohere_api_key": "k", "cohere_url": "https://host:port"}, "https://HOST"),
    ],
)
def test_a_wrong_setting_is_one_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        open_embedder(Settings(**settings))
    assert "Evil" not in str(caught.value)


def test_the_fake_refuses_what_the_real_one_refuses(server: CohereServer) -> None:
    rest = JsonClient(server.url, {"Authorization": f"Bearer {KEY}"})
    good = {"model": "embed-english-v3.0", "input_type": "search_query", "texts": ["a"]}
    assert rest.post("/v2/embed", good).status == 200
    for wrong in (
        {"unknown": 1}, {"texts": []}, {"texts": ["a"] * 97}, {"texts": [""]}, {"input_type": "query"},
        {"truncate": "none"}, {"texts": [words(600)], "truncate": "NONE"}, {"output_dimension": 512},
    ):  # fmt: skip
        assert rest.post("/v2/embed", {**good, **wrong}).status == 400, json.dumps(wrong)
    assert rest.post("/v2/embed", {**good, "model": "embed-english-v2.0"}).status == 404
    assert JsonClient(server.url, {}).post("/v2/embed", good).status == 401
