"""Cohere's rerankers on Bedrock with the real boto3, against a fake on loopback; Cohere's SDK is the body's oracle."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import pytest

from api.search.rerankers.damage import BAD_RANKINGS, BROKEN
from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.ext.bedrock.reranker import BedrockReranker
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer
from fakes.loopback import Fault, failing, rate_limited
from fakes.rankings import relevance

pytest.importorskip("boto3")

V3 = "cohere.rerank-v3-5:0"
QUESTION = "How do I rotate a key?"
TEXTS = [
    "Guide > Install\nDownload it, and unpack it where you like.",
    "Guide > Keys\nTo rotate a key, make a new key and remove the old one. How often is up to you.",
    "Guide > Keys\nA key has 32 characters.",
]


@pytest.fixture
def server() -> Iterator[BedrockServer]:
    with BedrockServer() as running, aws_environment(running):
        yield running


def test_each_text_gets_its_own_score_in_the_order_given(server: BedrockServer) -> None:
    scores = BedrockReranker.from_settings(Settings(), V3).rerank(QUESTION, TEXTS)
    assert scores == [relevance(QUESTION, text) for text in TEXTS]
    assert scores[1] > scores[2] > scores[0]


def test_it_sends_what_cohere_s_sdk_sends(server: BedrockServer) -> None:
    pytest.importorskip("cohere")
    import httpx
    from cohere.aws_client import map_request_to_bedrock

    BedrockReranker.from_settings(Settings(), V3).rerank("Grüße \U0001f30d?", TEXTS)
    body = {"model": V3, "query": "Grüße \U0001f30d?", "documents": TEXTS, "top_n": 3}
    with httpx.Client() as http:
        theirs = http.build_request("POST", "https://bedrock.example/v2/rerank", json=body)
    map_request_to_bedrock("bedrock", "AKIAEXAMPLE", "s3cret-value", None, "us-east-1")(theirs)
    (ours,) = server.history
    assert ours.body == json.loads(theirs.content)
    assert ours.path == theirs.url.raw_path.decode().replace(":", "%3A")


@pytest.mark.parametrize("model", [V3, f"us.{V3}"])
def test_a_name_is_the_model_asked(server: BedrockServer, model: str) -> None:
    opened = open_offer("reranker", Settings(reranker=f"bedrock:{model}"))
    assert opened is not None
    assert opened.name == f"bedrock:{model}"
    assert len(opened.rerank(QUESTION, TEXTS)) == 3
    assert server.history[0].path == f"/model/{model.replace(':', '%3A')}/invoke"


def test_a_model_that_we_do_not_know_is_asked_for(server: BedrockServer) -> None:
    with pytest.raises(ProviderError, match="no such model in this region, or no longer") as caught:
        BedrockReranker.from_settings(Settings(), "cohere.rerank-v9:0").rerank(QUESTION, TEXTS)
    assert not caught.value.retryable


def test_a_hundred_texts_are_one_search_and_more_are_more(server: BedrockServer) -> None:
    texts = [f"key number {i}" for i in range(105)]
    assert BedrockReranker.from_settings(Settings(), V3).rerank("key 7", texts) == [
        relevance("key 7", text) for text in texts
    ]
    assert [(len(r.body["documents"]), r.body["top_n"]) for r in server.history] == [(100, 100), (5, 5)]


def test_a_blank_text_has_zero_and_is_never_sent(server: BedrockServer) -> None:
    asking = BedrockReranker.from_settings(Settings(), V3)
    assert asking.rerank(QUESTION, ["", TEXTS[1], "\n"]) == [0, relevance(QUESTION, TEXTS[1]), 0]
    assert server.history[0].body["documents"] == [TEXTS[1]]
    assert asking.rerank(QUESTION, []) == []
    assert len(server.history) == 1


def test_a_reply_that_is_no_ranking_is_refused(server: BedrockServer) -> None:
    asking = BedrockReranker.from_settings(Settings(), V3)
    server.play(*BAD_RANKINGS.values())
    for kind in BAD_RANKINGS:
        with pytest.raises(ProviderError) as caught:
            asking.rerank(QUESTION, TEXTS)
        assert str(caught.value) == "Bedrock answered with something that is no ranking of 3 texts.", kind
    assert len(server.history) == len(BAD_RANKINGS)


def test_a_broken_reply_is_billed_once_and_not_asked_for_again(server: BedrockServer) -> None:
    asking = BedrockReranker.from_settings(Settings(), V3)
    for kind, fault in BROKEN.items():
        server.play(fault)
        with pytest.raises(
            ProviderError, match=r"^Bedrock (could not be reached or broke|answered with something)"
        ) as e:
            asking.rerank(QUESTION, TEXTS)
        assert not e.value.unbilled, kind
    assert len(server.history) == len(BROKEN)


def test_what_could_not_be_reached_costs_nothing() -> None:
    with BedrockServer() as gone, aws_environment(gone):
        asking = BedrockReranker.from_settings(Settings(), V3)
    with pytest.raises(ProviderError, match=r"^Bedrock could not be reached or broke off\.$") as caught:
        asking.rerank(QUESTION, TEXTS)
    assert caught.value.unbilled


def test_a_connection_that_waited_for_long_is_not_used_again(
    server: BedrockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = BedrockReranker.from_settings(Settings(), V3)
    for _ in range(3):
        assert asking.rerank(QUESTION, TEXTS)
    assert server.connections == 1
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 40)
    assert asking.rerank(QUESTION, TEXTS)
    assert asking.rerank(QUESTION, TEXTS)
    assert server.connections == 2


def test_it_is_tried_twice_and_waits_little(server: BedrockServer) -> None:
    asking = BedrockReranker.from_settings(Settings(), V3)
    server.play(failing(503))
    assert len(asking.rerank(QUESTION, TEXTS)) == 3
    server.play(*[rate_limited()] * 20)
    with pytest.raises(ProviderError, match="rate limit") as caught:
        asking.rerank(QUESTION, TEXTS)
    assert caught.value.retryable
    assert len(server.history) == 4
    server.faults.clear()
    server.play(rate_limited(30))
    with pytest.raises(ProviderError, match="rate limit"):
        asking.rerank(QUESTION, TEXTS)
    assert len(server.history) == 5


@pytest.mark.slow
def test_a_silent_service_is_left(server: BedrockServer) -> None:
    server.play(Fault(hang=30), Fault(hang=30))
    with pytest.raises(ProviderError, match="Bedrock could not be reached or broke off") as caught:
        BedrockReranker.from_settings(Settings(), V3).rerank(QUESTION, TEXTS)
    assert caught.value.retryable
    assert len(server.history) == 1


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault(403, said="s3cret"), "gave no access: allow bedrock:InvokeModel and the model for these credentials"),
        (Fault(404, said="s3cret"), "has no such model in this region, or no longer: check its name and the region"),
        (Fault(400, said="s3cret"), "refused the request as malformed"),
        (Fault(403, said="s3cret", code="ExpiredTokenException"), "refused the credentials as expired: renew them"),
        (Fault(424, said="s3cret", code="ModelErrorException"), "failed with status 424"),
    ],
)  # fmt: skip
def test_a_refusal_is_final_and_says_what_to_do(server: BedrockServer, fault: Fault, sentence: str) -> None:
    server.play(fault)
    asking = BedrockReranker.from_settings(Settings(), V3)
    with pytest.raises(ProviderError) as caught:
        asking.rerank(QUESTION, TEXTS)
    assert str(caught.value) == f"Bedrock {sentence}."
    assert not caught.value.retryable
    assert len(server.history) == 1
    assert "s3cret" not in "".join(traceback.format_exception(caught.value)) + repr(asking)


def test_no_service_is_one_sentence() -> None:
    with BedrockServer() as gone, aws_environment(gone):
        asking = BedrockReranker.from_settings(Settings(), V3)
    with pytest.raises(ProviderError, match=r"^Bedrock could not be reached or broke off\.$"):
        asking.rerank(QUESTION, TEXTS)


@pytest.mark.parametrize("model", ["amazon.rerank-v1:0", "rerank-v3.5", "us.amazon.rerank-v1:0"])
def test_a_model_whose_request_is_not_known_is_one_sentence(model: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_offer("reranker", Settings(reranker=f"bedrock:{model}"))
    assert str(caught.value) == (
        "The reranker bedrock needs a model of Cohere: use bedrock:MODEL, such as bedrock:cohere.rerank-v3-5:0."
    )


def test_no_region_is_one_sentence(server: BedrockServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    monkeypatch.setenv("AWS_CONFIG_FILE", "nowhere")
    with pytest.raises(ConfigurationError, match="The reranker bedrock needs a region: set AWS_DEFAULT_REGION"):
        BedrockReranker.from_settings(Settings(), V3)


def test_without_the_package_it_says_what_to_install() -> None:
    program = f"""
