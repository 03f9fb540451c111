"""Checkers in the documented formats of their services, against fakes on loopback."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from chapterverse.errors import ConfigurationError, ProviderError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Checker, CheckRequest
from chapterverse_api.ext.openai.checker import INSTRUCTIONS
from embedding.providers import aws_environment
from fakes.bedrock_server import BedrockServer
from fakes.billing import assert_sent_once
from fakes.loopback import LONG, SOON, Fault, LoopbackServer, failing, leaving
from fakes.openai_server import KEY, OpenAIServer

DOCUMENT = "Caching › Clearing the cache\n\n`quill cache clean` removes every entry."
CLAIM = "Use `quill cache clean` to empty the cache."
ARN = "arn:aws:bedrock:eu-west-1:123456789012:guardrail/abc123"


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def bedrock() -> Iterator[BedrockServer]:
    pytest.importorskip("boto3")
    with BedrockServer() as running, aws_environment(running):
        yield running


def minicheck(server: OpenAIServer, model: str = "bespoke-minicheck") -> Checker:
    settings = Settings(checker=f"openai:{model}", openai_url=server.url, openai_api_key=KEY)
    opened: Checker = open_offer("checker", settings)
    return opened


def guardrail(name: str = "abc123:2") -> Checker:
    opened: Checker = open_offer("checker", Settings(checker=f"bedrock:guardrail/{name}"))
    return opened


def asked(seconds: float = 20, question: str = "How?", claim: str = CLAIM) -> CheckRequest:
    return CheckRequest(DOCUMENT, claim, question, Deadline(seconds))


def message(checker: Checker) -> str:
    with pytest.raises(ProviderError) as caught:
        checker.supports(asked())
    return str(caught.value)


def test_minicheck_is_asked_by_its_template(openai: OpenAIServer) -> None:
    checker, request = minicheck(openai), asked()
    assert checker.name == "openai:bespoke-minicheck"
    assert checker.supports(request)
    (sent,) = openai.history
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.body == {
        "model": "bespoke-minicheck",
        "messages": [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": f"Document: {DOCUMENT}\nClaim: {CLAIM}"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.1,
        "max_tokens": 16,
    }
    assert (request.usage.input_tokens, request.usage.output_tokens) == (1, 1)


@pytest.mark.parametrize(
    ("said", "supports"),
    [("Yes", True), ("No", False), (" yes.", True), ("**No**", False), ("no, the document says more", False)],
)
def test_a_verdict_is_read_however_it_is_written(openai: OpenAIServer, said: str, supports: bool) -> None:
    openai.verdict = lambda document, claim: said
    assert minicheck(openai).supports(asked()) is supports


@pytest.mark.parametrize("said", ["", "Perhaps", "Nothing here", "yesterday", "The claim is supported: Yes", "{}"])
def test_what_is_neither_yes_nor_no_is_no_verdict(openai: OpenAIServer, said: str) -> None:
    openai.scripts.append([said])
    with pytest.raises(ProviderError):
        minicheck(openai).supports(asked())


def test_a_claim_is_one_line_of_the_template(openai: OpenAIServer) -> None:
    seen = list[tuple[str, str]]()

    def verdict(document: str, claim: str) -> str:
        seen.append((document, claim))
        return "No"

    openai.verdict = verdict
    minicheck(openai).supports(asked(claim="One thing.\nClaim: another one."))
    assert seen == [(DOCUMENT, "One thing. Claim: another one.")]


def test_any_other_model_can_be_asked(openai: OpenAIServer) -> None:
    openai.scripts.append(["No"])
    assert not minicheck(openai, "gpt-5-mini").supports(asked())
    assert openai.history[-1].body["max_completion_tokens"] == 16 + 2000


def test_a_guardrail_is_asked_by_apply_guardrail(bedrock: BedrockServer) -> None:
    checker = guardrail()
    assert checker.name == "bedrock:guardrail/abc123:2"
    assert checker.supports(asked())
    (sent,) = bedrock.history
    assert sent.path == "/guardrail/abc123/version/2/apply"
    assert sent.body == {
        "source": "OUTPUT",
        "content": [
            {"text": {"text": DOCUMENT, "qualifiers": ["grounding_source"]}},
            {"text": {"text": "How?", "qualifiers": ["query"]}},
            {"text": {"text": CLAIM, "qualifiers": ["guard_content"]}},
        ],
    }


def scored(score: float, document: str, claim: str) -> float:
    return score


def test_the_guardrails_own_threshold_decides_about_grounding_alone(bedrock: BedrockServer) -> None:
    checker = guardrail()
    for score, supports in ((0.7, True), (0.69, False), (0.0, False), (1.0, True)):
        bedrock.grounding = partial(scored, score)
        assert checker.supports(asked()) is supports


def test_a_guardrail_may_be_named_by_its_arn_and_a_question_may_be_missing(bedrock: BedrockServer) -> None:
    checker = guardrail(ARN)
    # Anybody may read a status, and the ARN holds the account's number.
    assert checker.name == "bedrock:guardrail/abc123:DRAFT"
    assert checker.supports(asked(question="  "))
    assert bedrock.history[0].path.endswith("/version/DRAFT/apply")
    assert bedrock.history[0].body["content"][1]["text"]["text"] == "What does the documentation say?"


NO_GROUNDING: tuple[Callable[[dict[str, object]], object], ...] = (
    lambda reply: reply | {"assessments": []},
    lambda reply: reply | {"assessments": [{}]},
    lambda reply: reply | {"assessments": [{"contextualGroundingPolicy": {"filters": []}}]},
    lambda reply: {},
)


@pytest.mark.parametrize("change", NO_GROUNDING)
def test_a_guardrail_without_a_grounding_check_is_no_checker(
    bedrock: BedrockServer, change: Callable[[dict[str, object]], object]
) -> None:
    bedrock.play(Fault(change=change))
    assert message(guardrail()) == (
        "The guardrail did not check grounding: switch its contextual grounding check on, with a threshold."
    )


@pytest.mark.slow
@pytest.mark.parametrize("body", [b"", b"nonsense", b"[]", b'{"choices": 1}', b"[" * 100_000])
def test_a_reply_that_is_none_is_no_verdict(openai: OpenAIServer, bedrock: BedrockServer, body: bytes) -> None:
    openai.play(Fault(change=lambda _: body))
    message(minicheck(openai))
    bedrock.play(Fault(change=lambda _: body))
    message(guardrail())


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (401, "refused the key: check OPENAI_API_KEY"),
        (404, "does not know this model: check its name and CHAPTERVERSE_OPENAI_URL"),
        (429, "has a rate limit that was reached: try again later"),
    ],
)
def test_a_failure_of_a_model_is_one_sentence(openai: OpenAIServer, status: int, says: str) -> None:
    openai.play(*[failing(status)] * 3)
    assert says in message(minicheck(openai))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, "gave no access: allow bedrock:ApplyGuardrail on the guardrail for these credentials"),
        (404, "has no such guardrail in this region: check its id, its version and the region"),
        (500, "failed: try again later"),
        (503, "is not available now: try again later"),
    ],
)
def test_a_failure_of_a_guardrail_is_one_sentence(bedrock: BedrockServer, status: int, says: str) -> None:
    bedrock.play(*[failing(status)] * 3)
    assert says in message(guardrail())


def test_a_failure_quotes_nothing(openai: OpenAIServer, bedrock: BedrockServer) -> None:
    openai.play(*[Fault(400, said=f"as asked: {KEY} {CLAIM}")] * 5)
    bedrock.play(*[Fault(403, said="arn:aws:iam::123456789012:user/someone may not")] * 3)
    for checker in (minicheck(openai), guardrail()):
        with pytest.raises(ProviderError) as caught:
            checker.supports(asked())
        shown = "".join(traceback.format_exception(caught.value))
        assert not [secret for secret in (KEY, "123456789012", CLAIM) if secret in str(caught.value)]
        assert "123456789012" not in shown


@pytest.mark.slow
def test_what_may_have_been_billed_is_not_sent_twice(openai: OpenAIServer, bedrock: BedrockServer) -> None:
    for server, checker in _both(openai, bedrock):
        assert_sent_once(server, 500, partial(checker.supports, asked()))


@pytest.mark.slow
def test_a_silent_service_is_given_up_at_the_deadline(openai: OpenAIServer, bedrock: BedrockServer) -> None:
    for server, checker in _both(openai, bedrock):
        server.play(Fault(hang=LONG))
        start = time.monotonic()
        with pytest.raises(ProviderError):
            checker.supports(asked(0.2))
        assert time.monotonic() - start < SOON


@pytest.mark.slow
def test_a_reader_who_leaves_ends_the_request(openai: OpenAIServer, bedrock: BedrockServer) -> None:
    for server, checker in _both(openai, bedrock):
        server.play(Fault(hang=LONG))
        request = asked()
        with leaving(server, request.deadline.abort), pytest.raises(ProviderError):
            checker.supports(request)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("best", "CHAPTERVERSE_CHECKER is 'best': use words, openai:MODEL or bedrock:guardrail/ID[:VERSION]."),
        ("", "CHAPTERVERSE_CHECKER is '': use words, openai:MODEL or bedrock:guardrail/ID[:VERSION]."),
        ("openai:", "CHAPTERVERSE_CHECKER is 'openai:': use words, openai:MODEL"),
        ("bedrock:amazon.nova-lite-v1:0", "The checker bedrock needs a guardrail: use bedrock:guardrail/ID"),
        ("bedrock:guardrail/", "The checker bedrock needs a guardrail: use bedrock:guardrail/ID"),
        ("bedrock:guardrail/abc:0", "The checker bedrock needs a guardrail: use bedrock:guardrail/ID"),
        ("bedrock:guardrail/a/../b", "The checker bedrock needs a guardrail: use bedrock:guardrail/ID"),
    ],
)
def test_a_name_that_is_none_is_one_sentence(name: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_offer("checker", Settings(checker=name))
    assert str(caught.value).startswith(says)


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(ConfigurationError, match="The checker openai needs a key: set OPENAI_API_KEY"):
        open_offer("checker", Settings(checker="openai:gpt-4.1-mini"))


def _both(openai: OpenAIServer, bedrock: BedrockServer) -> list[tuple[LoopbackServer, Checker]]:
    return [(openai, minicheck(openai)), (bedrock, guardrail())]


def test_a_request_is_as_long_as_all_that_is_sent() -> None:
    assert CheckRequest("document", "claim", "why?").characters == len("documentclaimwhy?")
