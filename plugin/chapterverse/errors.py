"""Every error that this project raises on purpose.

    ChapterVerseError
    ├── InputError              what the user handed over can't be used; nothing was changed
    │   ├── UnsafePath          a file whose real path leaves its folder
    │   └── UnreadablePage      bytes that are no page: binary, wrong encoding, too large
    ├── ConfigurationError      a setting that is unknown, missing or contradicts another
    ├── IndexFault              the index can't be read or written as asked
    │   ├── IndexMissing        nothing was published for this site and version
    │   ├── IndexUnavailable    its server does not answer, or failed
    │   ├── IndexMismatch       written by another embedder, or in a newer format
    │   ├── IndexLocked         another process is publishing, or won the race
    │   └── IndexCorrupt        files of the index are damaged
    └── ProviderError           a model service refused, failed or took too long
        ├── KeyRefused          it doesn't know the key: another may have taken its place
        ├── TextTooLong         one text is over the model's own limit
        └── AnswerWithheld      the model has no answer to this question; to another it may

The message of each is one sentence that a user can act on; callers print it as it is.
"""

from __future__ import annotations


class ChapterVerseError(Exception):
    """The root: whoever catches this catches all that we raise on purpose."""


class InputError(ChapterVerseError):
    """What the user handed over can't be used; nothing was changed.

    Attributes:
        field: the field of a request that has to change, if there is one.
    """

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


class UnsafePath(InputError):
    """A file whose real path leaves the folder it was listed in."""


class UnreadablePage(InputError):
    """Bytes that are no page: binary, in a wrong encoding, or too large."""


class ConfigurationError(ChapterVerseError):
    """A setting that is unknown, missing or contradicts another."""


class IndexFault(ChapterVerseError):
    """The index can't be read or written as asked."""


class IndexMissing(IndexFault):
    """Nothing was published for this site and version yet."""


class IndexUnavailable(IndexFault):
    """The server that holds the index does not answer, or failed: what it holds is not known to be harmed."""


class IndexMismatch(IndexFault):
    """The index was written by another embedder, or in a newer format."""


class IndexLocked(IndexFault):
    """Another process is publishing to the same index, or published first.

    Attributes:
        seconds: until its lease ends, if it does not renew it; 0 where nobody knows.
        killed: whether it is known to be gone: what it sent may still arrive until then.
    """

    def __init__(self, message: str, *, seconds: float = 0.0, killed: bool = False) -> None:
        super().__init__(message)
        self.seconds = seconds
        self.killed = killed


class IndexCorrupt(IndexFault):
    """Files of the index are missing or damaged."""


class ProviderError(ChapterVerseError):
    """A model service refused, failed or took too long.

    Attributes:
        retryable: whether the same request may succeed later.
        unbilled: whether it is known that nothing was done which costs money: nothing was sent, or it was refused.
    """

    unbilled = False

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.retryable = retryable


class KeyRefused(ProviderError):
    """The service doesn't know the key: it was mistyped or revoked, or another has taken its place."""


class TextTooLong(ProviderError):
    """One text is over the model's own limit.

    Attributes:
        position: index of that text in the list that was sent.
    """

    def __init__(self, message: str, *, position: int) -> None:
        super().__init__(message)
        self.position = position


class AnswerWithheld(ProviderError):
    """The model has no answer to this question, or a filter keeps it; it says nothing about other questions."""
