"""Reasons to end and errors of model services, each read by the one table."""

from __future__ import annotations

from typing import Any

import pytest

from chapterverse.errors import AnswerWithheld, ModelLoading
from chapterverse.ext.net.model_errors import PromptTooLong, ServiceErrors
from chapterverse.ext.net.model_replies import Cause, Ending, Fault, find_error, read_ending
from chapterverse.ext.net.retry import BusyError

ERRORS = ServiceErrors("It", "KEY", "URL")


@pytest.mark.parametrize(
    ("ending", "reasons"),
    [
        ("complete", "stop STOP Stop end_turn eos eos_token tool_calls TOOL_CALL tool_use COMPLETE STOP_SEQUENCE"),
        ("cut", "length MAX_TOKENS max_tokens model_length maxTokens model_context_window_exceeded"),
        ("withheld", "content_filter SAFETY sensitive refusal guardrail_intervened content_filtered ERROR_TOXIC"),
        (
            "broken",
            "abort error network_error insufficient_system_resource TIMEOUT malformed_model_output",
        ),
    ],
)
def test_why_a_text_ended(ending: Ending, reasons: str) -> None:
    assert {reason: read_ending(reason) for reason in reasons.split()} == dict.fromkeys(reasons.split(), ending)


def test_what_is_no_reason() -> None:
    assert {read_ending(reason) for reason in (None, "", "null", "NOT_FINISHED")} == {None}
    assert {read_ending(reason) for reason in (7, True, ["stop"], {"stop": 1})} == {"broken"}


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ({"error": {"message": "x", "code": "content_filter"}}, "withheld"),
        ({"error": {"message": "x", "innererror": {"code": "ResponsibleAIPolicyViolation"}}}, "withheld"),
        ([{"error": {"code": 400, "message": "The prompt was flagged", "status": "SAFETY"}}], "withheld"),
        ({"code": "DataInspectionFailed", "message": "x"}, "withheld"),
        ({"error": {"code": "1301", "message": "系统检测到不安全内容"}}, "withheld"),
        ({"error": {"message": "litellm.ContentPolicyViolationError: x"}}, "withheld"),
        ({"error": {"message": "x", "code": "context_length_exceeded"}}, "too_long"),
        ({"message": "'max_tokens' is too large. This model's maximum context length is 9", "code": 400}, "too_long"),
        ({"error": "input length exceeds the context length"}, "too_long"),
        ({"type": "error", "error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, "too_long"),
        ({"error": {"message": "x", "param": "stream", "code": "unsupported_value"}}, "no_stream"),
        ({"error": {"message": "Streaming is not supported for this model."}}, "no_stream"),
        ({"error": {"message": "Unsupported parameter: 'stream_options'."}}, None),
        ({"object": "error", "message": "System role not supported"}, "no_system"),
        ({"error": {"message": "Conversation roles must alternate user/assistant"}}, "no_system"),
        ({"error": {"message": "Developer instruction is not enabled for models/gemma-3"}}, "no_system"),
        ({"error": {"message": "x", "type": "budget_exceeded", "code": "400"}}, "spent"),
        ({"error": {"message": "Your credit balance is too low"}}, "spent"),
        ({"error": {"message": "Loading model", "type": "unavailable_error", "code": 503}}, "loading"),
        ({"detail": [{"type": "extra_forbidden", "loc": ["body", "top_k"], "msg": "Extra"}]}, None),
        ({"error": {"message": "max_tokens is too large", "param": "max_tokens"}}, None),
        (None, None),
        ("s3cret", None),
        ({"error": {"error": {"error": {"error": {"error": {"error": {}}}}}}}, None),
    ],
)
def test_why_a_request_was_rejected(body: Any, cause: Cause | None) -> None:
    assert Fault.read(body).cause == cause


def test_an_error_has_the_type_by_which_its_caller_acts() -> None:
    said = {"error": {"message": "s3cret", "code": "content_filter"}}
    assert isinstance(ERRORS.error(400, said), AnswerWithheld)
    assert isinstance(ERRORS.error(413, None), PromptTooLong)
    assert isinstance(ERRORS.error(503, {"error": {"message": "Loading model"}}), ModelLoading)
    # A rate limit that names the quota passes; an unknown model and a wrong key are so whatever they say.
    assert isinstance(ERRORS.error(429, {"error": {"message": "You exceeded your current quota"}}), BusyError)
    assert not isinstance(ERRORS.error(404, said), AnswerWithheld)
    assert "s3cret" not in str(ERRORS.error(400, said))
    assert str(ERRORS.error(308, None)) == "It is at another address: check URL."


@pytest.mark.parametrize(
    ("document", "failed"),
    [
        ({"error": {"message": "x"}}, True),
        ([{"error": "x"}], True),
        ({"base_resp": {"status_code": 1026}}, True),
        ({"base_resp": {"status_code": 0}, "choices": []}, False),
        ({"choices": [], "error": None}, False),
        ({"object": "error", "message": "x"}, True),
        (None, False),
        ([], False),
        (7, False),
    ],
)
def test_an_error_in_place_of_a_reply(document: Any, failed: bool) -> None:
    assert (find_error(document) is not None) is failed
