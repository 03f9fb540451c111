"""Cohere on Bedrock with the real boto3, which AWS_ENDPOINT_URL points to a fake on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chapterverse.embedding import open_embedder
from chapterverse.errors import ConfigurationError, ProviderError, TextTooLong
from chapterverse.ext.bedrock.embedder import BEDROCK_EMBEDDERS, BedrockEmbedder
from chapterverse.ext.net.retry import RetryPolicy
from chapterverse.settings import Settings
from fakes.bags import typed_vector, vector
from fakes.bedrock_server import BedrockServer
from fakes.cohere_server import with_vectors
from fakes.loopback import Fault, failing, rate_limited

pytest.importorskip("boto3")

V3, V4 = "cohere.embed-english-v3", "cohere.embed-v4:0"

SPELLED = [*BEDROCK_EMBEDDERS, f"us.{V4}", f"{V4}/512", f"{V4}/256@int8", f"{V3}@int8", f"global.{V4}/1024@int8"]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """An environment in which boto3 finds keys and a region, and nothing of the machine's own."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret-value")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return monkeypatch


@pytest.fixture
def server(aws: pytest.MonkeyPatch) -> Iterator[BedrockServer]:
    with BedrockServer() as running:
        aws.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", running.url)
        yield running


def embedder(model: str = V3, slept: list[float] | None = None) -> BedrockEmbedder:
    """An embedder whose waits between two tries take no time and are written down."""
    sleep = (lambda seconds: None) if slept is None else slept.append
    return replace(BedrockEmbedder.from_settings(Settings(), model), retry=RetryPolicy(sleep=sleep))


def words(count: int) -> str:
    return " ".join("w" for _ in range(count))


BAD_REPLIES = {
    "too few": with_vectors(lambda v: v[:-1]),
    "too short": with_vectors(lambda v: [v[0][:-1], *v[1:]]),
    "not a number": with_vectors(lambda v: [[float("nan"), *v[0][1:]], *v[1:]]),
    "zeros": with_vectors(lambda v: [[0.0] * 1024 for _ in v]),
    "floats without a type": Fault(change=lambda reply: {**reply, "embeddings": reply["embeddings"]["float"]}),
    "no embeddings": Fault(change=lambda reply: {}),
    "a list": Fault(change=lambda reply: [1]),
}

BROKEN = {
    "cut": Fault(cut=True),
    "no JSON": Fault(change=lambda reply: b"<html>"),
    "too deep": Fault(change=lambda reply: b"[" * 100_000),
}


@pytest.mark.parametrize("model", SPELLED)
def test_both_sides_send_the_documented_body(server: BedrockServer, model: str) -> None:
    bedrock = embedder(model)
    documents, question = bedrock.embed_documents(["Grüße", "b"]), bedrock.embed_query("Grüße")
    built, asked = server.history
    name = model.split("/")[0].removesuffix("@int8").replace(":", "%3A")
    assert built.path == asked.path == f"/model/{name}/invoke"
    assert asked.body == {**built.body, "texts": ["Grüße"], "input_type": "search_query"}
    assert (built.body["input_type"], built.body["truncate"]) == ("search_document", "NONE")
    assert ("output_dimension" in built.body) == (V4 in model)
    numbers = "int8" if "@int8" in model else "float"
    expected = tuple(map(float, typed_vector("Grüße", bedrock.card.size, numbers)))
    assert documents[0] == question == expected
    assert bedrock.card.name == f"bedrock:{model}"


def test_the_general_address_is_honored_too(server: BedrockServer, aws: pytest.MonkeyPatch) -> None:
    aws.delenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME")
    aws.setenv("AWS_ENDPOINT_URL", server.url)
    opened = open_embedder(Settings(embedder=f"bedrock:{V3}"))
    assert opened is not None
    assert opened.embed_query("one") == tuple(vector("one", 1024))


def test_a_profile_of_a_model_is_the_models_space(aws: pytest.MonkeyPatch) -> None:
    cards = {model: BedrockEmbedder.from_settings(Settings(), model).card for model in SPELLED}
    assert cards[f"us.{V4}"].fingerprint == cards[V4].fingerprint
    assert len({card.fingerprint for card in cards.values()}) == len(SPELLED) - 1
    assert (cards[V3].size, cards[V3].limit) == (1024, 512)
    assert embedder(V4).price == 0.12


