"""Validates the vectors of a reply. A doubtful reply is rejected as a whole, so nothing doubtful is stored."""

from __future__ import annotations

from typing import Any

from chapterverse.embedding.protocols import Vector
from chapterverse.errors import ProviderError

#: Stores keep 32-bit floats and compare by angle, so the sum of the squares has to fit one, and not be nothing in it.
_LARGEST = 1e15
_SMALLEST = 1e-15

_BYTES = range(-128, 128)


def checked(found: Any, count: int, size: int, provider: str, *, int8: bool = False) -> list[Vector]:
    """Return the vectors of a reply.

    Args:
        found: what stands where the vectors should: a list of lists of numbers.
        count: how many texts were sent.
        size: dimensions that each vector must have.
        provider: who answered, for the message.
        int8: whether whole numbers from -128 to 127 were asked for.

    Raises:
        ProviderError: one of them is no such vector: another size, no finite numbers, nothing but zeros.
    """
    if not isinstance(found, list) or len(found) != count:
        raise ProviderError(f"{provider} did not answer with {count} vectors.")
    if not all(isinstance(v, list) and len(v) == size and _usable(v, int8) for v in found):
        raise ProviderError(f"{provider} answered with something that is no vector of {size} numbers.")
    return [tuple(map(float, v)) for v in found]


def _usable(numbers: list[Any], int8: bool) -> bool:
    # By type, as True is an int too; NaN is in no range.
    if int8:
        return all(type(n) is int and n in _BYTES for n in numbers) and any(numbers)
    if not all(type(n) in (float, int) and -_LARGEST < n < _LARGEST for n in numbers):
        return False
    return any(abs(n) > _SMALLEST for n in numbers)
