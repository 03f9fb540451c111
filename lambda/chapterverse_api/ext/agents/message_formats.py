"""Reads chat messages in the formats of OpenAI, Gemini and Ollama. Pure.

    OpenAI   {"messages": [{"role": …, "content": text or parts}]}; a tool's message has a "tool_call_id"
    Ollama   the same with text alone; a tool's message has a "tool_name"
    Gemini   {"systemInstruction": {"parts": …}, "contents": [{"role": "user" or "model", "parts": …}]}; a tool's
             result is a part with a "functionResponse"

Only text is read: pictures, sound, files, thoughts and calls of tools are left out. Fields as in OpenAI's API reference
("Create chat completion"), Gemini's ("Content") and Ollama's ("Generate a chat message"), November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from chapterverse.errors import InputError

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]

_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
}
_TEXT_PARTS = (None, "text", "input_text", "output_text")


@dataclass(frozen=True, slots=True)
class ExternalMessage:
    """A message as another program states it. Its role is not proven.

    Attributes:
        tool: name or id of the call that a tool's message answers; else empty.
    """

    role: Role
    content: str
    tool: str = ""


def read_messages(body: Mapping[str, Any]) -> tuple[ExternalMessage, ...]:
    """Return the messages of a request in any of the formats, oldest first, without those that hold no text.

    Raises:
        InputError: there is no list of messages, or a message has no known role or no content that can be read.
    """
    field = "contents" if "contents" in body and "messages" not in body else "messages"
    messages = body.get(field)
    if not isinstance(messages, list) or not messages:
        raise InputError(f"{field} must be a list of at least one message.", field=field)
    system = body.get("systemInstruction", body.get("system_instruction")) if field == "contents" else None
    first = [{"role": "system", **system}] if isinstance(system, Mapping) else []
    read = (message for one in [*first, *messages] for message in _read(one, field))
    return tuple(message for message in read if message.content.strip())


def _read(message: object, field: str) -> Iterator[ExternalMessage]:
    role = _ROLES.get(str(message.get("role") or "user")) if isinstance(message, Mapping) else None
    if role is None or not isinstance(message, Mapping):
        raise InputError(
            f"{field} must hold objects with a role: system, developer, user, assistant, model, tool or function.",
            field=field,
        )
    tool = next((name for key in ("tool_call_id", "tool_name", "name") if (name := message.get(key))), "")
    content = message.get("parts", message.get("content"))
    if isinstance(content, str):
        content = [content]
    elif not isinstance(content, list | None):
        raise InputError(f"{field} must hold messages whose content is text or a list of parts.", field=field)
    yield ExternalMessage(role, "\n\n".join(_texts(content or ())), str(tool) if role == "tool" else "")
    yield from _results(content or ())


def _texts(parts: Iterable[object]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, str):
            yield part
        elif isinstance(part, Mapping) and part.get("type") in _TEXT_PARTS and not part.get("thought"):
            text = part.get("text")
            if isinstance(text, str):
                yield text


def _results(parts: Iterable[object]) -> Iterator[ExternalMessage]:
    """Yield what tools answered, as Gemini states it among the parts of a message."""
    for part in parts:
        result = part.get("functionResponse", part.get("function_response")) if isinstance(part, Mapping) else None
        if isinstance(result, Mapping):
            answer = result.get("response")
            text = answer.get("result") if isinstance(answer, Mapping) else None
            content = text if isinstance(text, str) else json.dumps(answer, ensure_ascii=False)
            yield ExternalMessage("tool", content, str(result.get("name") or ""))
