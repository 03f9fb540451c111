"""The errors that users see.

    ChapterVerseError
    ├── InputError              the user's input can't be used; nothing was changed
    │   └── UnreadablePage      bytes that are no page: binary, wrong encoding, too large
    │       ├── UnsafePath      a file that is never opened: outside of its project, or no regular file
    │       └── PageTooLarge    it holds more than one page may
    ├── ConfigurationError      a setting is unknown, missing or contradicts another
    │   └── PublishingDenied    this build may not write that index, whatever it is asked
    ├── IndexFault              the index can't be read or written as asked
    │   ├── IndexMissing        nothing was published for this site and version
    │   ├── IndexUnavailable    its server does not answer, or failed
    │   ├── IndexMismatch       written by another embedder, or in a newer format
    │   ├── IndexLocked         another process is publishing, or won the race
    │   └── IndexCorrupt        files of the index are damaged
    ├── LimiterFault, RecordsFault   of the service: shared counters, or kept conversations, can't be used
    ├── FetchFailed             an address of another server was not fetched, or may not be
    └── ProviderError           a model service rejected a call, failed or took too long
        ├── TextRejected        it will never take the request as it is
        ├── KeyRefused          it doesn't know the key, which may have been replaced
        ├── TextTooLong         one text is over the model's own limit
        ├── AnswerWithheld      the model doesn't answer this question, but may answer others
        ├── ModelLoading        its server is still loading the model
        └── NotAsked            it was not called, which says nothing about it
            └── BudgetSpent     the day's budget does not allow the call

Each message is one sentence that a user can act on; callers print it as it is.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_observer = contextvars.ContextVar[Callable[[], object] | None]("retry_observer", default=None)


class ChapterVerseError(Exception):
    """The base class of all errors that users see."""


class InputError(ChapterVerseError):
    """The user's input can't be used; nothing was changed.

    Attributes:
        field: the field of a request that has to change, if there is one.
    """

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class UnreadablePage(InputError):
    """Bytes that are no page: binary, in a wrong encoding, or too large."""


class UnsafePath(UnreadablePage):
    """A file that is never opened: its real path is outside of its project, or it is no regular file."""


class PageTooLarge(UnreadablePage):
    """A page holds more than one page may (see `readers.html.parser`).

    The readers of its text don't know its name: theirs is the rest of the sentence, which `of_page` completes.
    """

    def of_page(self, name: str) -> UnreadablePage:
        """Return the error of the page of that name."""
        return UnreadablePage(f"{name} {self}")


class ConfigurationError(ChapterVerseError):
    """A setting is unknown, missing or contradicts another."""


class PublishingDenied(ConfigurationError):
    """This build may not write that index, whatever it is asked."""


class IndexFault(ChapterVerseError):
    """The index can't be read or written as asked."""


class IndexMissing(IndexFault):
    """Nothing was published for this site and version yet."""


class IndexUnavailable(IndexFault):
    """The index's server does not answer, or failed. The index itself may be intact."""


class IndexMismatch(IndexFault):
    """The index was written by another embedder, or in a newer format."""


class IndexLocked(IndexFault):
    """Another process is publishing to the same index, or published first.

    Attributes:
        seconds: until its lease ends unless it is renewed; 0 if unknown.
        killed: whether the publisher is known to be gone; its last writes may still arrive until then.
    """

    def __init__(self, message: str, *, seconds: float = 0.0, killed: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.killed = killed


class IndexCorrupt(IndexFault):
    """Files of the index are missing or damaged."""


class FetchFailed(ChapterVerseError):
    """An address of another server could not be fetched, or may not be."""


class ProviderError(ChapterVerseError):
    """A model service rejected a call, failed or took too long.

    Attributes:
        retryable: whether the same request may succeed later.
        unbilled: whether it is known that the call cost nothing, because it was not sent or was rejected.
    """

    unbilled = False

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class TextRejected(ProviderError):
    """The model will never take the request as it is."""


class KeyRefused(ProviderError):
    """The service doesn't know the key: it was mistyped, revoked or replaced."""


class TextTooLong(ProviderError):
    """One text is over the model's own limit.

    Attributes:
        position: index of the text in the list that was sent.
    """

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.position = position


class AnswerWithheld(ProviderError):
    """The model, or a content filter, gives no answer to this question; other questions may work."""


class ModelLoading(ProviderError):
    """The server is still loading the model, which may take minutes. It has done no work."""

    unbilled = True


class NotAsked(ProviderError):
    """A request was not sent, which says nothing about the service."""

    unbilled = True


class BudgetSpent(NotAsked):
    """The day's budget does not allow a request."""


@contextmanager
def observing_retries(observer: Callable[[], object]) -> Iterator[None]:
    """Call `observer` before each request that the block sends again after an error."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def note_retry() -> None:
    """Tell the observer of this context, if there is one, that a request failed and is sent again."""
    if observer := _observer.get():
        observer()
