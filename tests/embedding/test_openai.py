"""The OpenAI-compatible embedder against fakes of OpenAI and local servers, on loopback."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chapterverse.embedding import LazySize, open_embedder
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.ext.net import JsonClient
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.ext.openai.embedder import OpenAIEmbedder
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
from chapterverse.model import EmbedderCard
from chapterverse.settings import Settings
from fakes.bags import vector, words
from fakes.docs import BASE_URL, SCOPE, page, prose, section, source
from fakes.loopback import Fault, failing, rate_limited
from fakes.openai_server import KEY, OpenAIServer

SMALL = "text-embedding-3-small"


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


def embedder(
    server: OpenAIServer, model: str = SMALL, key: str = KEY, slept: list[float] | None = None
) -> OpenAIEmbedder:
    """An embedder whose waits between two tries take no time and are written down."""
    sleep = (lambda seconds: None) if slept is None else slept.append
    settings = Settings(openai_url=server.url, openai_api_key=key)
    return OpenAIEmbedder.from_settings(settings, model, RetryPolicy(sleep=sleep))


def with_data(change: Callable[[list[Any]], Any]) -> Fault:
    return Fault(change=lambda reply: {**reply, "data": change(reply["data"])})


def with_first(**values: Any) -> Fault:
    return with_data(lambda data: [{**data[0], **values}, *data[1:]])


BAD_REPLIES = {
    "too few": with_data(lambda data: data[1:]),
    "too many": with_data(lambda data: [*data, data[0]]),
    "one text twice": with_data(lambda data: [data[0], data[0]]),
    "no such text": with_first(index=2),
    "an index of text": with_first(index="1"),
    "an index that is no number": with_first(index=True),
    "no index": with_data(lambda data: [{"embedding": d["embedding"]} for d in data]),
    "too short": with_first(embedding=[0.1]),
    "base64": with_first(embedding="AAAA"),
    "not a number": with_first(embedding=[float("nan")] * 1536),
    "zeros": with_first(embedding=[0.0] * 1536),
    "no entry": with_data(lambda data: [None, *data[1:]]),
    "no list": with_data(lambda data: {}),
    "no data": Fault(change=lambda reply: {}),
    "no object": Fault(change=lambda reply: [1]),
}


def test_each_text_gets_its_own_vector_whatever_the_order(server: OpenAIServer) -> None:
    texts = [f"text number {i}" for i in range(5)]
    assert embedder(server).embed_documents(texts) == [tuple(vector(text, 1536)) for text in texts]


def test_the_request_is_the_documented_one(server: OpenAIServer) -> None:
    openai = embedder(server)
    openai.embed_documents(["Grüße", "b"])
    openai.embed_query("c")
    built, asked = server.history
    assert (built.path, asked.path) == ("/v1/embeddings", "/v1/embeddings")
    assert built.body == {"model": SMALL, "input": ["Grüße", "b"], "encoding_format": "float"}
    assert asked.body == {"model": SMALL, "input": ["c"], "encoding_format": "float"}
    assert built.headers["authorization"] == f"Bearer {KEY}"


def test_documents_are_sliced_at_96(server: OpenAIServer) -> None:
    assert len(embedder(server).embed_documents(["text"] * 200)) == 200
    assert [len(r.body["input"]) for r in server.history] == [96, 96, 8]
    assert server.connections == 1
    assert embedder(server).embed_documents([]) == []


def test_a_request_stays_below_the_tokens_that_one_may_hold(server: OpenAIServer) -> None:
    # 45 texts of 8,000 tokens, of which OpenAI takes 300,000 at once.
    assert len(embedder(server).embed_documents(["a " * 8000] * 45)) == 45
    assert all(reply.path == "/v1/embeddings" for reply in server.history)
    assert len(server.history) == 3


def test_a_shorter_vector_is_asked_for_on_both_sides(server: OpenAIServer) -> None:
    openai = embedder(server, f"{SMALL}/512")
    assert (openai.card.name, openai.card.size) == (f"openai:{SMALL}/512", 512)
    assert openai.embed_documents(["one"]) == [openai.embed_query("one")] == [tuple(vector("one", 512))]
    assert [r.body["dimensions"] for r in server.history] == [512, 512]


def test_a_card_of_a_known_model_asks_nobody(server: OpenAIServer) -> None:
    openai = embedder(server, "text-embedding-3-large")
    card = openai.card
    assert (card.name, card.size, card.limit, openai.price) == ("openai:text-embedding-3-large", 3072, 8191, 0.13)
    assert server.history == []


def test_the_size_of_an_unknown_model_is_learned_once() -> None:
    with OpenAIServer(key="") as server:
        local = embedder(server, "local-model", key="")
        assert (local.card.size, local.card.limit, local.price) == (64, 0, 0.0)
        assert local.card == local.card
        assert len(local.embed_query("one")) == 64
        assert len(server.history) == 2
        assert "authorization" not in server.history[0].headers


def test_beside_an_index_nobody_is_asked_for_the_size() -> None:
    with OpenAIServer(key="") as server:
        local = embedder(server, "local-model", key="")
        assert isinstance(local, LazySize)
        # Made by another model, so that this one's size is nobody's question.
        assert local.beside(EmbedderCard("openai:other", 3)) == EmbedderCard(
            "openai:local-model", 0, 0, "openai:local-model"
        )
        made = EmbedderCard("openai:local-model", 64, 0, "openai:local-model")
        assert local.beside(made) == made == local.card
        assert server.history == []
        assert len(local.embed_query("one")) == 64
        assert len(server.history) == 1
        # The index was made anew after the server had changed what it calls by that name.
        assert local.beside(replace(made, size=32)).size == 32
        with pytest.raises(ProviderError, match="no vector of 32 numbers"):
            local.embed_query("one")


def test_an_index_tells_nothing_of_a_known_model(server: OpenAIServer) -> None:
    for model, size in ((SMALL, 1536), (f"{SMALL}/512", 512)):
        assert embedder(server, model).beside(EmbedderCard(f"openai:{model}", 3)).size == size
    assert server.history == []


def test_a_size_that_cannot_be_learned_is_the_services_failure() -> None:
    with OpenAIServer(key="") as gone:
        local = embedder(gone, "local-model", key="")
    with pytest.raises(ProviderError, match="could not be reached") as caught:
        _ = local.card
    assert caught.value.retryable


@pytest.mark.parametrize("address", ["{}", "{}/", "{}/v1", "{}/v1/"])
def test_an_address_is_taken_with_its_version_too(server: OpenAIServer, address: str) -> None:
    settings = Settings(embedder=f"openai:{SMALL}", openai_url=address.format(server.url), openai_api_key=KEY)
    opened = open_embedder(settings)
    assert opened is not None
    assert len(opened.embed_query("one")) == 1536


@pytest.mark.parametrize(
    ("model", "document", "question"),
    [
        ("nomic-embed-text", "search_document: ", "search_query: "),
        ("nomic-ai/nomic-embed-text-v1.5", "search_document: ", "search_query: "),
        ("intfloat/multilingual-e5-large", "passage: ", "query: "),
        ("text-embedding-e5-small-v2@q8_0", "passage: ", "query: "),
        ("intfloat/multilingual-e5-large-instruct", "", ""),
        ("mxbai-embed-large:latest", "", "Represent this sentence for searching relevant passages: "),
        ("Snowflake/snowflake-arctic-embed-m", "", "Represent this sentence for searching relevant passages: "),
        ("snowflake-arctic-embed2", "", ""),
        (SMALL, "", ""),
        ("bge-m3", "", ""),
    ],
)
def test_a_model_gets_the_markers_that_it_was_trained_with(model: str, document: str, question: str) -> None:
    # A server that takes any model, as local ones do for what they have loaded.
    with AnyModel() as server:
        local = embedder(server, model, key="")
        local.embed_documents(["text"])
        local.embed_query("text")
        assert server.history[-2].body["input"] == [f"{document}text"]
        assert server.history[-1].body["input"] == [f"{question}text"]
        assert local.card.space == f"openai:{model} {document}".strip()


class AnyModel(OpenAIServer):
    def __init__(self) -> None:
        super().__init__(key="")

    def answer(self, request: Any) -> Any:
        body = {**request.body, "model": SMALL}
        return super().answer(type(request)(request.method, request.path, request.headers, body, request.raw))


@pytest.mark.parametrize("position", [0, 47, 95, 96, 120])
def test_a_text_over_the_limit_is_found(server: OpenAIServer, position: int) -> None:
    texts = [f"text number {i}" for i in range(121)]
    texts[position] = words(8192)
    with pytest.raises(TextTooLong, match=f"Text {position} is too long for {SMALL}") as caught:
        embedder(server).embed_documents(texts)
    assert caught.value.position == position


def test_a_request_refused_for_another_reason_is_no_long_text(server: OpenAIServer) -> None:
    with pytest.raises(ProviderError, match="refused the request as malformed") as caught:
        embedder(server).embed_documents(["good", "", "good"])
    assert not isinstance(caught.value, TextTooLong)


def test_a_server_that_takes_fewer_texts_gets_fewer() -> None:
    with OpenAIServer(most=32) as server:
        texts = [f"text number {i}" for i in range(150)]
        assert embedder(server).embed_documents(texts) == [tuple(vector(text, 1536)) for text in texts]


def test_a_server_that_cuts_in_silence_is_refused() -> None:
    with OpenAIServer(key="", cuts=True) as server:
        with pytest.raises(ConfigurationError, match="'all-minilm' reads only the start of 512 tokens"):
            embedder(server, "all-minilm", key="").embed_documents(["short"])
        # This one has room for every chunk that there can be.
        local = embedder(server, "local-model", key="")
        assert local.embed_documents(["short"]) == [tuple(vector("short", 64))]
        asked = len(server.history)
        local.embed_documents(["short"])
        assert len(server.history) == asked + 1


def test_a_server_that_tells_when_a_text_is_too_long_is_taken() -> None:
    with OpenAIServer(key="") as server:
        local = embedder(server, "all-minilm", key="")
        assert local.embed_documents(["short"]) == [tuple(vector("short", 384))]
        with pytest.raises(TextTooLong):
            local.embed_documents(["short", words(257)])


def test_a_build_waits_out_what_passes(server: OpenAIServer) -> None:
    slept: list[float] = []
    server.play(rate_limited(30), Fault(503, {"Retry-After": "90"}), Fault(cut=True), failing(500))
    assert embedder(server, slept=slept).embed_documents(["one"]) == [tuple(vector("one", 1536))]
    assert slept[:2] == [30, 90]
    assert slept[3] == 0.001
    assert len(server.history) == 5


def test_a_question_is_tried_twice(server: OpenAIServer) -> None:
    server.play(failing(503), failing(503))
    with pytest.raises(ProviderError, match="failed with status 503") as caught:
        embedder(server).embed_query("one")
    assert caught.value.retryable
    assert len(server.history) == 2


@pytest.mark.parametrize("fault", BAD_REPLIES.values(), ids=BAD_REPLIES.keys())
def test_a_reply_that_is_no_vector_is_refused(server: OpenAIServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match="The embedding service"):
        embedder(server).embed_documents(["one", "two"])


@pytest.mark.parametrize(
    ("status", "reason"),
    [(400, "malformed"), (401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "CHAPTERVERSE_OPENAI_URL"),
     (418, "status 418")],
)  # fmt: skip
def test_a_refusal_is_final_and_says_what_to_do(server: OpenAIServer, status: int, reason: str) -> None:
    server.play(failing(status))
    with pytest.raises(ProviderError, match=reason) as caught:
        embedder(server).embed_query("one")
    assert not caught.value.retryable
    assert len(server.history) == 1


def test_an_account_without_credit_is_not_a_rate_that_passes(server: OpenAIServer) -> None:
    server.play(Fault(429, said="You exceeded your current quota", code="insufficient_quota"))
    with pytest.raises(ProviderError, match="check the account's billing") as caught:
        embedder(server).embed_documents(["one"])
    assert not caught.value.retryable
    assert len(server.history) == 1


def test_a_wrong_key_is_named_but_not_shown(server: OpenAIServer) -> None:
    openai = embedder(server, key="s3cret-value")
    for ask in (lambda: openai.embed_query("one"), lambda: openai.embed_documents(["one"])):
        with pytest.raises(ProviderError, match="check OPENAI_API_KEY") as caught:
            ask()
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))
    assert "s3cret" not in repr(vars(openai))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"embedder": "openai"}, "CHAPTERVERSE_EMBEDDER is 'openai': use none, "),
        ({"embedder": f"openai:{SMALL}@int8", "openai_api_key": "k"}, "needs a model: use openai:MODEL"),
        ({"embedder": f"openai:{SMALL}/4096", "openai_api_key": "k"}, "no vectors of over 1536 numbers"),
        ({"embedder": f"openai:{SMALL}"}, "set OPENAI_API_KEY in the environment, or CHAPTERVERSE_OPENAI_URL"),
        ({"embedder": f"openai:{SMALL}", "openai_api_key": "k\r\nX-Evil: 1"}, "OPENAI_API_KEY holds characters"),
        ({"embedder": f"openai:{SMALL}", "openai_url": "localhost:11434"}, "https://HOST"),
        ({"embedder": f"openai:{SMALL}", "openai_url": "https://[::1"}, "https://HOST"),
    ],
)
def test_a_wrong_setting_is_one_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence) as caught:
        open_embedder(Settings().override(**settings))
    assert "Evil" not in str(caught.value)


def test_neither_side_loads_an_sdk(server: OpenAIServer) -> None:
    program = f"""