def test_documents_are_sliced_at_96(server: BedrockServer) -> None:
    texts = [f"text number {i}" for i in range(200)]
    assert embedder().embed_documents(texts) == [tuple(vector(text, 1024)) for text in texts]
    assert [len(r.body["texts"]) for r in server.history] == [96, 96, 8]
    assert embedder().embed_documents([]) == []


def test_a_text_with_too_many_characters_is_never_sent(server: BedrockServer) -> None:
    fits, over = "é" * 2048, "é" * 2049
    assert len(embedder().embed_documents([fits])) == 1
    with pytest.raises(TextTooLong, match=f"Text 1 is over the 2048 characters of {V3}") as caught:
        embedder().embed_documents(["short", over, over])
    assert caught.value.position == 1
    with pytest.raises(TextTooLong):
        embedder().embed_query(over)
    assert len(server.history) == 1
    assert len(embedder(V4).embed_documents([over])) == 1


@pytest.mark.parametrize("position", [0, 95, 100])
def test_a_text_with_too_many_tokens_is_found(server: BedrockServer, position: int) -> None:
    texts = [f"text number {i}" for i in range(101)]
    texts[position] = words(513)
    with pytest.raises(TextTooLong, match=f"Text {position} is too long for {V3}") as caught:
        embedder().embed_documents(texts)
    assert caught.value.position == position


def test_the_newer_model_has_another_word_for_the_end(server: BedrockServer) -> None:
    with pytest.raises(TextTooLong):
        embedder(V4).embed_documents([words(128_001)])
    assert [r.body["truncate"] for r in server.history] == ["NONE", "RIGHT"]


def test_a_request_refused_for_another_reason_is_no_long_text(server: BedrockServer) -> None:
    with pytest.raises(ProviderError, match="refused the request as malformed") as caught:
        embedder().embed_documents(["good", "", "good"])
    assert not isinstance(caught.value, TextTooLong)


def test_a_build_waits_out_what_passes(server: BedrockServer) -> None:
    slept: list[float] = []
    server.play(
        rate_limited(30), Fault(503, {"Retry-After": "90"}), Fault(429, code="ModelNotReadyException"), failing(408)
    )
    assert embedder(slept=slept).embed_documents(["one"]) == [tuple(vector("one", 1024))]
    assert slept[:2] == [30, 90]
    assert 3.6 <= slept[2] <= 4.4
    assert len(server.history) == 5


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_reply_is_asked_for_again(server: BedrockServer, fault: Fault) -> None:
    server.play(fault)
    assert embedder().embed_documents(["one"]) == [tuple(vector("one", 1024))]
    server.play(*[fault] * 6)
    with pytest.raises(ProviderError, match="Bedrock") as caught:
        embedder().embed_documents(["one"])
    assert caught.value.retryable


def test_a_question_is_tried_twice_and_waits_little(server: BedrockServer) -> None:
    server.play(failing(503))
    assert len(embedder().embed_query("one")) == 1024
    server.play(rate_limited(30))
    with pytest.raises(ProviderError, match="rate limit"):
        embedder().embed_query("one")
    assert len(server.history) == 3


@pytest.mark.parametrize("fault", BAD_REPLIES.values(), ids=BAD_REPLIES.keys())
@pytest.mark.parametrize("side", [lambda e: e.embed_documents(["one"]), lambda e: e.embed_query("one")])
def test_a_reply_that_is_no_vector_is_refused(
    server: BedrockServer, fault: Fault, side: Callable[[BedrockEmbedder], Any]
) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match="Bedrock"):
        side(embedder())
    assert len(server.history) == 1


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        (Fault(403, said="s3cret"), "gave no access: allow bedrock:InvokeModel"),
        (Fault(404, said="s3cret"), "no such model in this region, or no longer"),
        (Fault(400, said="s3cret", code="ServiceQuotaExceededException"), "a quota that is used up"),
        (Fault(403, said="s3cret", code="ExpiredTokenException"), "credentials as expired"),
        (Fault(403, said="s3cret", code="UnrecognizedClientException"), "check AWS_ACCESS_KEY_ID"),
        (Fault(424, said="s3cret", code="ModelErrorException"), "failed with status 424"),
    ],
)  # fmt: skip
def test_a_refusal_is_final_and_says_what_to_do(server: BedrockServer, fault: Fault, sentence: str) -> None:
    server.play(fault)
    with pytest.raises(ProviderError, match=sentence) as caught:
        embedder().embed_documents(["one"])
    assert not caught.value.retryable
    assert len(server.history) == 1
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_without_credentials_it_says_so(server: BedrockServer, aws: pytest.MonkeyPatch) -> None:
    aws.delenv("AWS_ACCESS_KEY_ID")
    aws.delenv("AWS_SECRET_ACCESS_KEY")
    # No setting can be called wrong for it: a role's credentials may be late, and a question goes on without.
    with pytest.raises(ProviderError, match="finds no AWS credentials"):
        embedder().embed_query("one")
    aws.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    with pytest.raises(ConfigurationError, match="finds no AWS credentials"):
        embedder()


