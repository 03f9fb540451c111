"""Whole conversations over the real pipeline: signed answers are recognized, stored ones remembered."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.scripted import Client
from api.writers import Scribe
from chapterverse.settings import Settings
from chapterverse_api.answer.turn import TURN_SECONDS, Turn
from chapterverse_api.app import create_app
from chapterverse_api.contract import ChatQuery
from chapterverse_api.ext.conversations.threads import SUMMARY_TURNS
from chapterverse_api.service import Service

SESSION = Path(__file__).parents[3] / "plugin" / "chapterverse" / "widget" / "history.js"
CACHE = "How do I clear the cache of renders?"
CANARY = "cAnArY"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return quill.publish(tmp_path_factory.mktemp("index"))


def asked(service: Service, *documents: dict[str, Any]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Ask over HTTP as the widget does; return the answers, and the session that the widget then holds."""
    answers: list[dict[str, Any]] = []
    session: list[dict[str, Any]] = []
    client = Client(create_app(service))
    for document in documents:
        response = client.post("/v1/chat", {**document, "conversation_history": session[-10:]})
        assert response.status_code == 200, response.text
        answer = response.json()
        content = document.get("query") or document["selected_text"][:4000]
        session += [
            {"role": "user", "content": content, "timestamp": "2026"},
            {"role": "assistant", "content": answer["response"], "timestamp": "2026", "signature": answer["signature"]},
        ]
        answers.append(answer)
    return answers, session


def as_replayed(session: list[dict[str, Any]], node: Path) -> list[dict[str, Any]]:
    """Return the history that the widget's own code makes of a session."""
    program = f"""
globalThis.CSSStyleSheet = class {{ replaceSync() {{}} }};
const {{ recent }} = await import({json.dumps(SESSION.as_uri())});
console.log(JSON.stringify(recent(JSON.parse(await new Response(process.stdin).text()))));
"""
    run = [str(node), "--input-type=module", "--no-warnings", "-e", program]
    done = subprocess.run(run, input=json.dumps(session), capture_output=True, text=True, check=True)
    replayed: list[dict[str, Any]] = json.loads(done.stdout)
    return replayed


def test_what_the_widget_sends_back_is_ours(settings: Settings, node: Path) -> None:
    service = quill.service(settings)
    # A selection alone, one with a question, a refusal, and an answer: the widget replays each in its own way.
    _, session = asked(
        service,
        {"query": CACHE},
        {"selected_text": "Renders are kept in the cache. " + "é😀" * 1600},
        {"query": "Where is it kept?", "selected_text": "Renders are kept in the cache folder."},
        {"query": "Who won the cup final of 1966 in football?"},
    )
    history = as_replayed(session, node)
    query = ChatQuery.model_validate_json(json.dumps({"query": "a", "conversation_history": history}))
    transcript = service.resources.signer.read(query.conversation_history)
    assert sorted(transcript.positions) == [1, 3, 5, 7]
    assert transcript.tag == session[-1]["signature"]["tag"]


def test_a_follow_up_finds_what_the_question_before_was_about(settings: Settings) -> None:
    answers, _ = asked(quill.service(settings), {"query": CACHE}, {"query": "And why?"})
    assert answers[1]["sources_cited"][0] == answers[0]["sources_cited"][0]
    alone, _ = asked(quill.service(settings), {"query": "And why?"})
    assert alone[0]["status"] == "not_in_docs"


def test_a_thread_that_is_kept_needs_no_history(settings: Settings, tmp_path: Path) -> None:
    keeping = replace(settings, records=f"sqlite:{tmp_path / 'records.sqlite'}")
    first = quill.ask(quill.service(keeping), CACHE)
    # Nobody guesses it.
    assert re.fullmatch("[0-9a-f]{32}", first.thread_id or "")
    assert first.thread_id != quill.ask(quill.service(keeping), CACHE).thread_id
    # Another process: nothing but the id leads there.
    second = quill.ask(quill.service(keeping), "And why?", thread_id=first.thread_id)
    assert (second.status, second.thread_id) == (first.status, first.thread_id)
    assert quill.ask(quill.service(keeping), "And why?").status == "not_in_docs"
    client = Client(create_app(quill.service(keeping)))
    assert client.request("DELETE", f"/v1/threads/{first.thread_id}").status_code == 204
    assert quill.ask(quill.service(keeping), "And why?", thread_id=first.thread_id).status == "not_in_docs"


def test_nothing_that_was_selected_or_told_is_kept(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "records.sqlite"
    service = quill.service(replace(settings, records=f"sqlite:{path}"))
    told = {"thread_id": "thread-of-canaries", "user_context": f"I am {CANARY}."}
    asked(
        service,
        {"query": CACHE, **told},
        {"selected_text": f"Quill keeps {CANARY} in its cache.", **told},
        {"query": "What is kept?", "selected_text": f"Quill keeps {CANARY} in its cache.", **told},
        {"query": "And where does it keep renders?", **told},
    )
    assert b"thread-of-canaries" in path.read_bytes()
    assert CANARY.encode() not in path.read_bytes()


def test_records_that_fail_fail_no_answer(settings: Settings, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_bytes(b"no database" * 100)
    response = quill.ask(quill.service(replace(settings, records=f"sqlite:{broken}")), CACHE, thread_id="abc")
    assert response.status == "degraded"
    assert response.sources_cited
    assert response.degraded_reason == (
        "The database of the conversations can't be reached: the answer was made without what it holds, and is not "
        "kept."
    )


def test_a_missing_driver_costs_memory_and_no_answer(settings: Settings) -> None:
    """In a process of its own, where psycopg can't be imported, as in the Lambda package."""
    program = f"""
import sys
sys.modules["psycopg"] = None
from chapterverse.settings import Settings
from chapterverse_api.app import create_app
from api.scripted import Client
settings = Settings(store={settings.store!r}, records="postgresql://u:hunter2@127.0.0.1:1/db")
client = Client(create_app(settings=settings))
answer = client.post("/v1/chat", {{"query": {CACHE!r}}})
status = client.get("/v1/status")
forgotten = client.request("DELETE", "/v1/threads/abc")
print(answer.status_code, status.status_code, forgotten.status_code)
print(answer.json()["degraded_reason"])
print(status.json()["degraded"])
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    codes, reason, degraded = done.stdout.splitlines()
    assert codes == "200 200 503"
    assert reason.startswith("The database of the conversations can't be reached")
    assert degraded == "['records']"
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize(("took", "left"), [(0.0, 5.0), (TURN_SECONDS - 2, 2.0), (TURN_SECONDS + 2, 0.0)])
def test_a_late_answer_leaves_less_time_for_a_summary(
    settings: Settings, tmp_path: Path, took: float, left: float
) -> None:
    keeping = replace(settings, records=f"sqlite:{tmp_path / 'records.sqlite'}")
    service, scribe = quill.service(keeping), Scribe("They clear the cache.")
    for _ in range(SUMMARY_TURNS - 1):
        answer = quill.ask(service, CACHE, thread_id="abc")
    turn = Turn.open(ChatQuery(query=CACHE, thread_id="abc"), service.resources)
    turn.progress.started -= took
    turn.models = replace(turn.models, generator=scribe)
    turn.search()
    list(turn.end(answer.model_copy(update={"turn_id": turn.id})))
    assert left - 1 <= scribe.asked[0].seconds <= left


def test_without_records_nothing_is_kept(settings: Settings) -> None:
    service = quill.service(settings)
    assert service.resources.threads is None
    assert quill.ask(service, CACHE).thread_id is None
    assert quill.ask(service, CACHE, thread_id="abc").thread_id == "abc"
