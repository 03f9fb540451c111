"""`report://gaps`: the finished work list, and only with the token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from api import quill
from api.mcp.calls import headers, legacy, modern
from api.scripted import Client
from chapterverse.settings import Settings
from chapterverse_api.app import create_app

TOKEN, TEXT = "a-long-token-of-mine", "# What readers ask and these docs lack\n"
READ, GAPS = "resources/read", "report://gaps"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = quill.publish(tmp_path_factory.mktemp("index")).override(mcp=True, report_token=TOKEN)
    (settings.local_folder / "gaps.md").write_text(TEXT)
    return settings


def ask(settings: Settings, message: dict[str, Any], authorization: str | None) -> tuple[int, dict[str, Any]]:
    sent = headers(message) if "_meta" in message["params"] else {}
    sent |= {} if authorization is None else {"authorization": authorization}
    response = Client(create_app(quill.service(settings))).post("/mcp", message, headers=sent)
    return response.status_code, response.json()


@pytest.mark.parametrize("era", [legacy, modern])
def test_who_sends_the_token_reads_the_finished_file(settings: Settings, era: Any) -> None:
    status, reply = ask(settings, era(READ, uri=GAPS), f"Bearer {TOKEN}")
    # The name of a scheme has no case (RFC 9110, 11.1).
    assert (status, reply) == ask(settings, era(READ, uri=GAPS), f"bearer {TOKEN}")
    assert status == 200
    assert reply["result"]["contents"] == [{"uri": GAPS, "mimeType": "text/markdown", "text": TEXT}]
    assert reply["result"].get("cacheScope") in (None, "private")


@pytest.mark.parametrize("era", [legacy, modern])
@pytest.mark.parametrize("sent", [None, "", "Bearer", "Bearer ", TOKEN, f"Bearer {TOKEN[:-1]}", "Basic x"])
def test_nobody_else_learns_that_there_is_one(settings: Settings, era: Any, sent: str | None) -> None:
    missing = ask(settings.override(report_token=""), era(READ, uri=GAPS), f"Bearer {TOKEN}")
    assert missing[0] == 404
    assert ask(settings, era(READ, uri=GAPS), sent) == missing


def test_without_a_file_there_is_none(settings: Settings, tmp_path: Path) -> None:
    other = settings.override(store=f"edge:{tmp_path}")
    assert ask(other, modern(READ, uri=GAPS), f"Bearer {TOKEN}")[0] == 404


def test_an_empty_token_opens_nothing(settings: Settings) -> None:
    assert ask(settings.override(report_token=""), modern(READ, uri=GAPS), "Bearer ")[0] == 404
