"""Loads the reading model and scores with it.

Each pair is read by itself: a passage's score depends on nothing but the question, the passage and the model's files.
Nothing is padded, and one thread computes, so a process always gets the same numbers.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from chapterverse.errors import ConfigurationError
from chapterverse.reading.encoding import EncodedPair, PairEncoder, WordPiece
from chapterverse.reading.queue import ReadingQueue

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float32]


#: Vectors of passages that are kept, of 3 kB with their tokens.
_MAX_CACHED_VECTORS = 4096


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
