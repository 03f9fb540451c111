"""Loads a model on a server of one's own in the background, so that no reader has to wait until it is loaded.

Ollama and others load a model at the first request, which takes up to minutes, and stop if its client leaves. So one
request that waits for as long as it takes stays open, and is no reader's: it has no deadline, costs nothing and says
nothing about the model. Readers wait a little for it, and get quotes meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event, Lock, Thread

from chapterverse.errors import ModelLoading, ProviderError
from chapterverse_api.deadline import Deadline

#: Seconds that a model may take to be loaded.
_LOADING_SECONDS = 900.0
#: Seconds between two requests to a server that says that it is still loading.
_PAUSE_SECONDS = 2.0
#: Seconds without an answer after which the model may have been unloaded: Ollama does so after five minutes.
_IDLE_SECONDS = 240.0
#: Seconds that a reader waits for the model.
_READER_SECONDS = 4.0
#: Seconds after which it is seen that a reader left.
_STEP_SECONDS = 0.1


class ModelLoader:
    """Loads one model. Safe to share between threads.

    Args:
        request: sends a request that makes the server load the model, and returns when it is answered. Raises
            `ProviderError` if it is not, `ModelLoading` if the server says that it has not loaded the model yet.
    """

    def __init__(self, request: Callable[[Deadline], None]) -> None:
        self._request = request
        self._lock = Lock()
        self._ready = Event()
        self._ready.set()
        self._deadline: Deadline | None = None
        self._is_stopped = False
        self._last_answer: float | None = None
        self._started = 0.0

    def start(self) -> None:
        """Load the model, unless that is on its way."""
        with self._lock:
            if self._is_stopped or not self._ready.is_set():
                return
            self._ready.clear()
            self._started = time.monotonic()
            self._deadline = Deadline(_LOADING_SECONDS)
            Thread(target=self._load, args=(self._deadline,), name="chapterverse-model", daemon=True).start()

    def stop(self) -> None:
        """End the loading for good."""
        with self._lock:
            self._is_stopped = True
            deadline = self._deadline
        if deadline:
            deadline.abort()

    def note_answer(self) -> None:
        """Note that the model answers, so that it is loaded."""
        self._last_answer = time.monotonic()

    def wait(self, deadline: Deadline) -> None:
        """Wait a little until the model is loaded.

        Args:
            deadline: of the reader's question.

        Raises:
            ModelLoading: it is not loaded yet.
        """
        if self._last_answer is None or time.monotonic() - self._last_answer > _IDLE_SECONDS:
            self.start()
        # Nobody waits for longer than the first who met the loading.
        end = min(self._started + _READER_SECONDS, time.monotonic() + deadline.seconds_left)
        while not self._ready.wait(min(_STEP_SECONDS, max(0.0, end - time.monotonic()))):
            if time.monotonic() < end and not deadline.is_aborted:
                continue
            raise ModelLoading("The model is still being loaded: ask again in a minute.", retryable=True)

    def _load(self, deadline: Deadline) -> None:
        try:
            while True:
                try:
                    self._request(deadline)
                except ModelLoading:
                    if deadline.seconds_left < _PAUSE_SECONDS:
                        return
                    time.sleep(_PAUSE_SECONDS)
                    continue
                # The next question says what is wrong.
                except ProviderError:
                    return
                self.note_answer()
                return
        finally:
            self._ready.set()
