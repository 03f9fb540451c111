"""Language models on Bedrock with the real boto3, against a fake on loopback with AWS's binary event streams."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import closing
from threading import Event
from typing import Any

import pytest

from api.draft.drafts import check_leaving, cited, damaged, drafted, make_request, outcome
from chapterverse.errors import ProviderError
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Span, Writer
from chapterverse_api.draft.requests import ChatMessage, ModelRequest, Usage
from chapterverse_api.ext.bedrock.generator import BedrockGenerator
from chapterverse_api.ext.models import prompts
from embedding.providers import aws_environment
from fakes.bags import tokens
from fakes.bedrock_server import BedrockServer, event, exception
from fakes.loopback import LONG, SOON, Fault, failing, rate_limited, sending

pytest.importorskip("boto3")

NOVA = "amazon.nova-lite-v1:0"
ARN = "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-haiku-4-5-20251001-v1:0"
MID_ANSWER = "Bedrock broke off in the middle of its answer: try again later."
WITHHELD = "Bedrock withheld the answer by its content filter: ask in other words."
BROKEN = "Bedrock could not be reached or broke off."
NO_REPLY = "Bedrock answered with something that is no reply."


@pytest.fixture
def server() -> Iterator[BedrockServer]:
    with BedrockServer() as running, aws_environment(running):
        yield running


def said(text: str) -> bytes:
    return event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}})


def stopped(reason: str = "end_turn") -> bytes:
    return event("messageStop", {"stopReason": reason})


def playing(*frames: bytes) -> Fault:
    return Fault(change=lambda _: iter(frames))


def test_an_answer_comes_without_its_marks_and_with_what_they_say(server: BedrockServer) -> None:
    server.scripts.append(["Make a new key [", "1].", " It has 32 characters[2", "][1]."])
    made = BedrockGenerator.from_settings(Settings(), NOVA)
    assert isinstance(made, Writer)
    assert cited(drafted(made)) == [("Make a new key. ", ("1",)), ("It has 32 characters.", ("2", "1"))]


def test_thoughts_that_nobody_sees_are_counted(server: BedrockServer) -> None:
    server.thoughts, asked = 400, make_request(usage=Usage())
    drafted(BedrockGenerator.from_settings(Settings(), NOVA), asked)
    assert (asked.usage.input_tokens, asked.usage.output_tokens) == (1, 400 + tokens("It has 32 characters [1]."))


@pytest.mark.parametrize(
    "behind", [[], [exception("throttlingException")], [b"garbage"], [event("metadata", {"usage": {"inputTokens": 1}})]]
)
def test_what_follows_the_answer_takes_nothing_from_it(server: BedrockServer, behind: list[bytes]) -> None:
    asked = make_request(usage=Usage())
    server.play(playing(said("A key [1]."), stopped(), *behind))
    assert cited(drafted(BedrockGenerator.from_settings(Settings(), NOVA), asked)) == [("A key.", ("1",))]
    assert (asked.usage.input_tokens, asked.usage.output_tokens) == (0, 0)


def test_a_service_that_falls_silent_behind_the_answer_is_not_waited_for(server: BedrockServer) -> None:
    gate = Event()

    def frames(_: object) -> Iterator[bytes]:
        yield from (said("A key [1]."), stopped())
        gate.wait(20)

    server.play(Fault(change=frames))
    start = time.monotonic()
    assert drafted(BedrockGenerator.from_settings(Settings(), NOVA), make_request(10))
    assert time.monotonic() - start < SOON
    gate.set()


def test_the_request(server: BedrockServer) -> None:
    drafted(
        BedrockGenerator.from_settings(Settings(), NOVA),
        make_request(history=(ChatMessage("user", "Hello?"), ChatMessage("assistant", "Hello."))),
    )
    (request,) = server.history
    assert request.path == "/model/amazon.nova-lite-v1%3A0/converse-stream"
    body = request.body
    assert body["inferenceConfig"] == {"maxTokens": 600, "temperature": 0.1}
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user"]
    asked = body["messages"][2]["content"][0]["text"]
    nonce = asked.partition("<cv-sources-")[2].partition(">")[0]
    assert len(nonce) == 16
    assert asked == prompts.conversation(make_request(), nonce)[0].content
    assert body["system"] == [{"text": prompts.instructions(make_request(), nonce)}]
    assert not any(secret in request.raw for secret in (b"s3cret-value", b"example.com"))


@pytest.mark.parametrize(
    ("model", "name"),
    [(NOVA, NOVA), (f"us.{NOVA}", f"us.{NOVA}"), (ARN, "eu.anthropic.claude-haiku-4-5-20251001-v1:0")],
)
def test_models_and_profiles_go_by_their_ids(server: BedrockServer, model: str, name: str) -> None:
    made = BedrockGenerator.from_settings(Settings(), model)
    # An account's number is nothing for readers, and the name is.
    assert made.name == f"bedrock:{name}"
    assert drafted(made) == (Span("It has 32 characters.", ("1",)),)


def test_the_first_words_are_there_before_the_last_bytes_are_sent(server: BedrockServer) -> None:
    gate = Event()
    server.scripts.append(["Make a ", "new key [1].", lambda: gate.wait(10), " More [2]."])
    steps = BedrockGenerator.from_settings(Settings(), NOVA).generate(make_request())
    assert next(steps) == Span("Make a ")
    assert next(steps) == Span("new key [1].")
    gate.set()
    assert list(steps) == [Span(" More [2].")]


def test_a_connection_serves_one_answer_after_another(server: BedrockServer) -> None:
    made = BedrockGenerator.from_settings(Settings(), NOVA)
    for _ in range(5):
        assert drafted(made)
        # The rest of a stream is read behind the reader's back.
        time.sleep(0.05)
    assert server.connections == 1


def test_a_model_that_takes_no_temperature_is_asked_without(server: BedrockServer) -> None:
    made = BedrockGenerator.from_settings(Settings(), "example.decided-v1:0")
    drafted(made)
    drafted(made)
    assert [r.body["inferenceConfig"] for r in server.history] == [
        {"maxTokens": 600, "temperature": 0.1},
        {"maxTokens": 600},
        {"maxTokens": 600},
    ]
    again = BedrockGenerator.from_settings(Settings(), "example.decided-v1:0")
    assert again.write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), 60, Deadline(5)))
    assert [r.body["inferenceConfig"] for r in server.history[3:]] == [
        {"maxTokens": 60, "temperature": 0.1},
        {"maxTokens": 60},
    ]


def test_an_answer_that_was_cut_says_so(server: BedrockServer) -> None:
    for server.stop in ("max_tokens", "model_context_window_exceeded"):
        server.scripts.append(["Make a new key [1]. Then rem", "ove [1"])
        assert drafted(BedrockGenerator.from_settings(Settings(), NOVA))[-1] == Span("Then remove", (), cut=True)


@pytest.mark.parametrize("end", [{}, {"stopReason": None}])
def test_an_end_mark_without_a_reason_ends_an_answer(server: BedrockServer, end: object) -> None:
    server.play(playing(said("A key [1]."), event("messageStop", end)))
    assert cited(drafted(BedrockGenerator.from_settings(Settings(), NOVA))) == [("A key.", ("1",))]


@pytest.mark.parametrize("reason", [["end_turn"], {}, 5])
def test_an_answer_with_a_reason_that_is_none_of_bedrock_s_broke_off(server: BedrockServer, reason: object) -> None:
    server.play(playing(said("A key [1]."), event("messageStop", {"stopReason": reason})))
    with pytest.raises(ProviderError) as caught:
        drafted(BedrockGenerator.from_settings(Settings(), NOVA))
    assert str(caught.value) == MID_ANSWER


def test_thoughts_are_never_shown(server: BedrockServer) -> None:
    thought = event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "Hm."}}})
    ended = event("contentBlockStop", {"contentBlockIndex": 0})
    server.play(playing(event("messageStart", {"role": "assistant"}), thought, ended, said("A key [1]."), stopped()))
    assert cited(drafted(BedrockGenerator.from_settings(Settings(), NOVA))) == [("A key.", ("1",))]


@pytest.mark.parametrize(
    ("frames", "sentence"),
    [
        ([said("A")], BROKEN),
        ([], BROKEN),
        ([said("A"), exception("modelStreamErrorException")], MID_ANSWER),
        ([said("A"), exception("throttlingException")], "Bedrock has a rate limit that was reached: try again later."),
        ([exception("internalServerException")], "Bedrock failed: try again later."),
        ([exception("serviceUnavailableException")], "Bedrock is not available now: try again later."),
        ([said("A"), exception("validationException")], NO_REPLY),
        ([exception("newException")], "Bedrock failed with status 0."),
        ([said("A")[:-1] + b"\0", stopped()], NO_REPLY),
        ([b"<html>sign in, please, to go on</html>"], NO_REPLY),
        ([said("A"), stopped("guardrail_intervened")], WITHHELD),
        ([said("A"), stopped("content_filtered")], WITHHELD),
        ([said("A"), stopped("malformed_model_output")], MID_ANSWER),
        ([said(" \n[1] "), stopped()], "The model answered with nothing: ask in other words."),
    ],
)  # fmt: skip
def test_a_stream_that_failed_is_one_sentence(server: BedrockServer, frames: list[bytes], sentence: str) -> None:
    server.play(playing(*frames))
    with pytest.raises(ProviderError) as caught:
        drafted(BedrockGenerator.from_settings(Settings(), NOVA))
    assert str(caught.value) == sentence
    assert "s3cret" not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("fault", "sentence", "retryable"),
    [
        (
            Fault(403, said="s3cret"),
            (
                "gave no access: allow bedrock:InvokeModel, bedrock:InvokeModelWithResponseStream and the model for "
                "these credentials"
            ),
            False,
        ),
        (Fault(404), "has no such model in this region, or no longer: check its name and the region", False),
        (Fault(400, said="s3cret"), "refused the request as malformed", False),
        (
            Fault(400, code="ServiceQuotaExceededException"),
            "has a quota that is used up: ask AWS for more, or try again later",
            False,
        ),
        (rate_limited(30), "has a rate limit that was reached: try again later", True),
        (Fault(429, code="ModelNotReadyException"), "is still loading the model: try again later", True),
        (Fault(408), "took too long: try again later", True),
        (failing(503), "is not available now: try again later", True),
        (failing(500), "failed: try again later", True),
        (Fault(424, code="ModelErrorException"), "broke off in the middle of its answer: try again later", False),
        (Fault(418), "failed: try again later", True),
    ],
)
def test_a_refusal_says_what_to_do(server: BedrockServer, fault: Fault, sentence: str, retryable: bool) -> None:
    made = BedrockGenerator.from_settings(Settings(), NOVA)
    for ask in (
        lambda: drafted(made),
        lambda: made.write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), 60, Deadline(5))),
    ):
        server.faults.clear()
        server.play(*[fault] * 4)
        with pytest.raises(ProviderError) as caught:
            ask()
        assert str(caught.value) == f"Bedrock {sentence}."
        assert caught.value.retryable is retryable
        assert "s3cret" not in "".join(traceback.format_exception(caught.value))


def test_a_passing_failure_is_tried_again_before_the_first_word(server: BedrockServer) -> None:
    server.play(failing(503))
    assert drafted(BedrockGenerator.from_settings(Settings(), NOVA))
    assert len(server.history) == 2


@pytest.mark.parametrize("fault", [failing(500), failing(408), Fault(424, code="ModelErrorException")])
def test_what_may_be_billed_is_not_tried_again(server: BedrockServer, fault: Fault) -> None:
    server.play(fault)
    with pytest.raises(ProviderError) as caught:
        drafted(BedrockGenerator.from_settings(Settings(), NOVA))
    assert not caught.value.unbilled
    assert len(server.history) == 1


def test_a_reader_who_leaves_ends_the_wait(server: BedrockServer) -> None:
    made = BedrockGenerator.from_settings(Settings(), NOVA)
    gate = Event()
    server.scripts.append(["A key", lambda: gate.wait(20)])
    check_leaving(made, server)
    # The service learns of it, too.
    assert server.left.wait(SOON)
    gate.set()
    server.play(Fault(hang=LONG))
    check_leaving(made, server)


def test_a_stream_that_begins_after_the_reader_left_is_closed(server: BedrockServer) -> None:
    gate = Event()
    server.play(Fault(hang=0.3))
    server.scripts.append(["A key", lambda: gate.wait(20)])
    check_leaving(BedrockGenerator.from_settings(Settings(), NOVA), server)
    assert server.left.wait(SOON)
    gate.set()


def test_a_draft_that_is_closed_ends_the_model_s_work(server: BedrockServer) -> None:
    gate = Event()
    server.scripts.append(["A key", lambda: gate.wait(20)])
    with closing(BedrockGenerator.from_settings(Settings(), NOVA).generate(make_request())) as steps:
        assert next(steps) == Span("A key")
    assert server.left.wait(SOON)
    gate.set()


def test_a_silent_model_is_left_when_the_time_is_up(server: BedrockServer) -> None:
    gate = Event()
    server.scripts.append(["A key", lambda: gate.wait(20)])
    made = BedrockGenerator.from_settings(Settings(), NOVA)
    start = time.monotonic()
    with pytest.raises(ProviderError, match=r"^Bedrock did not answer in time\.$"):
        drafted(made, make_request(0.3))
    assert time.monotonic() - start < SOON
    gate.set()
    asked = len(server.history)
    with pytest.raises(ProviderError, match=r"^Bedrock did not answer in time\.$"):
        drafted(made, make_request(0))
    assert len(server.history) == asked


def test_a_thousand_damaged_streams_are_drafts_or_failures(server: BedrockServer) -> None:
    made = BedrockGenerator.from_settings(Settings(), NOVA)
    spare = (said("\ud800 [9] `"), exception("modelStreamErrorException"), stopped("max_tokens"), b"\r\n\r\n")
    server.play(*(damaged(seed, *spare) for seed in range(1000)))
    outcomes = []
    for _ in range(1000):
        server.scripts.append(["Make ", "a key [1].\n", "```\na[1]", "\n``` ", "\U0001f600 [2]", "[1] end."])
        outcomes.append(outcome(made))
    failed = sum(isinstance(found, ProviderError) for found in outcomes)
    assert 100 < failed < 950
    assert not server.faults
    for found in outcomes:
        if not isinstance(found, ProviderError):
            "".join(span.text for span in found).encode()


def test_it_writes(server: BedrockServer) -> None:
    server.scripts.append([" How do I ", "rotate a key? [1]\n"])
    made = BedrockGenerator.from_settings(Settings(), NOVA)
    written = made.write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), 60, Deadline(5)))
    assert written == "How do I rotate a key? [1]"
    (request,) = server.history
    assert request.path.endswith("/converse")
    assert request.body == {
        "system": [{"text": "Rephrase."}],
        "messages": [{"role": "user", "content": [{"text": "that?"}]}],
        "inferenceConfig": {"maxTokens": 60, "temperature": 0.1},
    }
    server.play(Fault(hang=LONG))
    start = time.monotonic()
    with pytest.raises(ProviderError, match="in time"):
        made.write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), 60, Deadline(0.2)))
    assert time.monotonic() - start < SOON
    broken: list[object] = [{}, [], {"output": {"message": {"content": "s3cret"}}}, b"<html>", {"stopReason": {}}]
    for reply in broken:
        server.play(*[sending(reply)] * 2)
        with pytest.raises(ProviderError) as caught:
            made.write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), 60, Deadline(5)))
        assert "s3cret" not in str(caught.value)


def test_without_the_package_it_says_what_to_install() -> None:
    program = f"""
