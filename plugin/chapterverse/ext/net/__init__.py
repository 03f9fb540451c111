"""JSON over HTTP with the standard library alone, for models and stores on the query path.

Constructing an SDK costs 0.3 s and more, which a cold Lambda would spend on its first question; `http.client` with one
TLS context costs 40 ms. Connections stay open between requests and are shared by threads. Messages name the host and no
other part of an address, because the rest may hold secrets.
"""

from __future__ import annotations

from chapterverse.ext.net.client import JsonClient, Reply, is_unbilled
from chapterverse.ext.net.messages import asked_pause, bearer
from chapterverse.ext.net.stream import Closing, Event, Stream

__all__ = ["Closing", "Event", "JsonClient", "Reply", "Stream", "asked_pause", "bearer", "is_unbilled"]
