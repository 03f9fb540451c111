"""The Cohere reranker against a fake Cohere on loopback; the official SDK is the oracle of the request."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from api.search.rerankers.damage import BAD_RANKINGS, BROKEN
from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.ext.net import JsonClient
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.ext.cohere.reranker import CohereReranker
from fakes.billing import assert_sent_once
from fakes.cohere_server import KEY, TRIAL_LIMITS, CohereServer
from fakes.loopback import Fault, failing, rate_limited
from fakes.rankings import relevance

MODELS = ["rerank-v3.5", "rerank-v4.0-fast", "rerank-v4.0-pro", "rerank-v5.0-fast", "rerank-v5.0-pro"]

QUESTION = "How do I rotate a key?"
TEXTS = [
    "Guide > Install\nDownload it, and unpack it where you like.",
    "Guide > Keys\nTo rotate a key, make a new key and remove the old one. How often is up to you.",
    "Guide > Keys\nA key has 32 characters.",
]


@pytest.fixture
def server() -> Iterator[CohereServer]:
    with CohereServer() as running:
        yield running


def reranker(server: CohereServer, model: str = "", **settings: Any) -> CohereReranker:
    values = {"cohere_url": server.url, "cohere_api_key": KEY, **settings}
    return CohereReranker.from_settings(Settings(**values), model)


def test_each_text_gets_its_own_score_in_the_order_given(server: CohereServer) -> None:
    scores = reranker(server).rerank(QUESTION, TEXTS)
    assert scores == [relevance(QUESTION, text) for text in TEXTS]
    assert scores[1] > scores[2] > scores[0]
    assert reranker(server).rerank(QUESTION, TEXTS[::-1]) == scores[::-1]


@pytest.mark.parametrize("model", MODELS)
def test_it_sends_what_the_sdk_sends(server: CohereServer, model: str) -> None:
    cohere = pytest.importorskip("cohere")
    import httpx

    texts = [*TEXTS, "Grüße, ‘world’ \U0001f30d\n\tcode"]
    scores = reranker(server, model).rerank("Grüße \U0001f30d?", texts)
    with httpx.Client() as http:
        sdk = cohere.ClientV2(KEY, base_url=server.url, httpx_client=http)
        said = sdk.rerank(model=model, query="Grüße \U0001f30d?", documents=texts, top_n=len(texts))
    ours, theirs = server.history
    assert (ours.method, ours.path, ours.body) == (theirs.method, theirs.path, theirs.body)
    assert ours.path == "/v2/rerank"
    for name in ("authorization", "content-type"):
        assert ours.headers[name] == theirs.headers[name]
    assert scores == [score for _, score in sorted((r.index, r.relevance_score) for r in said.results)]


def test_a_name_is_the_model_asked(server: CohereServer) -> None:
    assert reranker(server).name == "cohere:rerank-v3.5"
    named = reranker(server, "rerank-v5.0-pro")
    assert named.name == "cohere:rerank-v5.0-pro"
    named.rerank(QUESTION, TEXTS)
    assert server.history[0].body["model"] == "rerank-v5.0-pro"


def test_a_model_that_we_do_not_know_is_asked_for(server: CohereServer) -> None:
    with pytest.raises(ProviderError, match="Cohere does not know this model: check its name") as caught:
        reranker(server, "rerank-v9").rerank(QUESTION, TEXTS)
    assert not caught.value.retryable
    assert server.history[0].body["model"] == "rerank-v9"


def test_a_hundred_texts_are_one_search_and_more_are_more(server: CohereServer) -> None:
    texts = [f"key number {i}" for i in range(205)]
    scores = reranker(server).rerank("key 7", texts)
    assert [len(r.body["documents"]) for r in server.history] == [100, 100, 5]
    assert [r.body["top_n"] for r in server.history] == [100, 100, 5]
    assert scores == [relevance("key 7", text) for text in texts]
    assert max(scores) == scores[7]
    assert server.connections == 1


def test_a_blank_text_has_zero_and_is_never_sent(server: CohereServer) -> None:
    scores = reranker(server).rerank(QUESTION, ["", TEXTS[1], " \n\t", TEXTS[2], ""])
    assert scores == [0, relevance(QUESTION, TEXTS[1]), 0, relevance(QUESTION, TEXTS[2]), 0]
    assert server.history[0].body["documents"] == TEXTS[1:]
    assert reranker(server).rerank(QUESTION, []) == []
    assert reranker(server).rerank(QUESTION, ["", "\n"]) == [0, 0]
    assert len(server.history) == 1


def test_odd_characters_arrive(server: CohereServer) -> None:
    scores = reranker(server).rerank("鍵 \ud800 \x00 ключ", ["鍵 \udfff", "ключ\x00", "-" * 5000])
    assert all(0 <= score <= 1 for score in scores)
    assert server.history[0].body["query"] == "鍵 ? \x00 ключ"


@pytest.mark.parametrize("fault", BAD_RANKINGS.values(), ids=BAD_RANKINGS.keys())
def test_a_reply_that_is_no_ranking_is_refused(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match=r"^Cohere answered with something that is no ranking of 3 texts\.$"):
        reranker(server).rerank(QUESTION, TEXTS)
    assert len(server.history) == 1


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_reply_is_one_sentence(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match=r"no ranking of 3 texts|could not be reached or broke off"):
        reranker(server).rerank(QUESTION, TEXTS)


@pytest.mark.parametrize("status", [408, 500, 502, 504])
def test_what_may_be_billed_is_not_tried_again(server: CohereServer, status: int) -> None:
    assert_sent_once(server, status, lambda: reranker(server).rerank(QUESTION, TEXTS))


@pytest.mark.parametrize("status", [429, 503])
def test_it_is_tried_twice(server: CohereServer, status: int) -> None:
    server.play(failing(status))
    assert len(reranker(server).rerank(QUESTION, TEXTS)) == 3
    server.play(*[failing(status)] * 20)
    with pytest.raises(ProviderError) as caught:
        reranker(server).rerank(QUESTION, TEXTS)
    assert caught.value.retryable
    assert len(server.history) == 4


def test_a_long_wait_is_not_waited(server: CohereServer) -> None:
    server.play(rate_limited(30))
    with pytest.raises(ProviderError, match="Cohere has a rate limit that was reached: try again later") as caught:
        reranker(server).rerank(QUESTION, TEXTS)
    assert caught.value.retryable
    assert len(server.history) == 1


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "refused the request as malformed"),
        (401, "refused the key: check COHERE_API_KEY"),
        (402, "has a budget, a quota or a balance that is used up: check the account's billing"),
        (403, "refused the key: check COHERE_API_KEY"),
        (404, "does not know this model: check its name and CHAPTERVERSE_COHERE_URL"),
        (422, "refused the request as malformed"),
        (498, "withheld the answer by its content filter: ask in other words"),
    ],
)
def test_a_refusal_is_final_and_says_what_to_do(server: CohereServer, status: int, reason: str) -> None:
    server.play(Fault(status, said=f"s3cret about {QUESTION}"))
    with pytest.raises(ProviderError) as caught:
        reranker(server).rerank(QUESTION, TEXTS)
    assert str(caught.value) == f"Cohere {reason}."
    assert not caught.value.retryable
    assert len(server.history) == 1
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_trial_key_that_is_used_up_is_explained() -> None:
    with CohereServer(limits={**TRIAL_LIMITS, "x-trial-endpoint-call-limit": "10"}) as server:
        asking = reranker(server)
        asking.rerank(QUESTION, TEXTS)
        server.play(*[rate_limited()] * 2)
        with pytest.raises(ProviderError, match="trial key has used up its 10 calls of this minute"):
            asking.rerank(QUESTION, TEXTS)


def test_a_wrong_key_is_named_but_not_shown(server: CohereServer) -> None:
    asking = reranker(server, cohere_api_key="s3cret-value")
    with pytest.raises(ProviderError, match="check COHERE_API_KEY") as caught:
        asking.rerank(QUESTION, TEXTS)
    shown = "".join(traceback.format_exception(caught.value)) + repr(asking)
    assert "s3cret" not in shown
    assert QUESTION not in str(caught.value)


def test_no_server_is_one_sentence() -> None:
    with CohereServer() as gone:
        asking = reranker(gone)
    with pytest.raises(ProviderError, match=r"^127\.0\.0\.1 could not be reached or broke off\.$") as caught:
        asking.rerank(QUESTION, TEXTS)
    assert caught.value.retryable


@pytest.mark.slow
@pytest.mark.parametrize("fault", [Fault(hang=30), Fault(drip=0.2)], ids=["silent", "dripping"])
def test_a_slow_server_is_left_after_four_seconds(server: CohereServer, fault: Fault) -> None:
    server.play(fault)
    started = time.monotonic()
    with pytest.raises(ProviderError, match="did not answer in time") as caught:
        reranker(server).rerank(QUESTION, TEXTS)
    assert time.monotonic() - started < 8
    assert caught.value.retryable


def test_a_question_loads_no_sdk(server: CohereServer) -> None:
    program = f"""
