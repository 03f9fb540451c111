from __future__ import annotations

import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chapterverse.errors import InputError
from chapterverse_api.ext.agents.completions import ExternalMessage, read_messages


def test_openai_with_parts() -> None:
    body = {
        "messages": [
            {"role": "developer", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "How?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
                    {"type": "text", "text": "Here?"},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function"}]},
            {"role": "tool", "tool_call_id": "1", "content": "21 °C"},
        ]
    }
    assert read_messages(body) == (
        ExternalMessage("system", "Be brief."),
        ExternalMessage("user", "How?\n\nHere?"),
        ExternalMessage("tool", "21 °C"),
    )


def test_gemini_with_thoughts_and_a_tool() -> None:
    body = {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"parts": [{"text": "How?"}, {"inlineData": {"mimeType": "image/png", "data": "AA"}}]},
            {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"functionCall": {"name": "weather"}}]},
            {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"celsius": 21}}}]},
            {"role": "model", "parts": [{"text": "So."}]},
        ],
    }
    assert read_messages(body) == (
        ExternalMessage("system", "Be brief."),
        ExternalMessage("user", "How?"),
        ExternalMessage("tool", '{"celsius": 21}'),
        ExternalMessage("assistant", "So."),
    )


def test_ollama_with_a_picture_and_thoughts() -> None:
    body = {
        "messages": [
            {"role": "user", "content": "How?", "images": ["AA"]},
            {"role": "assistant", "content": "So.", "thinking": "Hm."},
            {"role": "tool", "content": "21 °C", "tool_name": "weather"},
        ]
    }
    assert read_messages(body) == (
        ExternalMessage("user", "How?"),
        ExternalMessage("assistant", "So."),
        ExternalMessage("tool", "21 °C"),
    )


TEXTS = st.text(string.printable, min_size=1).filter(str.strip)
MESSAGES = st.lists(st.builds(ExternalMessage, st.sampled_from(("user", "assistant", "tool")), TEXTS), min_size=1)


@given(st.lists(st.builds(ExternalMessage, st.just("system"), TEXTS), max_size=1), MESSAGES)
def test_every_message_with_text_is_read(system: list[ExternalMessage], messages: list[ExternalMessage]) -> None:
    every = [*system, *messages]
    assert read_messages({"messages": [message._asdict() for message in every]}) == tuple(every)


@pytest.mark.parametrize(
    ("body", "field", "said"),
    [
        ({}, "messages", "messages must be a list of at least one message."),
        ({"messages": []}, "messages", "messages must be a list of at least one message."),
        ({"contents": "How?"}, "contents", "contents must be a list of at least one message."),
        ({"messages": ["How?"]}, "messages", "messages must hold objects with a role"),
        ({"messages": [{"role": "owner", "content": "a"}]}, "messages", "messages must hold objects with a role"),
        ({"messages": [{"role": ["user"], "content": "a"}]}, "messages", "messages must hold objects with a role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages", "whose content is text or a list of parts"),
        ({"contents": [{"parts": {"text": "a"}}]}, "contents", "whose content is text or a list of parts"),
    ],
)
def test_what_is_no_conversation(body: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        read_messages(body)
    assert error.value.field == field
    assert "owner" not in str(error.value)


@pytest.mark.parametrize("part", [None, 5, [], {}, {"text": 5}, {"type": "text"}, {"functionResponse": "a"}])
def test_a_part_without_text_is_left_out(part: object) -> None:
    assert read_messages({"contents": [{"role": "user", "parts": [part]}]}) == ()
