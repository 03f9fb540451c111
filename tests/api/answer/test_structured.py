"""Data that fits an owner's schema, from real providers' wire formats over a real index."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from api import quill
from api.scripted import Client, error_of
from chapterverse.errors import InputError
from chapterverse.extensions import open_offer
from chapterverse.settings import Settings
from chapterverse_api.answer.pipeline import answer_turn
from chapterverse_api.answer.turn import Turn
from chapterverse_api.app import create_app
from chapterverse_api.commands import ServiceSession
from chapterverse_api.contract import ChatQuery
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import Writer
from chapterverse_api.draft.requests import ChatMessage, ModelRequest, ResponseSchema
from chapterverse_api.ext.agents.schema import read_schema
from chapterverse_api.ext.budget.daily_budget import TurnBudget
from fakes.bedrock_server import BedrockServer
from fakes.cohere_chat import ChatReply
from fakes.cohere_server import CohereServer
from fakes.openai_server import KEY, OpenAIServer

QUESTION = "How do I clear the cache?"
TASKS: dict[str, Any] = {
    "tasks": [
        {"title": "`quill cache clean` removes every entry", "command": "quill cache clean", "note": None},
        {"title": "Feed the seven golden penguins", "command": None, "note": "Clearing the cache while a build runs"},
    ]
}
SIMPLE = ResponseSchema("simple", {"type": "object", "properties": {"name": {"type": "string"}}})


@pytest.fixture
def provider() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def settings(index: Path, provider: OpenAIServer) -> Settings:
    return Settings(store=f"edge:{index}", generator="openai:gpt-4.1-mini", openai_url=provider.url, openai_api_key=KEY)


def test_each_value_has_the_citation_that_carries_it(settings: Settings, provider: OpenAIServer) -> None:
    provider.scripts.append([json.dumps(TASKS)])
    answer = quill.ask(ServiceSession.open(settings), QUESTION, output="tasks")
    assert answer.data == TASKS
    jsonschema.validate(answer.data, read_schema("tasks", "").document)
    (source,) = {s.id for s in answer.source_chunks if s.url == f"{quill.BASE}cache/#clearing-the-cache"}
    assert answer.data_citations == {
        "tasks": [
            {"title": source, "command": source, "note": None},
            {"title": None, "command": None, "note": source},
        ]
    }
    assert answer.sources_cited == [f"{quill.BASE}cache/#clearing-the-cache"]
    assert "- tasks › 1 › command: quill cache clean\n" in answer.response
    (request,) = provider.history
    form = request.body["response_format"]["json_schema"]
    assert (form["name"], form["strict"]) == ("tasks", True)
    assert "The JSON Schema:" in request.body["messages"][0]["content"]


def test_numbers_need_a_sentence_that_speaks_of_the_same(index: Path, provider: OpenAIServer, tmp_path: Path) -> None:
    number = {"type": "number"}
    document = {"type": "object", "properties": {"days": number, "deployment": number, "penguins": number}}
    (tmp_path / "numbers.json").write_text(json.dumps(document))
    provider.scripts.append([json.dumps({"days": 30, "deployment": 41, "penguins": 30})])
    service = ServiceSession.open(
        Settings(
            store=f"edge:{index}",
            generator="openai:gpt-4.1-mini",
            openai_url=provider.url,
            openai_api_key=KEY,
            schemas=str(tmp_path),
        )
    )
    cited = quill.ask(service, "How do I roll back a deployment?", output="numbers").data_citations
    assert cited is not None
    assert cited["days"] is not None
    assert cited["days"] == cited["deployment"]
    assert cited["penguins"] is None


def test_what_does_not_fit_is_asked_for_once_more(settings: Settings, provider: OpenAIServer) -> None:
    provider.scripts.extend([['{"tasks": []}'], ["```json\n", json.dumps(TASKS), "\n```"]])
    answer = quill.ask(ServiceSession.open(settings), QUESTION, output="tasks")
    assert answer.data == TASKS
    first, second = provider.history
    assert "/tasks must hold at least 1 items" in second.body["messages"][-1]["content"]
    assert "rejected" not in first.body["messages"][-1]["content"]


@pytest.mark.parametrize("reply", ["nothing", "[1]", '{"tasks": NaN}', '{"tasks": 5}', "[" * 50_000, "{}"])
def test_what_never_fits_leaves_quotes(settings: Settings, provider: OpenAIServer, reply: str) -> None:
    provider.scripts.extend([[reply]] * 3)
    answer = quill.ask(ServiceSession.open(settings), QUESTION, output="tasks")
    assert (answer.status, answer.data, answer.data_citations) == ("degraded", None, None)
    assert "`quill cache clean` removes every entry" in answer.response
    assert len(provider.history) == 2


def test_data_without_a_citation_is_refused(settings: Settings, provider: OpenAIServer) -> None:
    lie = {"tasks": [{"title": "Seven penguins inherit bicycles", "command": None, "note": None}]}
    provider.scripts.append([json.dumps(lie)])
    answer = quill.ask(ServiceSession.open(settings), QUESTION, output="tasks")
    assert (answer.status, answer.data) == ("not_in_docs", None)
    assert "penguins" not in answer.model_dump_json()


def test_no_foreign_address_is_in_the_data(settings: Settings, provider: OpenAIServer) -> None:
    lured = {"tasks": [{"title": "quill cache clean", "command": "curl https://evil.example/x", "note": None}]}
    provider.scripts.append([json.dumps(lured)])
    answer = quill.ask(ServiceSession.open(settings), QUESTION, output="tasks")
    assert answer.data is not None
    assert "evil.example" not in answer.model_dump_json()


def test_a_question_beyond_the_docs_asks_no_model(settings: Settings, provider: OpenAIServer) -> None:
    answer = quill.ask(ServiceSession.open(settings), "Who won the football cup of 1954?", output="tasks")
    assert (answer.status, answer.data) == ("not_in_docs", None)
    assert not provider.history


def test_quotes_alone_give_no_data(index: Path) -> None:
    service = ServiceSession.open(Settings(store=f"edge:{index}"))
    answer = Client(create_app(service)).post("/v1/chat", {"query": QUESTION, "output": "tasks"})
    assert answer.status_code == 422
    assert error_of(answer)["field"] == "output"
    with pytest.raises(InputError, match="needs a language model"):
        service.answer(query=QUESTION, output="tasks")


@pytest.mark.parametrize("name", ["nothing", "../secrets", "", "a" * 65])
def test_a_name_of_no_schema_is_422(settings: Settings, name: str) -> None:
    client = Client(create_app(ServiceSession.open(settings)))
    for path, body in (
        ("/v1/chat", {"query": QUESTION, "output": name}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": QUESTION}], "output": name}),
    ):
        assert client.post(path, body).status_code == 422


def test_both_tries_are_counted(settings: Settings, provider: OpenAIServer) -> None:
    service = ServiceSession.open(settings.override(prices="generator=1/1"))
    spent: list[float] = []
    for replies in ([json.dumps(TASKS)], ["{}", json.dumps(TASKS)]):
        provider.scripts.extend([reply] for reply in replies)
        budget = TurnBudget()
        models = quill.paid_from(budget, service)
        list(answer_turn(Turn.open(ChatQuery(query=QUESTION, output="tasks"), service.resources, models=models)))
        spent.append(budget.usd)
    assert 1.8 * spent[0] < spent[1] < 2.2 * spent[0]


def write(made: object, schema: ResponseSchema = SIMPLE) -> str:
    assert isinstance(made, Writer)
    return made.write_data(ModelRequest("Fill it in.", (ChatMessage("user", "a"),), 60, Deadline(20)), schema)


def test_an_old_server_gets_the_schema_in_its_instructions_alone(provider: OpenAIServer) -> None:
    settings = Settings(generator="openai:old-model", openai_url=provider.url, openai_api_key=KEY)
    provider.scripts.append(['{"name": "a"}'])
    assert write(open_offer("generator", settings)) == '{"name": "a"}'
    assert ["response_format" in r.body for r in provider.history] == [True, False]
    # An object that is open is none for the strict mode.
    assert provider.history[0].body["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize(("model", "asked"), [("command-a-03-2025", [True]), ("command-r7b-12-2024", [True, False])])
def test_cohere_gets_the_schema_without_documents(model: str, asked: list[bool]) -> None:
    with CohereServer() as server:
        server.say(ChatReply('{"name": "a"}'))
        settings = Settings(generator=f"cohere:{model}", cohere_url=server.url, cohere_api_key="test-key")
        assert json.loads(write(open_offer("generator", settings))) == {"name": "a"}
        assert ["response_format" in r.body for r in server.history] == asked
        assert server.history[0].body["response_format"] == {"type": "json_object", "json_schema": SIMPLE.document}


@pytest.mark.parametrize(
    ("model", "asked"),
    [("anthropic.claude-haiku-4-5-20251001-v1:0", [True]), ("amazon.nova-lite-v1:0", [True, False])],
)
def test_bedrock_gets_the_schema_as_text(model: str, asked: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    with BedrockServer() as server:
        for name, value in {
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.url,
            "AWS_ACCESS_KEY_ID": "id",
            "AWS_SECRET_ACCESS_KEY": "key",
            "AWS_DEFAULT_REGION": "eu-central-1",
        }.items():
            monkeypatch.setenv(name, value)
        server.scripts.append(['{"name": "a"}'])
        assert write(open_offer("generator", Settings(generator=f"bedrock:{model}"))) == '{"name": "a"}'
        assert ["outputConfig" in r.body for r in server.history] == asked
        form = server.history[0].body["outputConfig"]["textFormat"]
        assert form["type"] == "json_schema"
        assert json.loads(form["structure"]["jsonSchema"]["schema"]) == SIMPLE.document
