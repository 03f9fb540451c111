"""Play a language model by hand: prompts are written to files, and replies that were put beside them are replayed.

    python benchmarks/looking_again.py QUESTIONS.jsonl PLAY --store edge:INDEX

A row of the questions needs `id` and `question`. A prompt without a reply is written to PLAY/NAME.prompt.json, with its
messages and tools. Whoever plays the model, and sees nothing else, writes PLAY/NAME.reply.json beside it: the text, or
a list of calls, `[["search_docs", {"query": "…"}]]`. Run it again until no prompt is new: a round takes one run more.
Then PLAY/answers.jsonl holds the answers, and the counts below them are of questions whose every prompt has a reply.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from threading import Thread
from typing import Any

from chapterverse.settings import Settings
from chapterverse_api.commands import ServiceSession
from chapterverse_api.contract import ChatQuery, ChatResponse, ToolUse
from chapterverse_api.draft.requests import estimate_tokens

# The number in the marks around sources is new for each request.
_NONCE = re.compile(r"(?<=cv-source-)[0-9a-f]{16}|(?<=cv-sources-)[0-9a-f]{16}")


@dataclass(slots=True)
class Play:
    """The prompts and replies of a play.

    Attributes:
        asked: the tokens of each prompt of the current question.
        is_open: whether one of them has no reply.
    """

    folder: Path
    asked: list[float] = field(default_factory=list)
    is_open: bool = False

    def reply(self, body: dict[str, Any]) -> Any:
        """Return the reply to a request; None if nobody wrote one yet."""
        prompt = json.loads(_NONCE.sub("N", json.dumps({k: body.get(k) for k in ("messages", "tools")})))
        text = json.dumps(prompt, ensure_ascii=False, indent=1)
        name = self.folder / hashlib.sha256(text.encode()).hexdigest()[:16]
        name.with_suffix(".prompt.json").write_text(text, encoding="utf-8")
        self.asked.append(estimate_tokens(json.dumps(prompt, ensure_ascii=False)))
        path = name.with_suffix(".reply.json")
        self.is_open = self.is_open or not path.exists()
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


class Handler(BaseHTTPRequestHandler):
    """Answers `POST /v1/chat/completions`."""

    def __init__(self, play: Play, *arguments: Any) -> None:
        self._play = play
        super().__init__(*arguments)

    def do_POST(self) -> None:
        reply = self._play.reply(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        message = {"role": "assistant", "content": reply}
        if isinstance(reply, list):
            calls = ({"name": name, "arguments": json.dumps(arguments)} for name, arguments in reply)
            listed = [{"id": str(n), "type": "function", "function": call} for n, call in enumerate(calls)]
            message = {"role": "assistant", "content": None, "tool_calls": listed}
        document = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        data = json.dumps({"error": {"message": "no reply yet"}} if reply is None else document).encode()
        # Nobody's failure: the breaker must not open.
        self.send_response(400 if reply is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None:
        """Log nothing: the files have every prompt."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("play", type=Path)
    parser.add_argument("--store", required=True)
    options = parser.parse_args(arguments)
    options.play.mkdir(parents=True, exist_ok=True)
    play = Play(options.play)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, play))
    Thread(target=server.serve_forever, daemon=True).start()
    settings = Settings(
        store=options.store, generator="openai:played", openai_url=f"http://127.0.0.1:{server.server_port}"
    )
    rows = [json.loads(line) for line in options.questions.read_text(encoding="utf-8").splitlines() if line.strip()]
    found, statuses = list[dict[str, Any]](), Counter[str]()
    for row in rows:
        play.asked, play.is_open = [], False
        # Anew for each question, since a breaker that opened for one must not skip the next.
        *events, answer = ServiceSession.open(settings).chat(ChatQuery(query=row["question"]))
        assert isinstance(answer, ChatResponse)
        if play.is_open:
            continue
        queries = [event.query for event in events if isinstance(event, ToolUse) and event.ok is None]
        statuses[answer.status] += 1
        found.append({
            "id": row["id"], "question": row["question"], "status": answer.status, "answer": answer.response,
            "cited": answer.sources_cited, "queries": queries, "requests": len(play.asked), "tokens": sum(play.asked),
        })  # fmt: skip
    server.shutdown()
    lines = "".join(f"{json.dumps(one, ensure_ascii=False)}\n" for one in found)
    (options.play / "answers.jsonl").write_text(lines, encoding="utf-8")
    print(f"{len(found)} of {len(rows)} questions are played to the end: {dict(statuses)}")
    if asked := [one for one in found if one["requests"]]:
        looked = sum(one["requests"] > 1 for one in asked)
        print(f"{looked} looked again; tokens of a question's prompts: median {median(o['tokens'] for o in asked):.0f}")


if __name__ == "__main__":
    main()
