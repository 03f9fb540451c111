"""Loads a model on a server of one's own in the background, so that no reader has to wait until it is loaded.

Ollama and others load a model at the first request, which takes up to minutes, and stop if its client leaves. So one
request that waits for as long as it takes stays open, and is no reader's: it has no deadline, costs nothing and says
nothing about the model. Readers wait a little for it, and get quotes meanwhile. A model that answers at once is never
asked so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Lock, Thread, Timer
from typing import TYPE_CHECKING

from chapterverse.errors import ChapterVerseError, ModelLoading, ProviderError
from chapterverse_api.deadline import Deadline

# The thread opens the service; this module is loaded when the process starts.
if TYPE_CHECKING:
    from chapterverse_api.answer.resources import Resources
    from chapterverse_api.service import Service

#: Seconds after the start until models are loaded.
_START_PAUSE_SECONDS = 5.0
#: Seconds that a model may take to be loaded.
_LOADING_SECONDS = 900.0
#: Seconds between two requests to a server that says that it is still loading.
_PAUSE_SECONDS = 2.0
#: Seconds without an answer after which the model may have been unloaded: Ollama does so after five minutes.
_IDLE_SECONDS = 240.0
#: Seconds that readers wait for a model that is being loaded, that a question waits before it is taken for so, and that
#: it may wait in all then.
_READER_SECONDS, _SLOW_SECONDS, _COLD_SECONDS = 4.0, 2.0, 10.0
#: Seconds after which it is seen that a reader left.
_STEP_SECONDS = 0.1


def load_models(open_service: Callable[[], Service]) -> Callable[[], None]:
    """Load the service's models in the background; return what ends that."""
    stopping = Event()
    loaders: list[ModelLoader] = []

    def load() -> None:
        # What is wrong is told at the first question.
        with suppress(ChapterVerseError):
            loaders.extend(open_loaders(open_service().resources))
        # A question that comes first loads the model itself.
        if not stopping.wait(_START_PAUSE_SECONDS):
            for loader in loaders:
                loader.start_if_cold()

    def stop() -> None:
        stopping.set()
        for loader in loaders:
            loader.stop()

    Thread(target=load, name="chapterverse-models", daemon=True).start()
    return stop


def open_loaders(resources: Resources) -> list[ModelLoader]:
    """Return what loads the models that write, where they are on servers of one's own."""
    economy = resources.meter.economy if resources.meter else None
    writers = filter(None, (resources.models.generator, economy))
    loaders = (writer.open_loader() for writer in writers if hasattr(writer, "open_loader"))
    return [loader for loader in loaders if loader]


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
        self._started = 0.0
        self._last_answer: float | None = None

    @property
    def is_loading(self) -> bool:
        return not self._ready.is_set()

    @property
    def _is_cold(self) -> bool:
        """Whether the model may not be loaded."""
        return self._last_answer is None or time.monotonic() - self._last_answer > _IDLE_SECONDS

    def start(self) -> None:
        """Load the model, unless that is on its way."""
        with self._lock:
            if self._is_stopped or self._deadline:
                return
            self._ready.clear()
            self._started = time.monotonic()
            self._deadline = Deadline(_LOADING_SECONDS)
            Thread(target=self._load, args=(self._deadline,), name="chapterverse-model", daemon=True).start()

    def start_if_cold(self) -> None:
        """Load the model unless it has answered lately."""
        if self._is_cold:
            self.start()

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
        self._ready.set()

    @contextmanager
    def asking(self, deadline: Deadline) -> Iterator[Deadline]:
        """Run a block that asks the model, and give its deadline. If it is slow, the model is loaded meanwhile.

        Args:
            deadline: of the reader's question.

        Raises:
            ModelLoading: it is not loaded yet.
        """
        self._wait(deadline)
        timer = Timer(_SLOW_SECONDS, self.start)
        timer.daemon = True
        is_cold = self._is_cold
        if is_cold:
            timer.start()
        try:
            yield deadline.step(_COLD_SECONDS) if is_cold else deadline
        except ProviderError as error:
            if error.retryable:
                # It may have been unloaded.
                self.start_if_cold()
            if self.is_loading and not isinstance(error, ModelLoading):
                raise _loading_error() from None
            raise
        finally:
            timer.cancel()

    def _wait(self, deadline: Deadline) -> None:
        """Wait a little until the model is loaded."""
        # Nobody waits for longer than the first who met the loading.
        end = min(self._started + _READER_SECONDS, time.monotonic() + deadline.seconds_left)
        while not self._ready.wait(min(_STEP_SECONDS, max(0.0, end - time.monotonic()))):
            if time.monotonic() >= end or deadline.is_aborted:
                raise _loading_error()

    def _load(self, deadline: Deadline) -> None:
        try:
            while self._is_refused(deadline):
                time.sleep(_PAUSE_SECONDS)
        finally:
            with self._lock:
                self._deadline = None
            self._ready.set()

    def _is_refused(self, deadline: Deadline) -> bool:
        """Ask for the model; return whether the server wants to be asked again."""
        try:
            self._request(deadline)
        except ModelLoading:
            return deadline.seconds_left > _PAUSE_SECONDS
        except ProviderError:
            # The next question says what is wrong.
            return False
        self.note_answer()
        return False


def _loading_error() -> ModelLoading:
    return ModelLoading("The model is still being loaded: ask again in a minute.", retryable=True)
