"""Which sections are found before and after enrichment, with a language model's recorded replies.

    .venv/bin/python benchmarks/enriching.py DOCS QUESTIONS RECORDED [--built] [--base-url URL]

A server on loopback speaks OpenAI's wire and answers from the recording, so the whole way runs: client, schema, trial,
check, index, search. A page without a recording gets a valid reply with no sections. `--variant` leaves a part out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

METRICS = ("hit@1", "hit@5", "mrr", "answered", "refused")


def recorded(path: Path) -> dict[str, dict[str, Any]]:
    """Return the recorded pages by title."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return {row["title"]: row for row in rows}


def reply(asked: dict[str, Any], pages: dict[str, dict[str, Any]], variant: str) -> dict[str, Any]:
    """Return the recorded reply to a page, with the ids that it was asked by."""
    page = pages.get(asked["title"], {})
    by_heading = {one["heading"]: one for one in page.get("sections", ())}
    sections = [
        {
            "id": section["id"],
            "questions": [] if variant == "keywords" else by_heading[section["heading"]]["questions"],
            "keywords": [] if variant == "questions" else by_heading[section["heading"]]["keywords"],
        }
        for section in asked["sections"]
        if section["heading"] in by_heading
    ]
    return {"topic": page.get("topic", ""), "summary": page.get("summary", ""), "sections": sections}


def server(pages: dict[str, dict[str, Any]], variant: str) -> ThreadingHTTPServer:
    """Return a server with OpenAI's `POST /v1/chat/completions` that answers from a recording."""

    class Recorded(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = json.dumps(reply(json.loads(body["messages"][-1]["content"]), pages, variant))
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            data = json.dumps({"choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    return ThreadingHTTPServer(("127.0.0.1", 0), Recorded)


def run(*arguments: str, **environment: str) -> Any:
    """Return the JSON that a command prints; its report goes to standard error."""
    command = [str(Path(sys.executable).with_name("chapterverse")), *arguments, "--json"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


def of_pages(rows: list[dict[str, Any]], path: Path, base_url: str) -> dict[str, Any]:
    """Return the figures of those questions that an enriched page answers."""
    pages = [page["page"].removesuffix(".md").removesuffix("index") for page in recorded(path).values()]
    places = tuple(f"{base_url}{page}".rstrip("/") + end for page in pages for end in ("/", "#"))
    own = [row for row in rows if row["answerable"] and any(f"{url}/".startswith(places) for url in row["expected"])]
    best = [min((rank for rank in row["page_ranks"] if rank), default=99) for row in own]
    shares = {f"page.hit@{k}": round(sum(rank <= k for rank in best) / max(1, len(own)), 3) for k in (1, 3, 5)}
    return {"questions": len(own), **shares}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("--built", action="store_true", help="DOCS is a built site")
    parser.add_argument("--base-url", default="https://docs.example/")
    parser.add_argument("--variant", choices=("both", "questions", "keywords"), default="both")
    chosen = parser.parse_args()
    listening = server(recorded(chosen.recorded), chosen.variant)
    threading.Thread(target=listening.serve_forever, daemon=True).start()
    model = {
        "CHAPTERVERSE_ENRICHER": "openai:recorded",
        "CHAPTERVERSE_OPENAI_URL": f"http://127.0.0.1:{listening.server_address[1]}",
    }
    source = [] if chosen.built else ["--source"]
    with tempfile.TemporaryDirectory() as folder:
        rows = {}
        for name, environment in (("plain", {}), ("enriched", model)):
            store = ["--store", f"edge:{folder}/{name}", "--site", "docs"]
            report = run("index", str(chosen.docs), *source, "--base-url", chosen.base_url, *store, **environment)
            rows[name] = run("eval", str(chosen.questions), *store, "--run", f"{folder}/{name}.json")["rows"]
            print(name, json.dumps(report.get("enrichment")))
        compared = run("eval", str(chosen.questions), *store, "--compare", f"{folder}/plain.json")["comparison"]
    for change in compared["changes"]:
        if change["name"] in METRICS:
            interval = f"{change['difference']:+.3f} [{change['low']:+.3f}, {change['high']:+.3f}]"
            print(
                f"{change['name']:22} {change['before']:.3f} -> {change['now']:.3f}  {interval}  {change['questions']}"
            )
    for name, own in rows.items():
        print(name, "of the enriched pages:", of_pages(own, chosen.recorded, chosen.base_url))


if __name__ == "__main__":
    main()
