"""Embeds many texts in requests that a model accepts, and finds the text that it rejects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from chapterverse.embedding.protocols import Vector
from chapterverse.errors import TextTooLong
from chapterverse.providers.errors import TextRejected

#: Texts that one request may hold, as Cohere documents for itself and on Bedrock; others take more.
MOST_TEXTS = 96

#: Bytes of UTF-8 that one request may hold. OpenAI allows 300,000 tokens in one, and a token is a byte or more.
MOST_BYTES = 300_000

Send = Callable[[Sequence[str]], list[Vector]]


def embed_in_batches(texts: Sequence[str], send: Send, send_short: Send, model: str) -> list[Vector]:
    """Return one vector a text, in order.

    A refusal doesn't say which text it is about, and servers word it in many ways, so a refused slice is halved until
    one text is left. A server that only takes shorter lists than ours is served by the same halving.

    Args:
        send: one request.
        send_short: the same for a text whose length can't be the reason of a refusal, as it may be cut. What comes
            back is thrown away: it only tells a text that is too long from one that is wrong in another way.
        model: its name, for the message.

    Raises:
        TextTooLong: the first text that is over the model's limit.
        ProviderError: as `send` says.
    """
    vectors: list[Vector] = []
    for start, stop in _batches(texts):
        vectors += _embed(texts, start, stop, send, send_short, model)
    return vectors


def _embed(texts: Sequence[str], start: int, stop: int, send: Send, send_short: Send, model: str) -> list[Vector]:
    try:
        return send(texts[start:stop])
    except TextRejected:
        if stop - start == 1:
            send_short(texts[start:stop])
            raise TextTooLong(f"Text {start} is too long for {model}.", position=start) from None
    middle = (start + stop) // 2
    first = _embed(texts, start, middle, send, send_short, model)
    return first + _embed(texts, middle, stop, send, send_short, model)


def _batches(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the borders of slices within both bounds; a text that is over the second alone stands alone."""
    start = size = 0
    for i, text in enumerate(texts):
        length = len(text.encode(errors="replace"))
        if i > start and (i - start == MOST_TEXTS or size + length > MOST_BYTES):
            yield start, i
            start, size = i, 0
        size += length
    if texts:
        yield start, len(texts)
