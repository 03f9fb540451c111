from __future__ import annotations

import json
import logging

import pytest

from chapterverse import errors
from chapterverse_api import rejections

SECRET = "s3cret /srv/index/head.json"


@pytest.mark.parametrize(
    ("error", "status", "code", "retryable"),
    [
        (errors.IndexMissing(SECRET), 503, "index_missing", True),
        (errors.IndexMismatch(SECRET), 503, "index_mismatch", True),
        (errors.IndexCorrupt(SECRET), 503, "index_unavailable", True),
        (errors.IndexLocked(SECRET), 503, "index_unavailable", True),
        (errors.ProviderError(SECRET, retryable=True), 503, "provider_unavailable", True),
        (errors.ProviderError(SECRET), 503, "provider_unavailable", False),
        (errors.TextTooLong(SECRET, position=0), 503, "provider_unavailable", False),
        (errors.ConfigurationError(SECRET), 503, "misconfigured", False),
        (ValueError(SECRET), 500, "internal", False),
    ],
)
def test_a_reader_is_told_what_happened_and_nothing_from_the_inside(
    error: Exception, status: int, code: str, retryable: bool
) -> None:
    refusal = rejections.report(error)
    assert (refusal.status, refusal.code, refusal.retryable) == (status, code, retryable)
    body = bytes(refusal.response().body)
    assert json.loads(body) == {"error": {"code": code, "message": refusal.message}}
    assert b"s3cret" not in body


def test_where_nothing_can_be_answered_the_sites_own_search_is_named() -> None:
    site = "https://docs.example.com/"
    refusal = rejections.report(errors.IndexCorrupt(SECRET), site=site)
    assert refusal.message.endswith(f" can't be read right now. Meanwhile {site} has its own search.")
    assert site not in rejections.from_error(ValueError(), site).message


def test_an_unusable_input_keeps_its_own_sentence_and_names_its_field() -> None:
    error = errors.InputError("filters takes language, tags or version.", field="filters")
    refusal = rejections.report(error)
    assert (refusal.status, refusal.code, refusal.field) == (422, "out_of_contract", "filters")
    assert refusal.message == "filters takes language, tags or version."


def _logged(caplog: pytest.LogCaptureFixture, error: Exception) -> list[dict[str, str]]:
    caplog.set_level(logging.INFO, logger="chapterverse")
    try:
        raise error
    except Exception as raised:
        rejections.report(raised, turn_id="t1")
    return [json.loads(record.message) for record in caplog.records]


def test_our_own_error_is_logged_with_its_sentence(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = _logged(caplog, errors.IndexMissing("no index in x"))
    assert (line["event"], line["turn_id"], line["code"]) == ("error", "t1", "index_missing")
    assert (line["type"], line["message"]) == ("IndexMissing", "no index in x")
    assert line["where"].startswith("test_rejections.py:")


def test_a_foreign_error_is_logged_without_its_text(caplog: pytest.LogCaptureFixture) -> None:
    (line,) = _logged(caplog, ValueError("how do I hide my question?"))
    assert line["type"] == "ValueError"
    assert "question" not in json.dumps(line)


def test_a_mistake_of_the_reader_is_no_event(caplog: pytest.LogCaptureFixture) -> None:
    assert _logged(caplog, errors.InputError("x")) == []