def test_no_service_is_one_sentence(server: BedrockServer, aws: pytest.MonkeyPatch) -> None:
    with BedrockServer() as gone:
        aws.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", gone.url)
    with pytest.raises(ProviderError, match="Bedrock could not be reached or broke off") as caught:
        embedder().embed_documents(["one"])
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("AWS_DEFAULT_REGION", None, "needs a region: set AWS_DEFAULT_REGION"),
        ("AWS_DEFAULT_REGION", "not a region", "AWS settings can't be used"),
        ("AWS_PROFILE", "nobody", "AWS settings can't be used"),
        ("AWS_ENDPOINT_URL", "nonsense", "AWS settings can't be used"),
    ],
)
def test_a_wrong_environment_is_one_sentence(
    aws: pytest.MonkeyPatch, variable: str, value: str | None, sentence: str
) -> None:
    aws.delenv(variable) if value is None else aws.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=sentence):
        BedrockEmbedder.from_settings(Settings(), V3)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        ("", "no Bedrock embedding model '': use one of cohere.embed-english-v3"),
        ("amazon.titan-embed-text-v2:0", "no Bedrock embedding model 'amazon.titan-embed-text-v2:0'"),
        ("us.cohere.embed-v9:0", "no Bedrock embedding model 'cohere.embed-v9:0'"),
        (f"{V3}/512", "makes no vectors of 512 numbers"),
    ],
)
def test_a_wrong_model_is_one_sentence(aws: pytest.MonkeyPatch, model: str, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        BedrockEmbedder.from_settings(Settings(), model)


def test_nothing_shows_the_secret(server: BedrockServer) -> None:
    assert "s3cret" not in repr(embedder())


def test_without_the_package_it_says_what_to_install() -> None:
    program = """
import sys
import chapterverse.ext.bedrock.embedder
assert not sys.modules.keys() & {"boto3", "botocore"}
sys.modules["boto3"] = None
from chapterverse.embedding import open_embedder
from chapterverse.settings import Settings
try:
    open_embedder(Settings(embedder="bedrock:cohere.embed-v4:0"))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(
        'ConfigurationError The embedder bedrock needs a package: pip install "chapterverse[aws]"'
    )


def test_the_fake_refuses_what_the_real_one_refuses(server: BedrockServer) -> None:
    import boto3
    from botocore.exceptions import ClientError

    client = boto3.client("bedrock-runtime")

    def status(model: str = V3, **changes: Any) -> int:
        body = {"texts": ["a"], "input_type": "search_query", **changes}
        try:
            return int(client.invoke_model(modelId=model, body=json.dumps(body))["ResponseMetadata"]["HTTPStatusCode"])
        except ClientError as error:
            return int(error.response["ResponseMetadata"]["HTTPStatusCode"])

    assert status() == status(V4) == status(V4, truncate="LEFT", output_dimension=256) == 200
    wrong: list[dict[str, Any]] = [
        {"model_id": V3}, {"texts": []}, {"texts": ["a"] * 97}, {"texts": [""]}, {"texts": ["a" * 2049]},
        {"texts": [words(513)]}, {"input_type": "query"}, {"truncate": "LEFT"}, {"output_dimension": 512},
    ]  # fmt: skip
    assert {status(**changes) for changes in wrong} == {400}
    assert status(V4, truncate="END") == status(V4, output_dimension=300) == 400
    assert status("cohere.command-r-v1:0") == 404
