from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.scripted import Client, Scripted, error_of
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.ext.conversations.threads import Threads
from chapterverse_api.service import Service

TURN = "0123456789abcdef" * 2
CANARY = "cAnArY"
DOCS = "https://docs.example.com"


def service(**settings: Any) -> Service:
    """Return a service whose index nobody asks: there is none."""
    return quill.service(replace(Settings(store="edge:/no/where"), **settings))


def keeping(folder: Path) -> dict[str, str]:
    return {"records": f"sqlite:{folder / 'records.sqlite'}"}


def said(**fields: Any) -> dict[str, Any]:
    return {"turn_id": TURN, "rating": "down", **fields}


@pytest.mark.parametrize(("sent", "rating"), [("up", "up"), ("down", "down"), (1, "up"), (-1, "down")])
def test_a_rating_is_a_word_or_a_number(sent: str | int, rating: str) -> None:
    scripted = Scripted()
    response = Client(create_app(scripted)).post("/v1/feedback", said(rating=sent))
    assert (response.status_code, response.content) == (204, b"")
    assert [(f.turn_id, f.rating, f.reason, f.comment) for f in scripted.rated] == [(TURN, rating, None, None)]


@pytest.mark.parametrize("reason", ["wrong", "incomplete", "unclear", "outdated", "citation", "other", None])
def test_a_reason_and_a_comment_may_come_with_it(reason: str | None) -> None:
    scripted = Scripted()
    comment = "é😀\n" * 500
    response = Client(create_app(scripted)).post("/v1/feedback", said(reason=reason, comment=comment[:2000]))
    assert response.status_code == 204
    assert [(f.reason, f.comment) for f in scripted.rated] == [(reason, comment[:2000])]


RATING = "rating must be 'up' or 'down'."


@pytest.mark.parametrize(
    ("document", "field", "sentence"),
    [
        ({"rating": "up"}, "turn_id", "turn_id is missing."),
        ({"turn_id": TURN}, "rating", "rating is missing."),
        (said(turn_id=TURN[1:]), "turn_id", "turn_id must be 32 hexadecimal digits."),
        (said(turn_id=TURN.upper()), "turn_id", "turn_id must be 32 hexadecimal digits."),
        (said(turn_id=f"{TURN}\n"), "turn_id", "turn_id must be 32 hexadecimal digits."),
        (said(turn_id=7), "turn_id", "turn_id must be text."),
        (said(rating=CANARY), "rating", RATING),
        (said(rating=0), "rating", RATING),
        (said(rating=1.0), "rating", RATING),
        (said(rating=True), "rating", RATING),
        (said(rating="1"), "rating", RATING),
        (said(rating=None), "rating", RATING),
        (said(rating=["up"]), "rating", RATING),
        (
            said(reason=CANARY),
            "reason",
            "reason must be 'wrong', 'incomplete', 'unclear', 'outdated', 'citation' or 'other'.",
        ),
        (said(comment="a" * 2001), "comment", "comment must hold at most 2000 characters."),
        (said(comment=5), "comment", "comment must be text."),
        (said(**{CANARY: CANARY}), None, "The body holds a field that the contract does not have."),
        (said(thread_id="abc"), "thread_id", "thread_id is no field of this request."),
        ([], None, "The body must be a JSON object."),
    ],
)
def test_what_is_out_of_contract_is_refused_and_taken_nowhere(document: Any, field: str | None, sentence: str) -> None:
    scripted = Scripted()
    response = Client(create_app(scripted)).post("/v1/feedback", document)
    error = error_of(response)
    assert (response.status_code, error["code"]) == (422, "out_of_contract")
    assert (error.get("field"), error["message"]) == (field, sentence)
    assert CANARY not in response.text
    assert scripted.rated == []


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ({"content": b"{}", "headers": {"content-type": "text/plain"}}, 415, "not_json"),
        ({"content": b"{", "headers": {"content-type": "application/json"}}, 400, "malformed"),
        ({"content": b'{"rating": NaN}', "headers": {"content-type": "application/json"}}, 400, "malformed"),
        ({"json": said(comment="a" * 200_000)}, 413, "too_large"),
        ({"json": said(), "headers": {"origin": "https://evil.example"}}, 403, "origin_not_allowed"),
    ],
)
def test_it_is_guarded_as_every_route_is(options: dict[str, Any], status: int, code: str) -> None:
    scripted = Scripted(settings=Settings(allowed_origins=DOCS))
    response = Client(create_app(scripted)).request("POST", "/v1/feedback", **options)
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert scripted.rated == []


