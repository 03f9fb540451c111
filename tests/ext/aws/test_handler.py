"""The Lambda entry point, imported in a fresh process with nothing but an environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from api import quill
from chapterverse.model import Scope
from ext.aws.test_events import FUNCTION_URL, HTTP_API, WARM_PING

SCRIPT = """
import json, socket, sys
def refuse(*_, **__): raise AssertionError("a connection was opened")
socket.socket.connect = refuse
from chapterverse_api.handler import handler
answers = [handler(event, None) for event in json.load(sys.stdin)]
print(json.dumps({"answers": answers}))
"""


def _run(
    tmp_path: Path, *events: dict[str, Any], **environment: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the answers to `events`, and the lines of the log."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CHAPTERVERSE_")}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(events),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=inherited | environment,
    )
    *lines, last = [json.loads(line) for line in run.stdout.splitlines()]
    return last["answers"], lines


def test_it_answers_with_no_index_and_no_network(tmp_path: Path) -> None:
    origin = {"CHAPTERVERSE_ALLOWED_ORIGINS": "https://docs.example.com"}
    (health, ping, chat), lines = _run(tmp_path, FUNCTION_URL, WARM_PING, HTTP_API, **origin)
    assert json.loads(health["body"]) == {"status": "ok"}
    assert ping == {"status": "ok"}
    assert (chat["statusCode"], json.loads(chat["body"])["error"]["code"]) == (503, "index_missing")
    assert "error" in [line["event"] for line in lines]
    assert list(tmp_path.iterdir()) == []


def test_a_setting_that_can_not_be_used_is_told_to_operator_and_reader(tmp_path: Path) -> None:
    (health,), (line,) = _run(tmp_path, FUNCTION_URL, CHAPTERVERSE_ALLOWED_ORIGINS="*")
    assert (health["statusCode"], json.loads(health["body"])["error"]["code"]) == (503, "misconfigured")
    assert (line["code"], line["type"]) == ("misconfigured", "ConfigurationError")
    assert "CHAPTERVERSE_ALLOWED_ORIGINS" in line["message"]
    assert "ORIGINS" not in health["body"]


def test_a_page_that_asks_can_read_that_the_service_is_not_set_up(tmp_path: Path) -> None:
    asking = {**FUNCTION_URL, "headers": {**FUNCTION_URL["headers"], "origin": "https://docs.example.com"}}
    (answer,), _ = _run(tmp_path, asking, CHAPTERVERSE_RATES="often")
    assert answer["statusCode"] == 503
    assert answer["headers"]["access-control-allow-origin"] == "https://docs.example.com"
    assert answer["headers"]["cache-control"] == "no-store"
    assert answer["headers"]["x-request-id"]


PING = """
import json, sys
from chapterverse_api.handler import handler
event = json.load(sys.stdin)
print(handler(event, None), handler.mangum.app.state.service().site)
"""


def test_a_scheduled_ping_opens_every_version_of_the_index(tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        settings = quill.publish(tmp_path, scope=Scope("quill", version), base=f"{quill.BASE}{version}/")
    run = subprocess.run(
        [sys.executable, "-c", PING],
        input=json.dumps(WARM_PING),
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"CHAPTERVERSE_STORE": settings.store},
    )
    # No line of the log stands beside it, and the last one that was opened is the newest.
    assert run.stdout == f"{{'status': 'ok'}} {quill.BASE}2.0/\n"
