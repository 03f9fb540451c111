"""A server with OpenAI's chat interface that answers as real ones do, and not as the reference says.

The name of the model names the oddity. Each was reported of a server or a gateway; the comments name which.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from fakes.loopback import Answer, LoopbackServer, Request
from fakes.openai_server import chunk, event

#: What a reader gets: the model's answer; quotes; the answer with a note that its limit cut it; its first sentence,
#: since the rest broke off or was withheld.
Outcome = Literal["answered", "quoted", "cut", "early", "withheld"]

PIECES = (
    "The cache lives in `.quill/cache` ",
    "unless `QUILL_CACHE_DIR` names another folder [1]. ",
    "`quill cache clean` removes every ",
    "entry [1].",
)
TEXT = "".join(PIECES)
#: In a question that a provider withholds.
FORBIDDEN = "kill"

Frames = Iterable[bytes]
_END = (chunk({}, "stop"), event({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}))
_DONE = b"data: [DONE]\n\n"
_TEXTS = tuple(chunk({"content": piece}) for piece in PIECES)
_ROLE = chunk({"role": "assistant", "content": ""})
_THOUGHTS = "Okay, the reader asks for the cache. Source 1 names the folder. "


@dataclass(frozen=True, slots=True)
class Oddity:
    """How a server answers, and what comes of it.

    Attributes:
        answer: from the body of a request.
        withholds: whether only a forbidden question is answered so, others as usual.
    """

    answer: Callable[[dict[str, Any]], Answer]
    outcome: Outcome = "answered"
    withholds: bool = False


def _stream(*frames: bytes, done: bool = True, label: str = "text/event-stream") -> Callable[[Any], Answer]:
    sent = (*frames, _DONE) if done else frames
    return lambda _: Answer(200, iter(sent), {"Content-Type": label})


def _among(*odd: bytes) -> Callable[[Any], Answer]:
    """Answer well, with odd events before, among and behind the text."""
    return _stream(*odd, _ROLE, *_TEXTS[:2], *odd, *_TEXTS[2:], _END[0], *odd, _END[1])


def _ending(reason: Any) -> Callable[[Any], Answer]:
    return _stream(_ROLE, *_TEXTS[:3], chunk({}, reason))


def _thinking(start: str, end: str) -> Callable[[Any], Answer]:
    pieces = (start[: len(start) // 2], start[len(start) // 2 :], _THOUGHTS, end[:3], end[3:])
    return _stream(*(chunk({"content": piece}) for piece in pieces if piece), *_TEXTS, *_END)


def _rejected(status: int, body: Any) -> Callable[[Any], Answer]:
    return lambda _: Answer(status, body)


def _error(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **more}}


def _unless(is_bad: Callable[[dict[str, Any]], bool], bad: Callable[[Any], Answer]) -> Callable[[Any], Answer]:
    return lambda body: (bad if is_bad(body) else _usual)(body)


def _usual(body: dict[str, Any]) -> Answer:
    if body.get("stream"):
        return _stream(_ROLE, *_TEXTS, *_END)(body)
    choice = {"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}
    return Answer(200, {"id": "c", "object": "chat.completion", "choices": [choice]})


def _prompt(body: dict[str, Any]) -> str:
    return "".join(message["content"] for message in body["messages"])


def _cut_pieces(frames: Frames, size: int) -> Callable[[Any], Answer]:
    """Answer in pieces of so many bytes, which end anywhere."""
    data = b"".join(frames)
    return lambda _: Answer(200, (data[i : i + size] for i in range(0, len(data), size)))


def _packed(answer: Callable[[Any], Answer], coding: str, *, cut: int = 0) -> Callable[[Any], Answer]:
    """Answer compressed, though nobody asked for it; a stream is compressed event by event.

    Args:
        cut: how many bytes are missing at the end.
    """

    def pack(pieces: Frames) -> Iterator[bytes]:
        packer = zlib.compressobj(wbits=31 if coding == "gzip" else 15)
        for piece in pieces:
            yield packer.compress(piece) + packer.flush(zlib.Z_SYNC_FLUSH)
        yield packer.flush()[: -cut or None]

    def reply(body: Any) -> Answer:
        plain = answer(body)
        is_whole = isinstance(plain.body, dict)
        packed = pack([json.dumps(plain.body).encode()] if is_whole else plain.body)
        headers = {"Content-Type": "application/json", **plain.headers, "Content-Encoding": coding}
        return Answer(plain.status, b"".join(packed) if is_whole else packed, headers)

    return reply


def _large(start: bytes, end: bytes, *before: bytes) -> Callable[[Any], Answer]:
    """Answer with 50 MB of text between a start and an end."""

    def frames() -> Iterator[bytes]:
        yield b"".join((*before, start))
        for _ in range(800):
            yield b"x" * 65536
        yield end

    return lambda _: Answer(200, frames())


def _llama_cpp(*deltas: dict[str, Any]) -> Callable[[Any], Answer]:
    """Answer in the form of llama.cpp, as reports of its builds b9000 to b10400 show it."""
    timings = {"cache_n": 0, "prompt_n": 20, "prompt_ms": 148.2, "predicted_n": 81, "predicted_ms": 2025.5}
    more = {"created": 1778040349, "id": "chatcmpl-a", "model": "m.gguf", "system_fingerprint": "b9020-a4701c98f"}
    progress = event({"choices": [], **more, "prompt_progress": {"total": 20, "cache": 0, "processed": 20}})
    opening = {"role": "assistant", "content": None}
    texts = [
        event({"choices": [{"finish_reason": None, "index": 0, "delta": delta}], **more, "timings": timings})
        for delta in (opening, *deltas)
    ]
    last = event({"choices": [{"finish_reason": "stop", "index": 0, "delta": {}}], **more})
    usage = {"completion_tokens": 81, "prompt_tokens": 20, "total_tokens": 101, "prompt_tokens_details": {}}
    return _stream(progress, *texts, last, event({"choices": [], **more, "usage": usage, "timings": timings}))


def _vllm(reason: str | None, *deltas: dict[str, Any]) -> Callable[[Any], Answer]:
    """Answer in the form of vLLM, as reports of its releases 0.10 to 0.24 show it, with counts in each chunk."""
    usage = {"prompt_tokens": 20, "total_tokens": 101, "completion_tokens": 81, "prompt_tokens_details": None}
    more = {"id": "chatcmpl-b", "object": "chat.completion.chunk", "created": 1750067911, "model": "m", "usage": usage}
    ends = [None] * len(deltas) + [reason]
    frames = [
        event({**more, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": end}]})
        for delta, end in zip((*deltas, {"content": "", "tool_calls": []}), ends, strict=True)
    ]
    first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    opening = event({**more, "choices": [first], "prompt_token_ids": None})
    return _stream(opening, *frames, event({**more, "choices": []}))


def _in_words(pieces: Iterable[str] = PIECES) -> list[dict[str, Any]]:
    return [{"content": word} for piece in pieces for word in piece.replace(" ", " \0").split("\0") if word]


_AZURE = _error(
    "The response was filtered due to the prompt triggering the content management policy.",
    param="prompt",
    code="content_filter",
    innererror={"code": "ResponsibleAIPolicyViolation"},
)
_WHOLE = json.loads(json.dumps(_usual({"stream": False}).body))

ODDITIES: dict[str, Oddity] = {
    "usual": Oddity(_usual),
    # Reasons: in every chunk; none; those of Google, Mistral, DeepSeek, SGLang, Zhipu, TGI, Anthropic; a number.
    "reason-in-each": Oddity(_stream(_ROLE, *(chunk({"content": piece}, "stop") for piece in PIECES), _END[1])),
    "reason-null": Oddity(_stream(*(chunk({"content": piece}, "null") for piece in PIECES), *_END)),
    "reason-none": Oddity(_stream(_ROLE, *_TEXTS)),
    "reason-STOP": Oddity(_stream(*_TEXTS, chunk({}, "STOP"))),
    "reason-end_turn": Oddity(_stream(*_TEXTS, chunk({}, "end_turn"), done=False)),
    "reason-eos": Oddity(_stream(*_TEXTS, chunk({}, "eos"), done=False)),
    "reason-with-last": Oddity(_stream(*_TEXTS[:3], chunk({"content": PIECES[3]}, "stop"), done=False)),
    "reason-length": Oddity(_ending("length"), "cut"),
    "reason-MAX_TOKENS": Oddity(_ending("MAX_TOKENS"), "cut"),
    "reason-model_length": Oddity(_ending("model_length"), "cut"),
    "reason-sensitive": Oddity(_ending("sensitive"), "withheld"),
    "reason-SAFETY": Oddity(_ending("SAFETY"), "withheld"),
    "reason-content_filter": Oddity(_ending("content_filter"), "withheld"),
    "reason-insufficient_system_resource": Oddity(_ending("insufficient_system_resource"), "early"),
    "reason-abort": Oddity(_ending("abort"), "early"),
    "reason-network_error": Oddity(_ending("network_error"), "early"),
    "reason-number": Oddity(_ending(5), "early"),
    "no-end": Oddity(_stream(_ROLE, *_TEXTS[:3], done=False), "early"),
    "reason-in-each-cut": Oddity(_stream(*(chunk({"content": p}, "stop") for p in PIECES[:3]), done=False), "early"),
    # What holds no text: Kilo Code, pydantic-ai, Portkey, Groq, LM Studio, OpenRouter, Azure.
    "event-null": Oddity(_among(b"data: null\n\n")),
    "event-blank": Oddity(_among(b"data:\n\n", b"data: \n\n")),
    "event-ping": Oddity(_among(b'event: ping\ndata: {"type": "ping"}\n\n', b"event: ping\ndata: now\n\n")),
    "event-comment": Oddity(_among(b": OPENROUTER PROCESSING\n\n")),
    "event-words": Oddity(_among(b"data: keep-alive\n\n", b'data: "ping"\n\n', b"data: []\n\n", b"data: 0\n\n")),
    "choices-null": Oddity(_among(event({"choices": None}), event({"choices": None, "usage": None}))),
    "choices-none": Oddity(_among(event({"id": "c1", "object": "chat.completion.chunk"}))),
    "choices-filter": Oddity(_among(event({"choices": [], "prompt_filter_results": [{"prompt_index": 0}]}))),
    "delta-null": Oddity(_stream(*_TEXTS, event({"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}))),
    # Labels and bytes.
    "label-json": Oddity(_stream(*_TEXTS, *_END, label="application/json")),
    "label-plain": Oddity(_stream(*_TEXTS, *_END, label="text/plain; charset=utf-8")),
    "label-wrong": Oddity(lambda _: Answer(200, _WHOLE, {"Content-Type": "text/event-stream"})),
    "whole": Oddity(lambda _: Answer(200, _WHOLE)),
    "bytes": Oddity(_cut_pieces((*_TEXTS, *_END), 1)),
    "bytes-three": Oddity(_cut_pieces((*_TEXTS, *_END, _DONE[:-2]), 3)),
    "bytes-returns": Oddity(_cut_pieces((f.replace(b"\n", b"\r\n") for f in (*_TEXTS, *_END)), 5)),
    # Compressed unasked: proxies such as nginx and Cloudflare; one that leaves the header on what it unpacked: LiteLLM.
    "packed": Oddity(_packed(_stream(_ROLE, *_TEXTS, *_END), "gzip")),
    "packed-deflate": Oddity(_packed(_stream(_ROLE, *_TEXTS, *_END), "deflate")),
    "packed-whole": Oddity(_packed(lambda _: Answer(200, _WHOLE), "gzip")),
    "packed-cut": Oddity(_packed(_stream(_ROLE, *_TEXTS[:3], done=False), "gzip", cut=4), "early"),
    "packed-withheld": Oddity(_packed(lambda _: Answer(400, _AZURE), "gzip"), "quoted", withholds=True),
    "packed-large": Oddity(
        _packed(_large(b'data: {"choices": [{"index": 0, "delta": {"content": "', b'"}}]}\n\n'), "gzip"), "quoted"
    ),
    "packed-label-only": Oddity(
        lambda _: Answer(200, iter((*_TEXTS, *_END)), {"Content-Type": "text/event-stream", "Content-Encoding": "gzip"})
    ),
    "packed-brotli": Oddity(lambda _: Answer(200, b"\x8b\x00\x80", {"Content-Encoding": "br"}), "quoted"),
    "login": Oddity(lambda _: Answer(200, b"<!doctype html>Log in", {"Content-Type": "text/html"}), "quoted"),
    "large": Oddity(
        _large(b'data: {"choices": [{"index": 0, "delta": {"content": "', b'"}}]}\n\n', *_TEXTS[:2]), "quoted"
    ),
    "large-document": Oddity(_large(b'{"choices": [{"index": 0, "message": {"content": "', b'"}}]}'), "quoted"),
    # Whole servers: llama.cpp, and vLLM, which at times gives no reason, with and without thoughts.
    "llama.cpp": Oddity(_llama_cpp(*_in_words())),
    "llama.cpp-thinks": Oddity(_llama_cpp({"reasoning_content": _THOUGHTS}, *_in_words())),
    "vllm": Oddity(_vllm("stop", *_in_words())),
    "vllm-thinks": Oddity(_vllm("stop", {"reasoning": _THOUGHTS}, {"reasoning_content": "Hm."}, *_in_words())),
    "vllm-no-reason": Oddity(_vllm(None, *_in_words())),
    "vllm-cut": Oddity(_vllm("length", *_in_words(PIECES[:3])), "cut"),
    "ids": Oddity(_stream(*(event({**json.loads(f[6:]), "id": f"c{n}"}) for n, f in enumerate(_TEXTS)), *_END)),
    # Questions that are withheld: Azure, a gateway in front of it, OpenAI, others.
    "withheld-400": Oddity(_rejected(400, _AZURE), "quoted", withholds=True),
    "withheld-stream": Oddity(_stream(event(_AZURE), done=False), "quoted", withholds=True),
    "withheld-midway": Oddity(_stream(*_TEXTS[:3], event(_AZURE), done=False), "withheld", withholds=True),
    "withheld-refusal": Oddity(
        _stream(chunk({"content": None, "refusal": "I can't"}), chunk({"refusal": " help."}), *_END),
        "quoted",
        withholds=True,
    ),
    "withheld-empty": Oddity(_stream(_ROLE, *_END), "quoted", withholds=True),
    "withheld-reason": Oddity(_stream(_ROLE, chunk({}, "content_filter")), "quoted", withholds=True),
    "withheld-403": Oddity(
        _rejected(403, {"error": {"code": 403, "message": 'Your input was flagged for "violence".', "metadata": {}}}),
        "quoted",
        withholds=True,
    ),
    "withheld-minimax": Oddity(
        _rejected(200, {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}, "choices": None}),
        "quoted",
        withholds=True,
    ),
    # What a server doesn't take, and can do without: OpenAI, vLLM, llama.cpp, SGLang.
    "no-stream": Oddity(
        _unless(
            lambda body: bool(body.get("stream")),
            _rejected(
                400,
                _error("Your organization must be verified to stream this model.", param="stream", code="unsupported"),
            ),
        )
    ),
    "no-system": Oddity(
        _unless(
            lambda body: body["messages"][0]["role"] == "system",
            _rejected(400, {"object": "error", "message": "System role not supported", "code": 400}),
        )
    ),
    "no-counts": Oddity(
        _unless(lambda body: "stream_options" in body, _rejected(400, _error("Unknown parameter: 'stream_options'.")))
    ),
    "no-tools": Oddity(
        _unless(
            lambda body: "tools" in body,
            _rejected(400, _error('"auto" tool choice requires --enable-auto-tool-choice to be set', code="400")),
        )
    ),
    "no-tools-500": Oddity(
        _unless(
            lambda body: "tools" in body,
            _rejected(500, {"error": {"code": 500, "message": "tools param requires --jinja flag"}}),
        )
    ),
    "no-temperature": Oddity(
        _unless(
            lambda body: "temperature" in body,
            _rejected(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "temperature"], "msg": "Extra"}]}),
        )
    ),
    "too-long": Oddity(
        _unless(
            lambda body: len(_prompt(body)) > 3400,
            _rejected(400, _error("This model's maximum context length is 1024 tokens.", type="BadRequestError")),
        )
    ),
    "too-long-always": Oddity(
        _rejected(
            400,
            {"error": {"code": 400, "message": "the request exceeds the available context size", "n_ctx": 512}},
        ),
        "quoted",
    ),
    "spent": Oddity(_rejected(400, _error("Budget has been exceeded!", type="budget_exceeded", code="400")), "quoted"),
    # Reasoning: Qwen, Magistral, Gemma behind gateways, Seed, Kimi, gpt-oss.
    "think": Oddity(_thinking("<think>", "</think>")),
    "think-square": Oddity(_thinking("[THINK]", "[/THINK]")),
    "think-thought": Oddity(_thinking("<thought>", "</thought>")),
    "think-seed": Oddity(_thinking("<seed:think>", "</seed:think>")),
    "think-kimi": Oddity(_thinking("◁think▷", "◁/think▷")),
    "think-harmony": Oddity(
        _thinking("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>")
    ),
    "think-plain-harmony": Oddity(_thinking("analysis", "assistantfinal")),
    "think-field": Oddity(
        _stream(chunk({"reasoning_content": _THOUGHTS, "content": None}), chunk({"reasoning": "Hm."}), *_TEXTS, *_END)
    ),
}


class OddModel(LoopbackServer):
    """The server; set CHAPTERVERSE_OPENAI_URL to its `url`."""

    def answer(self, request: Request) -> Answer:
        oddity = ODDITIES[request.body["model"]]
        question = request.body["messages"][-1]["content"].rpartition("My question:")[2]
        if oddity.withholds and FORBIDDEN not in question:
            return _usual(request.body)
        return oddity.answer(request.body)
