"""A request with two passages, drafts read to their end, and damaged streams."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from chapterverse.calibration import WeightedQuestion
from chapterverse.errors import ProviderError
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import AnswerGenerator, Draft, Span
from chapterverse_api.draft.requests import GenerationRequest, Passage, ToolCall
from chapterverse_api.ext.models.draft_reader import DraftReader
from fakes.loopback import Fault, LoopbackServer, leaving

URL = "https://docs.example.com/guide/keys/"


def passage(number: str, *path: str, text: str) -> Passage:
    return Passage(number, path, text, f"{text}\n\nMore of the section.", frozenset(), 1.0, 1.0, URL, f"chunk-{number}")


PASSAGES = (
    passage("1", "Guide", "Keys", text="To rotate a key, make a new one and remove the old one."),
    passage("2", "Guide", "Limits", text="A key has 32 characters; `argv[1]` is its name."),
)
REQUEST = GenerationRequest("How do I rotate a key?", WeightedQuestion(), PASSAGES, "en")


def make_request(seconds: float = 10.0, **changes: Any) -> GenerationRequest:
    return replace(REQUEST, deadline=Deadline(seconds), **changes)


def drafted(made: AnswerGenerator, asked: GenerationRequest | None = None) -> Draft:
    """Return the draft of a generator; see `played`."""
    return played(made.generate(asked or make_request()))


def played(steps: Iterable[Span | ToolCall], passages: Sequence[Passage] = PASSAGES) -> Draft:
    """Return a draft in sentences as a reader may see them, each with what is claimed for it.

    Raises:
        AssertionError: the model refused.
    """
    reader, sentences = DraftReader(passages), list[Span]()
    for span in steps:
        assert isinstance(span, Span)
        sentences += [Span(one.span.text, one.span.citations) for one in reader.read(span)]
    sentences += [Span(one.span.text, one.span.citations) for one in reader.end()]
    assert not reader.refused
    return (*sentences[:-1], replace(sentences[-1], cut=reader.is_cut))


def slices(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def cited(draft: Draft) -> list[tuple[str, tuple[str, ...]]]:
    return [(span.text, span.citations) for span in draft]


def outcome(made: AnswerGenerator, seconds: float = 10.0) -> Draft | ProviderError:
    """Return a draft or the failure of one; anything else is raised."""
    try:
        return drafted(made, make_request(seconds))
    except ProviderError as error:
        return error


def check_leaving(made: AnswerGenerator, server: LoopbackServer) -> None:
    """Check that a generator that waits for a silent server fails soon after its reader is gone."""
    asked = make_request(20)
    with leaving(server, asked.deadline.abort), pytest.raises(ProviderError):
        drafted(made, asked)


def damaged(seed: int, *spare: bytes) -> Fault:
    """A stream in which something went wrong, a different thing for each seed; `spare` are frames to slip in."""
    return Fault(change=lambda frames: iter(_damage(list(frames), random.Random(seed), spare)))


def _damage(frames: list[bytes], chance: random.Random, spare: tuple[bytes, ...]) -> Iterator[bytes]:
    kinds: list[Callable[[], object]] = [
        lambda: frames.pop(chance.randrange(len(frames))),
        lambda: frames.insert(chance.randrange(len(frames)), chance.choice(frames)),
        lambda: frames.insert(chance.randrange(len(frames)), chance.choice(spare)),
        lambda: frames.__setitem__(slice(chance.randrange(len(frames)), None), []),
        lambda: chance.shuffle(frames),
        lambda: _turn(frames, chance),
    ]
    for _ in range(chance.randint(1, 3)):
        if frames:
            chance.choice(kinds)()
    yield from frames


def _turn(frames: list[bytes], chance: random.Random) -> None:
    """Turn, cut or add bytes inside one frame."""
    at = chance.randrange(len(frames))
    data = bytearray(frames[at])
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data) + 1)
        data[start : start + chance.randint(0, 3)] = chance.choice([b"", b"\x00", b'"', b"}", b"\xff", b"null", b"[1"])
    frames[at] = bytes(data)
