"""Vectors computed from a text's words, the answers of fake embedding models."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter


def tokens(text: str) -> int:
    """Count like the fakes: a word or a sign is a token."""
    return len(re.findall(r"\w+|[^\w\s]", text))


def words(count: int) -> str:
    return " ".join(f"w{i}" for i in range(count))


def first_tokens(text: str, count: int) -> str:
    """Return the part of a text that a model with a limit of `count` tokens reads."""
    return " ".join(re.findall(r"\w+|[^\w\s]", text)[:count])


def vector(text: str, size: int) -> list[float]:
    """Return a unit vector in which each word of `text` moves eight coordinates, so texts that share words are near."""
    numbers = [0.0] * size
    for word, count in Counter(re.findall(r"\w+", text.lower()) or [text]).items():
        digest = hashlib.sha256(word.encode()).digest()
        for i in range(0, 32, 4):
            numbers[int.from_bytes(digest[i : i + 3]) % size] += count if digest[i + 3] & 1 else -count
    length = math.sqrt(sum(n * n for n in numbers)) or 1.0
    return [n / length for n in numbers]


def typed_vector(text: str, size: int, numbers: str) -> list[float] | list[int]:
    """Return the vector as `float` or as `int8`, Cohere's names for two of its embedding types."""
    found = vector(text, size)
    return found if numbers == "float" else [round(n * 127) for n in found]
