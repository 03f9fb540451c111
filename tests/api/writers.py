"""A model that writes from a queue of texts and errors, and records its requests."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass

from chapterverse_api.draft.draft import Span
from chapterverse_api.draft.requests import ChatMessage, GenerationRequest, ModelRequest, ResponseSchema


@dataclass(frozen=True)
class Asked:
    instructions: str
    messages: tuple[ChatMessage, ...]
    tokens: int
    seconds: float


class Scribe:
    """Plays one answer for each request, in turn."""

    name = "scribe"

    def __init__(self, *answers: str | Exception) -> None:
        self.queue = deque(answers)
        self.asked: list[Asked] = []

    def generate(self, request: GenerationRequest) -> Generator[Span, None, None]:
        raise NotImplementedError

    def write(self, request: ModelRequest) -> str:
        self.asked.append(
            Asked(request.instructions, request.messages, request.max_tokens, request.deadline.seconds_left)
        )
        answer = self.queue.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def write_data(self, request: ModelRequest, schema: ResponseSchema) -> str:
        return self.write(request)
