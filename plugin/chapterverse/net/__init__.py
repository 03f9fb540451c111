"""JSON over HTTP with the standard library alone, for models and stores on the query path.

An SDK costs 0.3 s and more where it is constructed, which a cold Lambda would pay for its first question;
`http.client` with one TLS context costs 40 ms. Connections stay open between requests and are shared by threads.
Messages name the host and nothing else of an address: the rest may hold what nobody should read in a log.
"""

from __future__ import annotations

from chapterverse.net.client import JsonClient, Reply, is_unbilled
from chapterverse.net.events import Event
from chapterverse.net.messages import asked_pause, bearer
from chapterverse.net.stream import Closing, Stream

__all__ = ["Closing", "Event", "JsonClient", "Reply", "Stream", "asked_pause", "bearer", "is_unbilled"]
