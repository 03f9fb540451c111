"""Cohere's error responses as our errors."""

from __future__ import annotations

import pytest

from chapterverse.errors import KeyRefused, ProviderError, TextRejected
from chapterverse.ext.cohere.service import CohereErrors
from chapterverse.ext.net.retry import BusyError

LIMITS = {"x-endpoint-monthly-call-limit": "1000", "x-trial-endpoint-call-limit": "10"}


@pytest.mark.parametrize(("status", "free"), [(400, True), (429, True), (503, True), (200, False), (408, False)])
def test_only_a_refusal_is_known_to_cost_nothing(status: int, free: bool) -> None:
    assert CohereErrors().error(status, {}, {}).unbilled is free
    assert not any(CohereErrors().error(status, {}, {}).unbilled for status in (500, 502, 504, 599))


@pytest.mark.parametrize("status", [408, 409, 429, 500, 501, 503, 504, 599])
def test_what_passes_may_be_tried_again_when_it_says(status: int) -> None:
    error = CohereErrors().error(status, {"message": "s3cret"}, {"retry-after": "7"})
    assert isinstance(error, BusyError)
    assert (error.pause, error.retryable) == (7, True)
    assert "s3cret" not in str(error)


@pytest.mark.parametrize("status", [401, 402, 403, 404, 422, 499])
def test_what_does_not_pass_is_final(status: int) -> None:
    error = CohereErrors().error(status, {"message": "s3cret"}, {})
    assert type(error) is (KeyRefused if status in (401, 403) else ProviderError)
    assert not error.retryable
    assert "s3cret" not in str(error)


def test_a_request_that_is_never_taken_is_told_apart() -> None:
    assert isinstance(CohereErrors().error(400, None, {}), TextRejected)


def test_another_good_status_is_no_reply() -> None:
    error = CohereErrors().error(204, None, {})
    assert str(error) == "Cohere answered with something that is no reply."
    assert error.retryable


def test_a_trial_key_is_known_by_the_last_good_reply_or_by_its_name() -> None:
    errors = CohereErrors()
    assert "trial" not in str(errors.error(429, None, {}))
    assert "its calls of this minute" in str(errors.error(429, {"message": "You are using a Trial key"}, {}))
    errors.save_limits({**LIMITS, "x-other": "3"})
    errors.save_limits({"x-trial-endpoint-call-limit": "many"})
    error = errors.error(429, None, {})
    assert "its 10 calls of this minute, or its 1000 calls of this month" in str(error)
    assert error.retryable
    error = errors.error(429, {"message": "limited to 1000 API calls / month"}, {})
    assert "used up its 1000 calls of this month: use a production key" in str(error)
    assert not error.retryable
    assert "trial" not in str(CohereErrors().error(429, None, {}))