import sys
from chapterverse.settings import Settings
from chapterverse.extensions import open_offer
settings = Settings(reranker="cohere", cohere_url={server.url!r}, cohere_api_key={KEY!r})
assert len(open_offer("reranker", settings).rerank("one", ["one", "two"])) == 2
print(sorted(sys.modules.keys() & {{"cohere", "httpx", "requests", "pydantic", "numpy", "boto3", "tiktoken"}}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"cohere_api_key": ""}, "The reranker cohere needs a key: set COHERE_API_KEY in the environment."),
        ({"cohere_api_key": "  "}, "The reranker cohere needs a key: set COHERE_API_KEY in the environment."),
        ({"cohere_api_key": "k\r\nX-Evil: 1"}, "COHERE_API_KEY holds characters that no key has: copy it again."),
        ({"cohere_api_key": "k", "cohere_url": "ftp://h"}, "'ftp://h' is no address of a service: use https://HOST."),
    ],
)
def test_a_wrong_setting_is_one_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_offer("reranker", Settings(reranker="cohere:rerank-v3.5").override(**settings))
    assert str(caught.value) == sentence


def test_the_fake_refuses_what_the_real_one_refuses(server: CohereServer) -> None:
    rest = JsonClient(server.url, {"Authorization": f"Bearer {KEY}"})
    good = {"model": "rerank-v3.5", "query": "a", "documents": ["a", "b"]}
    assert rest.post("/v2/rerank", good).status == 200
    assert len(rest.post("/v2/rerank", {**good, "top_n": 1}).body["results"]) == 1
    mistakes: list[dict[str, Any]] = [
        {"unknown": 1}, {"documents": []}, {"documents": ["", " "]}, {"documents": [{"text": "a"}]}, {"query": ""},
        {"query": None}, {"top_n": 0}, {"max_tokens_per_doc": 0}, {"documents": ["a"] * 10_001},
    ]  # fmt: skip
    for wrong in mistakes:
        assert rest.post("/v2/rerank", {**good, **wrong}).status == 400, wrong
    assert rest.post("/v2/rerank", {**good, "model": "rerank-v9"}).status == 404
    assert JsonClient(server.url, {}).post("/v2/rerank", good).status == 401
