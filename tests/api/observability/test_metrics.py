from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI
from jsonschema import Draft202012Validator

from api import quill
from api.scripted import ANSWER, META, Client, Scripted
from chapterverse.errors import IndexFault
from chapterverse.settings import Settings
from chapterverse_api import log
from chapterverse_api.answer.event import AnswerGiven, measure
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery, Events
from chapterverse_api.ext.aws import metrics
from fakes.cohere_chat import ChatReply
from fakes.cohere_server import KEY, CohereServer
from fakes.recorded_log import recorded_log

#: "Embedded metric format schema" and "Specification: Embedded metric format" of the CloudWatch user guide, as one.
SCHEMA = {
    "type": "object",
    "required": ["_aws"],
    "properties": {
        "_aws": {
            "type": "object",
            "required": ["Timestamp", "CloudWatchMetrics"],
            "additionalProperties": False,
            "properties": {
                "Timestamp": {"type": "integer"},
                "CloudWatchMetrics": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "required": ["Namespace", "Dimensions", "Metrics"],
                        "additionalProperties": False,
                        "properties": {
                            "Namespace": {"type": "string", "minLength": 1, "maxLength": 1024},
                            "Dimensions": {
                                "type": "array",
                                "minItems": 1,
                                "items": {
                                    "type": "array",
                                    "maxItems": 30,
                                    "items": {"type": "string", "minLength": 1, "maxLength": 250},
                                },
                            },
                            "Metrics": {
                                "type": "array",
                                "maxItems": 100,
                                "items": {
                                    "type": "object",
                                    "required": ["Name"],
                                    "additionalProperties": False,
                                    "properties": {
                                        "Name": {"type": "string", "minLength": 1, "maxLength": 1024},
                                        "Unit": {"enum": ["Count", "Milliseconds", "Percent", "None"]},
                                    },
                                },
                            },
                        },
                    },
                },
            },
        }
    },
}


class Measured(Scripted):
    """A service whose turns are measured as the real ones are."""

    def chat(self, *arguments: Any, **options: Any) -> Events:
        yield META
        stages = {"embed": 0.05, "search": 0.01, "weigh": 0.001, "rerank": 0.06, "generate": 0.9}
        measure(AnswerGiven(ChatQuery(query="a"), ANSWER, None, 1.25, stages, True, None, None, 0.0))
        log.measure(CostUsd=0.0031, InputTokens=4000, OutputTokens=300, BudgetShare=81.5)
        yield ANSWER


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """Act as a Lambda function, and record its log."""
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "docs-chat")
    with recorded_log() as stream:
        yield stream


def warm(service: Scripted, site: str = "") -> FastAPI:
    """Return an application that has answered its first request."""
    app = create_app(service, settings=Settings(site=site))
    Client(app).get("/v1/health")
    return app


def measured(lines: io.StringIO) -> list[dict[str, Any]]:
    """Return the lines of metrics, after checking each against the specification."""
    documents = [json.loads(line) for line in lines.getvalue().splitlines()]
    found = [document for document in documents if "_aws" in document and not document["ColdStarts"]]
    for document in found:
        check(document)
    return found


def check(document: dict[str, Any]) -> None:
    Draft202012Validator(SCHEMA).validate(document)
    assert abs(document["_aws"]["Timestamp"] / 1000 - time.time()) < 3600
    (directive,) = document["_aws"]["CloudWatchMetrics"]
    names = [metric["Name"] for metric in directive["Metrics"]]
    assert len(set(names)) == len(names)
    # Targets are members of the root: numbers for metrics, texts for dimensions.
    assert all(type(document[name]) in (int, float) for name in names)
    for dimensions in directive["Dimensions"]:
        assert all(0 < len(document[name]) <= 1024 and document[name].isascii() for name in dimensions)
    assert len(json.dumps(document)) < 256 * 1024


def test_a_question_is_one_line(lines: io.StringIO) -> None:
    response = Client(warm(Measured(), "quill")).post("/v1/chat", {"query": "a"})
    (line,) = measured(lines)
    assert (line["Site"], line["request_id"]) == ("quill", response.headers["x-request-id"])
    assert {name: line[name] for name in metrics.UNITS if name in line} == {
        "Questions": 1,
        "Rejections": 0,
        "NotInDocs": 0,
        "Degraded": 1,
        "Errors": 0,
        "ColdStarts": 0,
        "CostUsd": 0.0031,
        "InputTokens": 4000,
        "OutputTokens": 300,
        "Latency": 1250.0,
        "EmbedLatency": 50.0,
        "SearchLatency": 10.0,
        "RerankLatency": 60.0,
        "GenerateLatency": 900.0,
        "BudgetShare": 81.5,
    }
    assert {m["Name"] for m in line["_aws"]["CloudWatchMetrics"][0]["Metrics"]} == set(metrics.UNITS)