def test_a_page_of_the_docs_may_say_it() -> None:
    app = create_app(Scripted(settings=Settings(allowed_origins=DOCS)))
    response = Client(app).post("/v1/feedback", said(), headers={"origin": DOCS})
    assert (response.status_code, response.headers["access-control-allow-origin"]) == (204, DOCS)


def test_it_can_only_be_posted() -> None:
    response = Client(create_app(Scripted())).get("/v1/feedback")
    assert (response.status_code, error_of(response)["code"]) == (405, "method_not_allowed")


def test_it_stands_in_the_documents_everywhere() -> None:
    document = create_app(Scripted()).openapi()
    operation = document["paths"]["/v1/feedback"]["post"]
    assert {"204", "400", "403", "413", "415", "422", "503"} <= operation["responses"].keys()
    schema = document["components"]["schemas"]["Feedback"]
    assert schema["properties"]["rating"]["enum"] == ["up", "down", 1, -1]
    assert schema["properties"]["turn_id"]["pattern"] == "^[0-9a-f]{32}$"


def test_without_records_it_is_one_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="chapterverse")
    response = Client(create_app(service())).post("/v1/feedback", said(reason="wrong", comment=f"It is {CANARY}."))
    assert response.status_code == 204
    (record,) = caplog.records
    event = json.loads(record.message)
    assert {k: event[k] for k in ("event", "turn_id", "rating", "reason", "characters")} == {
        "event": "feedback_received", "turn_id": TURN, "rating": "down", "reason": "wrong", "characters": 13,
    }  # fmt: skip
    assert CANARY not in record.message


def test_the_comment_is_logged_where_the_owner_wants_to_read_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="chapterverse")
    app = create_app(service(log_questions=True))
    Client(app).post("/v1/feedback", said(comment='A\n{"event": "forged"}\x1b[2J'))
    (record,) = caplog.records
    assert json.loads(record.message)["comment"] == 'A\n{"event": "forged"}\x1b[2J'
    assert record.message.isprintable()


def test_with_records_it_is_kept_and_the_second_takes_the_place_of_the_first(tmp_path: Path) -> None:
    keeps = service(**keeping(tmp_path))
    client = Client(create_app(keeps))
    for document in (said(comment="No.", reason="wrong"), said(turn_id="f" * 32), said(rating="up", comment="Yes.")):
        assert client.post("/v1/feedback", document).status_code == 204
    assert isinstance(keeps.resources.threads, Threads)
    assert [(r.turn_id, r.rating, r.reason, r.comment) for r in keeps.resources.threads.ratings(9)] == [
        (TURN, "up", "", "Yes."),
        ("f" * 32, "down", "", ""),
    ]


def test_a_database_that_fails_is_told_and_the_word_is_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chapterverse")
    (tmp_path / "records.sqlite").write_bytes(b"no database" * 100)
    response = Client(create_app(service(**keeping(tmp_path)))).post("/v1/feedback", said())
    error = error_of(response)
    assert (response.status_code, error["code"]) == (503, "records_unavailable")
    assert error["message"] == "The conversations that are kept can't be reached right now."
    assert str(tmp_path) not in response.text
    assert [json.loads(record.message)["event"] for record in caplog.records] == ["feedback_received", "error"]
