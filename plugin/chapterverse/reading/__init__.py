"""The reading model: one small encoder that reads a question and a passage together. It is optional.

Each pair is read by itself: a passage's score depends on nothing but the question, the passage and the model's files.
Nothing is padded, and one thread computes, so a process always gets the same numbers. `encoding` makes the input.

As many questions are read at once as there are processors, and only those that can be read in time. Without an estimate
every question of a crowd waits until its time is over, begins to read then, and gives up. So each passage that is read
tells how long the next ones take, and a question that they leave no time for is not read at all.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from chapterverse.errors import ConfigurationError
from chapterverse.reading.encoding import EncodedPair, PairEncoder, WordPiece

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]

#: The import package of the distribution `chapterverse-reading`.
PACKAGE = "chapterverse_reading"
#: A file with the SHA-256 of each of the model's files and its name, as `sha256sum` writes it.
_CHECKSUMS = "SHA256SUMS"
#: Vectors of passages that are kept, of 3 kB with their tokens.
_MAX_CACHED_VECTORS = 4096
#: Seconds of a passage before the first one was read (eight take 340 ms, says `figures.md`).
FIRST_ESTIMATE = 0.04
#: How much of the estimate the latest passage is: the last question's eight are two thirds of it.
_LATEST_SHARE = 1 / 8
#: Seconds for which a question that was not read is remembered.
LATE_SECONDS = 60.0


class ReadingQueue:
    """The questions that wait to be read, and those that are. Safe to use from several threads.

    Args:
        processors: how many are read at once.
        clock: seconds.
    """

    def __init__(self, processors: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._processors, self._clock = processors, clock
        self._free = BoundedSemaphore(processors)
        self._lock = Lock()
        #: Of all questions that wait or are read.
        self._passages = 0
        self._seconds_each = FIRST_ESTIMATE
        self._late_until = float("-inf")

    @property
    def is_late(self) -> bool:
        """Whether a question was not read in the last minute, because others took its time."""
        return self._clock() < self._late_until

    def count_late(self) -> None:
        """Remember that a question was not read."""
        self._late_until = self._clock() + LATE_SECONDS

    @contextmanager
    def turn(self, passages: int, seconds_left: Callable[[], float]) -> Iterator[bool]:
        """Wait until a question may be read, and yield whether it may.

        Args:
            passages: how many it has.
            seconds_left: the seconds until they must be read.
        """
        ahead = self._add(passages)
        # Alone it always tries, or one slow moment would end all reading.
        needed = (ahead / self._processors + passages) * self._seconds_each if ahead else 0.0
        try:
            if seconds_left() < needed or not self._free.acquire(timeout=seconds_left()):
                yield False
                return
            try:
                yield not ahead or seconds_left() >= passages * self._seconds_each
            finally:
                self._free.release()
        finally:
            self._add(-passages)

    def _add(self, passages: int) -> int:
        """Count passages, and return how many there were."""
        with self._lock:
            before = self._passages
            self._passages += passages
        return before

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Run the block that reads one passage, and learn how long the next ones take."""
        started = self._clock()
        yield
        with self._lock:
            self._seconds_each += (self._clock() - started - self._seconds_each) * _LATEST_SHARE


class Reading(NamedTuple):
    """What the model makes of a pair, as logits.

    Attributes:
        relevance: whether the passage answers the question.
        support: whether the passage supports the claim.
        parts: by its place, whether a part answers, the mean over its tokens. Parts without words, or beyond the
            model's limit, are missing.
    """

    relevance: float
    support: float
    parts: Mapping[int, float]