import sys
import chapterverse_api.ext.bedrock.reranker
assert not sys.modules.keys() & {{"boto3", "botocore"}}
sys.modules["boto3"] = None
from chapterverse.settings import Settings
from chapterverse.extensions import open_offer
try:
    open_offer("reranker", Settings(reranker="bedrock:{V3}"))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        'ConfigurationError The reranker bedrock needs a package: pip install "chapterverse[aws]".'
    )


def test_the_fake_refuses_what_the_real_one_refuses(server: BedrockServer) -> None:
    import boto3
    from botocore.exceptions import ClientError

    client = boto3.client("bedrock-runtime")

    def status(model: str = V3, **changes: Any) -> int:
        body = {"api_version": 2, "query": "a", "documents": ["a", "b"], **changes}
        try:
            return int(client.invoke_model(modelId=model, body=json.dumps(body))["ResponseMetadata"]["HTTPStatusCode"])
        except ClientError as error:
            return int(error.response["ResponseMetadata"]["HTTPStatusCode"])

    assert status() == status(top_n=1) == 200
    wrong: list[dict[str, Any]] = [
        {"api_version": 1}, {"model_id": V3}, {"documents": []}, {"documents": [" "]}, {"query": ""}, {"top_n": 0},
        {"documents": ["a"] * 1001},
    ]  # fmt: skip
    assert {status(**changes) for changes in wrong} == {400}
    assert status("cohere.rerank-v9:0") == 404
