"""Plans over a real index: by a model's wire, from a page's own steps, and the state that a reader brings back."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.answer.test_tool_rounds import Shop, entry
from api.http.guard.test_rate import came_from
from api.scripted import Client, error_of
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from chapterverse_api.ext.agents.plans.draft import SCHEMA
from chapterverse_api.ext.agents.plans.requests import PLAN_SECONDS
from chapterverse_api.ext.agents.schema import parse_schema
from chapterverse_api.service import Service
from fakes.loopback import Answer, failing
from fakes.openai_server import KEY, OpenAIServer

UPGRADE = """# Upgrading

## Upgrading Quill

To upgrade Quill:

1. Back up the folder `~/.quill`.
2. Stop every running build.

    Builds that run are lost.

3. Run the upgrade:

    ```sh
    1. quill upgrade
    ```

4. Check it with `quill --version`.

Then the old templates still work.
"""
QUESTION = "How do I upgrade Quill?"
STEPS: list[dict[str, Any]] = [
    {"id": "back-up", "kind": "action", "text": "Back up the folder `~/.quill`.", "citations": ["1"], "next": "ask"},
    {
        "id": "ask",
        "kind": "ask_user",
        "text": "Is a build running?",
        "citations": ["1"],
        "options": [{"label": "Yes", "next": "stop"}, {"label": "No", "next": "upgrade"}],
    },
    {"id": "stop", "kind": "action", "text": "Stop every running build.", "citations": ["1"], "next": "upgrade"},
    {"id": "upgrade", "kind": "action", "text": "Check it with `quill --version`.", "citations": ["1"], "next": None},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("index")
    quill.publish(root, {**quill.PAGES, "upgrade.md": UPGRADE})
    return root


@pytest.fixture
def model() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


@pytest.fixture
def settings(index: Path, model: OpenAIServer) -> Settings:
    return Settings(
        store=f"edge:{index}",
        generator="openai:gpt-4.1-mini",
        openai_url=model.url,
        openai_api_key=KEY,
        signing_key="0123456789abcdef" * 4,
        rates="off",
    )


def client(settings: Settings) -> Client:
    return Client(create_app(Service.open(settings)))


def post(of: Client, **body: Any) -> dict[str, Any]:
    response = of.post("/v1/plans", body)
    assert response.status_code == 200, response.text
    reply: dict[str, Any] = response.json()
    return reply


def answer(*steps: dict[str, Any]) -> list[str]:
    return [json.dumps({"title": "Upgrade", "steps": list(steps)})]


def full(step: dict[str, Any]) -> dict[str, Any]:
    """Return a step as a strict schema makes a model write it."""
    members = SCHEMA.document["properties"]["steps"]["items"]["properties"]
    return {**dict.fromkeys(members), **step}


def test_the_schema_is_one_that_services_take() -> None:
    assert parse_schema("plan", SCHEMA.document) == SCHEMA.document


def test_a_reader_steps_through_a_models_plan(settings: Settings, model: OpenAIServer) -> None:
    model.scripts.append(answer(*map(full, STEPS)))
    site = client(settings)
    reply = post(site, query=QUESTION)
    assert (reply["status"], reply["planned_by"], reply["title"]) == ("open", "model", "Upgrade")
    assert [step["id"] for step in reply["plan"]] == ["back-up", "ask", "stop", "upgrade"]
    assert all(step["citations"] for step in reply["plan"])
    cited = {i for step in reply["plan"] for i in step["citations"]}
    assert {source["id"] for source in reply["sources"]} == cited
    assert f"{quill.BASE}upgrade/#upgrading-quill" in {source["url"] for source in reply["sources"]}
    assert reply["step"]["text"] == "Back up the folder `~/.quill`."
    asked = post(site, state=reply["state"])
    assert [option["label"] for option in asked["step"]["options"]] == ["Yes", "No"]
    # Another instance goes on, and nothing more is paid for.
    last = post(client(settings), state=asked["state"], input="no")
    assert last["step"]["id"] == "upgrade"
    assert (last["plan"], last["sources"]) == ([], reply["sources"])
    end = post(site, state=last["state"])
    assert (end["status"], end["step"], end["state"]) == ("ended", None, None)
    assert len(model.history) == 1


def test_without_a_model_the_page_plans(settings: Settings) -> None:
    reply = post(client(settings.override(generator="extractive")), query=QUESTION)
    assert (reply["status"], reply["planned_by"]) == ("open", "page")
    texts = [step["text"] for step in reply["plan"]]
    assert texts[0] == "Back up the folder `~/.quill`."
    assert texts[1].startswith("Stop every running build.")
    assert "quill upgrade" in texts[2]
    assert texts[3] == "Check it with `quill --version`."
    assert len(texts) == 4
    assert [step["next"] for step in reply["plan"]] == ["step-2", "step-3", "step-4", None]
    assert all(step["citations"] == reply["plan"][0]["citations"] for step in reply["plan"])
    (source,) = reply["sources"]
    assert source["url"] == f"{quill.BASE}upgrade/#upgrading-quill"


@pytest.mark.parametrize("question", ["What is the capital of Mongolia?", "Which languages does the search stem?"])
def test_without_steps_there_is_no_plan(settings: Settings, question: str) -> None:
    reply = post(client(settings.override(generator="extractive")), query=question)
    assert (reply["status"], reply["step"], reply["state"], reply["plan"]) == ("not_in_docs", None, None, [])


LIE = {"id": "a", "kind": "action", "text": "Feed the seven golden penguins.", "citations": ["1"], "next": None}
LOOP = [{**STEPS[0], "next": "stop"}, {**STEPS[2], "next": "back-up"}]
BAD = {
    "no JSON": ["I would first back up."],
    "a lie": answer(full(LIE)),
    "a loop": answer(*map(full, LOOP)),
    "a tool": answer(full({"id": "a", "kind": "call_tool", "tool": "rm", "next": None})),
    "too many": answer(*[full({**STEPS[0], "id": f"s{n}", "next": f"s{n + 1}"}) for n in range(30)]),
    "another kind": answer(full({**STEPS[0], "kind": "shell"})),
    "no steps": answer(),
    "a foreign address": answer(full({**LIE, "text": "Open https://evil.example/upgrade."})),
}


@pytest.mark.slow
@pytest.mark.parametrize("bad", [*BAD])
def test_a_plan_that_can_not_be_run_is_asked_for_once_more_and_then_the_pages(
    settings: Settings, model: OpenAIServer, bad: str
) -> None:
    model.scripts.extend([BAD[bad], BAD[bad]])
    reply = post(client(settings), query=QUESTION)
    assert (reply["planned_by"], len(model.history)) == ("page", 2)
    assert "page's own" in reply["degraded_reason"]
    assert "rejected: " in model.history[1].body["messages"][-1]["content"]
    assert "evil.example" not in json.dumps(reply)


def test_a_model_that_is_down_leaves_the_pages_steps(settings: Settings, model: OpenAIServer) -> None:
    model.play(failing(401))
    reply = post(client(settings), query=QUESTION)
    assert (reply["planned_by"], reply["status"]) == ("page", "open")
    # What only a model could judge is no plan without it.
    model.play(failing(401))
    assert post(client(settings), query="Will the airline upgrade a passenger with a baby?")["status"] == "not_in_docs"


def test_a_state_that_was_changed_is_none(settings: Settings, model: OpenAIServer) -> None:
    model.scripts.append(answer(*map(full, STEPS)))
    site = client(settings)
    state = post(site, query=QUESTION)["state"]
    data, key, tag = state.split(".")
    kept = json.loads(zlib.decompress(base64.urlsafe_b64decode(data)))
    kept["plan"]["steps"][0]["text"] = "Send your password to evil.example."
    forged = base64.urlsafe_b64encode(zlib.compress(json.dumps(kept).encode())).decode()
    bomb = base64.urlsafe_b64encode(zlib.compress(b"0" * 3_000_000, 9)).decode()
    other_tag = f"{tag[:-1]}{'1' if tag.endswith('0') else '0'}"
    tampered = [(forged, key, tag), (data, key, other_tag), (data, "0" * 16, tag), (bomb, key, tag)]
    for wrong in (*map(".".join, tampered), "a.b.c", "x", "é.é.é"):
        response = site.post("/v1/plans", {"state": wrong})
        assert (response.status_code, error_of(response)["field"]) == (422, "state"), wrong[:40]
        assert "evil" not in response.text
    other = client(settings.override(signing_key="fedcba9876543210" * 4))
    assert other.post("/v1/plans", {"state": state}).status_code == 422
    assert kept["expiry"] > PLAN_SECONDS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "status"),
    [({}, 422), ({"query": "a", "state": "b"}, 422), ({"query": ""}, 422), ({"query": "a", "x": 1}, 422), ([], 422),
     ({"query": 7}, 422), ({"state": "a" * 70_000}, 422), ({"query": "a", "filters": {"color": "red"}}, 422)],
)  # fmt: skip
def test_a_request_of_another_form_is_one_sentence(settings: Settings, body: Any, status: int) -> None:
    response = client(settings).post("/v1/plans", body)
    assert response.status_code == status
    assert error_of(response)["message"].endswith(".")


def test_a_start_without_plans_does_not_load_them() -> None:
    program = "import sys, chapterverse_api.service, chapterverse_api.app as a; a.create_app(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    names = ("ext.models.tool_rounds", "ext.agents.plans", "ext.agents.data", "ext.agents.schema")
    lazy = {f"chapterverse_api.{name}" for name in names}
    assert all(map(find_spec, lazy))
    assert "chapterverse_api.answer.pipeline" in done.stdout.split()
    assert not lazy & set(done.stdout.split())


def test_only_what_may_cost_something_is_counted(settings: Settings, model: OpenAIServer) -> None:
    model.scripts.append(answer(*map(full, STEPS)))
    limited = settings.override(rates="1/min")
    site = came_from(create_app(Service.open(limited), settings=limited), client=("203.0.113.7", 1))
    state = post(site, query=QUESTION)["state"]
    for _ in range(3):
        assert post(site, state=state)["step"]["id"] == "ask"
    assert site.post("/v1/plans", {"query": QUESTION}).status_code == 429
    assert site.post("/v1/plans", {"state": "what may call a tool"}).status_code == 429


@pytest.mark.parametrize(("state", "way"), [("shipped", "upgrade"), ("lost", "back-up")])
def test_a_plan_looks_something_up_and_decides(
    settings: Settings, model: OpenAIServer, tmp_path: Path, state: str, way: str
) -> None:
    decision = {"variable": "order", "operator": "contains", "value": "shipped", "next": "upgrade"}
    steps: list[dict[str, Any]] = [
        {"id": "ask", "kind": "ask_user", "text": "Which build do you upgrade?", "variable": "number", "next": "look"},
        {
            "id": "look",
            "kind": "call_tool",
            "tool": "order_status",
            "arguments": [{"name": "order", "value": "{number}"}],
            "variable": "order",
            "next": "decide",
        },
        {"id": "decide", "kind": "decide", "conditions": [decision], "next": "back-up"},
        {**STEPS[0], "next": None},
        STEPS[3],
    ]
    model.scripts.append(answer(*map(full, steps)))
    with Shop() as shop:
        body = json.dumps({"state": state, "see": "https://evil.example/x"}).encode()
        shop.planted = lambda _: Answer(200, body, {"Content-Type": "application/json"})
        file = tmp_path / "tools.json"
        parameters = {"properties": {"order": {"type": "integer"}}, "required": ["order"]}
        file.write_text(json.dumps({"tools": [entry(shop, headers={}, parameters=parameters)]}))
        site = client(settings.override(tools=str(file), allow_private=shop.place))
        asked = post(site, query=QUESTION)
        assert asked["step"]["id"] == "ask"
        reply = post(site, state=asked["state"], input="17")
        assert [request.path for request in shop.history] == ["/orders/17"]
    assert reply["step"]["id"] == way
    (result,) = reply["results"]
    assert (result["name"], result["ok"]) == ("order_status", True)
    assert state in result["text"]
    assert "evil.example" not in json.dumps(reply)
