"""Values that are made when somebody asks for them."""

from __future__ import annotations

from _thread import RLock  # `threading`, which has more, takes as long to import as six modules of ours
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Later(Generic[T]):
    """A value that is made at most once, by whichever thread asks first. One that cannot be made is tried again."""

    __slots__ = ("_lock", "_make", "_value")

    def __init__(self, make: Callable[[], T]) -> None:
        self._make: Callable[[], T] | None = make
        self._lock = RLock()

    @property
    def value(self) -> T:
        """The value. Raises what making it does."""
        with self._lock:
            if self._make is not None:
                self._value = self._make()
                self._make = None
            return self._value


def already(value: T) -> Later[T]:
    """One that is there."""
    found = Later(lambda: value)
    _ = found.value
    return found