import sys
from chapterverse.embedding import LazySize, open_embedder
from chapterverse.settings import Settings
from chapterverse.indexing.sync import index
from chapterverse.indexing.target import Target
settings = Settings(embedder="openai:{SMALL}", openai_url={server.url!r}, openai_api_key={KEY!r})
embedder = open_embedder(settings)
assert embedder.embed_documents(["one"]) == [embedder.embed_query("one")]
print(sorted(sys.modules.keys() & {{"openai", "httpx", "requests", "pydantic", "numpy"}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_fake_refuses_what_the_real_one_refuses(server: OpenAIServer) -> None:
    rest = JsonClient(server.url, {"Authorization": f"Bearer {KEY}"})
    good = {"model": SMALL, "input": ["a"]}
    assert rest.post("/v1/embeddings", good).status == 200
    assert rest.post("/v1/embeddings", {**good, "input": "a"}).status == 200
    mistakes: list[dict[str, Any]] = [
        {"unknown": 1}, {"input": []}, {"input": ["a"] * 2049}, {"input": [""]}, {"input": [1.5]}, {"dimensions": 0},
        {"dimensions": 1537}, {"encoding_format": "int8"}, {"input": [words(8192)]}, {"input": [words(8000)] * 38},
    ]  # fmt: skip
    for wrong in mistakes:
        assert rest.post("/v1/embeddings", {**good, **wrong}).status == 400, str(wrong)[:60]
    assert rest.post("/v1/embeddings", {**good, "model": "gpt-2"}).status == 404
    assert JsonClient(server.url, {}).post("/v1/embeddings", good).status == 401


def test_a_build_that_changes_nothing_asks_nothing(server: OpenAIServer, tmp_path: Path) -> None:
    model = "openai:nomic-embed-text"
    settings = Settings(store=f"edge:{tmp_path}", embedder=model, openai_url=server.url, openai_api_key=KEY)
    texts = [prose(i) for i in range(4)]

    def build() -> int:
        asked = len(server.history)
        made = page("a.md", *(section(f"S{i}", text) for i, text in enumerate(texts)))
        index([source(made)], Target.open(settings, SCOPE, BASE_URL))
        return sum(len(request.body["input"]) for request in server.history[asked:])

    assert build() >= 4
    assert build() == 0
    texts.append("One more.")
    assert build() == 1