class ReadingModel:
    """The model's two encoders. Threads may share it: as many questions are read at once as there are processors.

    Args:
        name: which model it is, for `/v1/status`.
        folder: the files of the distribution `chapterverse-reading`, or of one's own training.

    Attributes:
        queue: the questions that wait.

    Raises:
        ConfigurationError: a file is missing or damaged, or there is no onnxruntime.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        # Lazy: the runtime takes a quarter of a second to import.
        try:
            import numpy as np
            import onnxruntime
        except ImportError as error:
            raise ConfigurationError(
                f"The reading model needs onnxruntime ({error}): pip install 'chapterverse[reading]'."
            ) from error
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        # Warnings of the runtime are not the owner's matter.
        options.log_severity_level = 3
        session = functools.partial(onnxruntime.InferenceSession, sess_options=options)
        try:
            self._encoder = PairEncoder(WordPiece((folder / "vocabulary.txt").read_text("utf-8").split("\n")))
            self._words = np.load(folder / "words.npy", mmap_mode="r")
            self._scales = np.load(folder / "scales.npy")
            self._vectors = session(folder / "vectors.onnx", providers=["CPUExecutionProvider"])
            self._reader = session(folder / "reader.onnx", providers=["CPUExecutionProvider"])
        # The runtime's own errors share no class but this one.
        except Exception as error:
            raise ConfigurationError(f"The reading model in {folder} can't be loaded: {error}") from error
        self._numpy = np
        self._vector = functools.lru_cache(_MAX_CACHED_VECTORS)(self._compute_vector)
        self.queue = ReadingQueue(os.cpu_count() or 1)

    def read_question(
        self,
        question: str,
        passages: Sequence[tuple[Sequence[str], Sequence[str]]],
        seconds_left: Callable[[], float],
    ) -> list[tuple[Reading, float]] | None:
        """Return what the model makes of each passage, and the cosine of its vector and the question's.

        Args:
            passages: the heading path and the parts of each.
            seconds_left: the seconds that are left; if they are too few, nothing is read, and None returned.
        """
        with self.queue.turn(len(passages), seconds_left) as is_in_time:
            if not is_in_time:
                return None
            vector, tokens = self._vector(self._encoder.text((), question)), self._encoder.question(question)
            readings = []
            for path, parts in passages:
                if not seconds_left():
                    return None
                with self.queue.timing():
                    reading = self._read(self._encoder.pair(tokens, self._encoder.passage(path, parts)))
                    cosine = float(vector @ self._vector(self._encoder.text(path, "\n".join(parts))))
                readings.append((reading, cosine))
        return readings

    def _compute_vector(self, text: tuple[int, ...]) -> Array:
        vector: Array = self._run(self._vectors, ["vector"], text, len(text))[0][0]
        return vector

    def _read(self, pair: EncodedPair) -> Reading:
        relevance, support, values = self._run(
            self._reader, ["relevance", "support", "parts"], pair.ids, pair.question_tokens
        )
        sums: dict[int, list[float]] = {}
        for place, value in zip(pair.parts, values[0].tolist(), strict=True):
            sums.setdefault(place, []).append(value)
        parts = {place: sum(numbers) / len(numbers) for place, numbers in sums.items() if place >= 0}
        return Reading(float(relevance[0]), float(support[0]), parts)

    def _run(self, session: Any, outputs: list[str], ids: Sequence[int], question_tokens: int) -> Any:
        np = self._numpy
        numbers = np.array(ids)
        words = self._words[numbers].astype(np.float32) * self._scales[numbers]
        types = (np.arange(len(ids)) >= question_tokens).astype(np.int64)
        return session.run(outputs, {"words": words[None], "types": types[None]})


def open_reading_model(setting: str) -> ReadingModel | None:
    """Return the reading model; None if there is none to use.

    Args:
        setting: `auto` for the installed one, if there is any; `none`; or a folder.

    Raises:
        ConfigurationError: a file is missing, or is not what the model's own list says, or onnxruntime is missing. With
            `auto` the last means that there is no model.
    """
    if setting == "none":
        return None
    folder = _find_installed() if setting == "auto" else Path(setting).expanduser()
    if folder is None or (setting == "auto" and find_spec("onnxruntime") is None):
        return None
    checksum = _check(folder)
    return ReadingModel(f"{PACKAGE}/{checksum[:12]}", folder)


def _find_installed() -> Path | None:
    spec = find_spec(PACKAGE)
    return Path(spec.origin).parent if spec and spec.origin else None


def _check(folder: Path) -> str:
    """Return the checksum of the files' list, once all are what it says: half a file, or one of another version, is no
    model.
    """
    try:
        listed = (folder / _CHECKSUMS).read_bytes()
        for checksum, name in (line.split(maxsplit=1) for line in listed.decode().splitlines()):
            with (folder / Path(name).name).open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != checksum:
                    raise ConfigurationError(
                        f"{name} of the reading model in {folder} is damaged, or of another version: install the model "
                        "again, or set CHAPTERVERSE_READING_MODEL=none."
                    )
        return hashlib.sha256(listed).hexdigest()
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"There is no whole reading model in {folder} ({error}): install chapterverse-reading, or set "
            "CHAPTERVERSE_READING_MODEL=none."
        ) from None