def test_what_models_cost_is_told_of_an_answer_that_broke_too(lines: io.StringIO, tmp_path: Path) -> None:
    with CohereServer() as cohere:
        settings = quill.publish(tmp_path).override(generator="cohere", cohere_url=cohere.url, cohere_api_key=KEY)
        service = quill.service(settings)
        app = create_app(service, settings=settings)
        Client(app).get("/v1/health")
        query = {"query": "How do I clear the cache?"}
        Client(app).post("/v1/chat", query)
        cohere.say(ChatReply("`quill cache clean` removes", error="ERROR", finish="ERROR"))
        Client(app).post("/v1/chat", query, headers={"accept": "text/event-stream"})
    whole, broken = measured(lines)
    assert (whole["CostUsd"], whole["InputTokens"], whole["OutputTokens"]) == (0.00015, 20, 10)
    assert 0 < whole["BudgetShare"] < 4
    assert broken["CostUsd"] > whole["CostUsd"]
    assert broken["Degraded"] == 1


@pytest.mark.parametrize(
    ("method", "path", "options", "counted"),
    [
        ("POST", "/v1/chat", {"json": {"query": ""}}, "Rejections"),
        ("POST", "/v1/chat", {"content": b"x"}, "Rejections"),
        ("GET", "/v1/health", {"headers": {"origin": "https://evil.example"}}, "Rejections"),
        ("POST", "/v1/retrieve", {"json": {"query": "a"}}, "Errors"),
    ],
)
def test_what_was_turned_away_or_failed_is_counted(
    lines: io.StringIO, method: str, path: str, options: dict[str, Any], counted: str
) -> None:
    Client(warm(Scripted([IndexFault("gone")]))).request(method, path, **options)
    (line,) = measured(lines)
    others = {"Questions", "Rejections", "Errors"} - {counted}
    assert (line[counted], {line[name] for name in others}, line["Site"]) == (1, {0}, "default")
    assert "Latency" not in line


def test_a_stream_that_breaks_is_an_error(lines: io.StringIO) -> None:
    Client(warm(Scripted([META, ValueError("a")]))).post(
        "/v1/chat", {"query": "a"}, headers={"accept": "text/event-stream"}
    )
    (line,) = measured(lines)
    assert line["Errors"] == 1


def test_only_the_first_request_of_a_process_is_a_cold_start(lines: io.StringIO) -> None:
    app = warm(Measured())
    for _ in range(3):
        Client(app).post("/v1/chat", {"query": "a"})
    first, *others = [json.loads(line) for line in lines.getvalue().splitlines()]
    check(first)
    assert (first["ColdStarts"], first["Questions"]) == (1, 0)
    assert [(line["ColdStarts"], line["Questions"]) for line in others] == [(0, 1)] * 3


@pytest.mark.parametrize("path", ["/favicon.ico", "/wp-login.php", "/v1/health"])
def test_what_asks_nothing_writes_nothing(lines: io.StringIO, path: str) -> None:
    Client(warm(Scripted())).get(path)
    assert measured(lines) == []


def test_no_line_is_written_where_nobody_reads_it(lines: io.StringIO, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME")
    Client(warm(Measured())).post("/v1/chat", {"query": "a"})
    assert lines.getvalue() == ""


def test_nothing_that_a_client_sends_becomes_a_dimension(lines: io.StringIO) -> None:
    headers = {"host": "cAnArY.example", "x-request-id": "cAnArY", "user-agent": "cAnArY", "referer": "https://cAnArY/"}
    Client(warm(Measured())).post("/v1/chat?cAnArY", {"query": "cAnArY", "version": "cAnArY"}, headers=headers)
    assert len(measured(lines)) == 1
    assert "cAnArY" not in lines.getvalue()


def test_every_metric_and_no_stage_at_all_are_within_the_format() -> None:
    for numbers in (dict.fromkeys(metrics.UNITS, 0.5), {}):
        check(metrics.metrics_line("default", numbers, time.time()))


def test_outside_of_a_request_there_is_nothing_to_measure(lines: io.StringIO) -> None:
    log.measure(Errors=1)
    assert lines.getvalue() == ""


def test_an_invocation_is_known_by_lambdas_own_id(lines: io.StringIO) -> None:
    app = warm(Measured())

    async def invoked(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "aws.context": SimpleNamespace(aws_request_id="8f1e-aws")}, receive, send)

    response = Client(invoked).post("/v1/chat", {"query": "a"}, headers={"x-request-id": "forged"})
    assert response.headers["x-request-id"] == "8f1e-aws"
    assert measured(lines)[0]["request_id"] == "8f1e-aws"
