"""An object with some of its attributes replaced, for a test that hands it to our code in the real one's place."""

from __future__ import annotations

from typing import Any, TypeVar, cast

_T = TypeVar("_T")


class _Instead:
    def __init__(self, real: object, others: dict[str, Any]) -> None:
        self._real = real
        self.__dict__.update(others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def instead(real: _T, **others: Any) -> _T:
    """Return an object that answers as `real` does but for these attributes."""
    return cast(_T, _Instead(real, others))