import sys
import chapterverse_api.ext.bedrock.generator
assert not sys.modules.keys() & {{"boto3", "botocore", "urllib3"}}
sys.modules["boto3"] = None
from chapterverse.settings import Settings
from chapterverse.extensions import open_offer
try:
    open_offer("generator", Settings(generator="bedrock:{NOVA}"))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        'ConfigurationError The generator bedrock needs a package: pip install "chapterverse[aws]".'
    )


def test_the_fake_refuses_what_the_real_one_refuses(server: BedrockServer) -> None:
    import boto3
    from botocore.exceptions import ClientError

    client = boto3.client("bedrock-runtime")

    def status(model: str = NOVA, **changes: Any) -> int:
        body = {"messages": [{"role": "user", "content": [{"text": "a"}]}], **changes}
        try:
            return int(client.converse(modelId=model, **body)["ResponseMetadata"]["HTTPStatusCode"])
        except ClientError as error:
            return int(error.response["ResponseMetadata"]["HTTPStatusCode"])

    def message(role: str, text: str = "a") -> dict[str, Any]:
        return {"role": role, "content": [{"text": text}]}

    assert status() == status(inferenceConfig={"maxTokens": 5, "temperature": 1.0}) == 200
    wrong: list[dict[str, Any]] = [
        {"messages": [message("assistant")]}, {"messages": [message("user"), message("user")]},
        {"messages": [message("user", " ")]},
        {"model": "example.decided-v1:0", "inferenceConfig": {"temperature": 0.5}},
    ]  # fmt: skip
    assert {status(**changes) for changes in wrong} == {400}
    assert status("cohere.command-r-v1:0") == 404
