"""A site with two pages, and lines of a log as the service writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ext.conversations.test_forget_command import run

PAGES = {
    "serve": ("Serve", "The command serves your pages.", "Choose a port", "The flag --port chooses the port."),
    "deploy": ("Deploy", "Copy the folder to a bucket.", "Invalidate a cache", "The old files stay for a day."),
}
PORT, CACHE = "https://docs.example/serve/#choose-a-port", "https://docs.example/deploy/#invalidate-a-cache"


def write_site(folder: Path) -> None:
    for name, (title, first, heading, second) in PAGES.items():
        (folder / name).mkdir(parents=True)
        anchor = heading.lower().replace(" ", "-")
        body = f"<h1 id={name}>{title}</h1><p>{first}</p><h2 id={anchor}>{heading}</h2><p>{second}</p>"
        page = f"<!doctype html><html lang=en><title>{title}</title><body><main>{body}</main></body></html>"
        (folder / name / "index.html").write_text(page)


def turn(
    number: int,
    question: str | None = None,
    status: str = "answered",
    sections: Iterable[str] | None = (PORT,),
    *,
    thread: str | None = None,
    day: int = 1,
    down: bool = False,
) -> list[str]:
    """Return the lines of a turn that matter to a report, and one that doesn't."""
    head = {"time": f"2026-10-{day:02}T10:00:00.000Z", "request_id": None, "turn_id": f"turn-{number}"}
    head["thread_id"] = f"thread-{number}" if thread is None else thread or None
    asked: dict[str, Any] = {"characters": 9} if question is None else {"characters": 9, "question": question}
    sent: dict[str, Any] = {"status": status, "cited": 1}
    events = [
        {"event": "query_received", **asked},
        {"event": "results_ranked", "passages": 3},
        {"event": "response_sent", **sent, **({} if sections is None else {"sections": [*sections]})},
        *([{"event": "feedback_received", "rating": "down"}] if down else []),
    ]
    return [json.dumps({**head, **event}) for event in events]


def write_log(path: Path, *turns: list[str], more: Iterable[bytes] = ()) -> str:
    path.write_bytes(b"\n".join([*(line.encode() for lines in turns for line in lines), *more]) + b"\n")
    return str(path)


def report(*arguments: str) -> dict[str, Any]:
    code, out, err = run("report", *arguments, "--json")
    assert (code, err) == (0, "")
    document: dict[str, Any] = json.loads(out)
    return document
