"""Drafts of the Cohere generator, and replies of the fake."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from api.draft.drafts import cited as cited
from api.draft.drafts import passage
from chapterverse.calibration import WeightedQuestion
from chapterverse.settings import Settings
from chapterverse_api.deadline import Deadline
from chapterverse_api.draft.draft import AnswerGenerator, Draft, Span, Writer
from chapterverse_api.draft.requests import ChatMessage, GenerationRequest, ModelRequest
from chapterverse_api.ext.cohere.generator import CohereGenerator
from fakes.cohere_chat import ChatReply, Events
from fakes.cohere_server import KEY, CohereServer

PASSAGES = (
    passage("1", "Guide", "Keys", text="To rotate a key, make a new one and remove the old one."),
    passage("2", "Guide", "Limits", text="A key has 32 characters."),
)


#: Made once for all tests, so its end is far away.
REQUEST = GenerationRequest("How do I rotate a key?", WeightedQuestion(), PASSAGES, "en", deadline=Deadline(24 * 3600))


TEXT = "Make a new key and remove the old one. It has 32 characters."

#: Our sentences for replies that are no answer.
BROKE_OFF = "Cohere broke off in the middle of its answer: try again later."
NOTHING = "The model answered with nothing: ask in other words."
WITHHELD = "withheld the answer by its content filter: ask in other words"
NO_REPLY = "Cohere answered with something that is no reply."


def generator(server: CohereServer, model: str = "", **settings: Any) -> CohereGenerator:
    values = {"cohere_url": server.url, "cohere_api_key": KEY, **settings}
    return CohereGenerator.from_settings(Settings(**values), model)


def drafted(made: AnswerGenerator, request: GenerationRequest | None = None) -> Draft:
    """Return the draft; what the same ids are claimed for is one span."""
    spans: list[Span] = []
    for span in made.generate(request or replace(REQUEST, deadline=Deadline(10))):
        assert isinstance(span, Span)
        assert span.text or span.cut
        if spans and (spans[-1].citations == span.citations or not span.text):
            spans[-1] = replace(spans[-1], text=spans[-1].text + span.text, cut=span.cut)
        else:
            spans.append(span)
    return tuple(spans)


def written(made: Writer, deadline: Deadline | None = None) -> str:
    return made.write(ModelRequest("Rephrase.", (ChatMessage("user", "that?"),), 60, deadline or Deadline(5)))


def with_citations(*citations: Any, inline: bool = False) -> ChatReply:
    """A reply with the text and these citations, sent as they are."""

    def change(events: Events) -> Events:
        sent = [{"type": "citation-start", "index": 0, "delta": {"message": {"citations": c}}} for c in citations]
        at = -2 if inline else -1
        return [*events[:at], *sent, *events[at:]]

    return ChatReply(TEXT, change=change)
