"""What is said of constants: their range, their mean, what is not a number, and a histogram.

Of a large constant a sample is looked at, so that files that lie on disk are not read whole; the sample is said.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from tract_core.data import Constant
from tract_core.frozen import frozen
from tract_core.texts import printable

Array = np.ndarray[Any, Any]

SAMPLE: Final = 1 << 16
"""Elements that are looked at, at most: runs of `RUN` of them, evenly spaced."""
RUN: Final = 1 << 10

BINS: Final = 32
"""Bars of a histogram, of equal width."""

SHOWN: Final = 8
"""Elements that are shown as they are."""


@frozen
class Summary:
    """What is known of a constant.

    ``kind``: the element type; ``shape``: its sizes, outermost first; ``bytes``: what its elements take. ``seen``: of
    so many elements the rest is said. ``least``, ``most``, ``mean``, ``deviation``: of those that are finite, ``None``
    where none is. ``nans``, ``infinities``, ``zeros``: how many there are. ``bars``: how many lie in each of `BINS`
    equal parts of the range, empty where there is none. ``first``: the first elements.
    """

    kind: str
    shape: tuple[int, ...]
    bytes: int
    seen: int = 0
    least: float | None = None
    most: float | None = None
    mean: float | None = None
    deviation: float | None = None
    nans: int = 0
    infinities: int = 0
    zeros: int = 0
    bars: tuple[int, ...] = ()
    first: tuple[str, ...] = ()


class ConstantTable:
    """The constants of all stages, each once, by number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # ids are only good while their objects are there
        self.summaries: list[Summary] = []

    def number(self, value: Any) -> int:
        """The number of a value of a constant, which is summed up the first time."""
        found = self._numbers.get(id(value))
        if found is None:
            found = self._numbers[id(value)] = len(self._kept)
            self._kept.append(value)
            self.summaries.append(summary_of(value))
        return found


def summary_of(value: Any) -> Summary:
    """What is said of a value. Of symbolic ones and texts that is type, shape and the first elements."""
    array: Array | None = getattr(value, "array", None)
    if array is None:
        return Summary(printable(type(value).__name__), (), 0, first=(_text(value),))
    kind = str(value.datum_type) if isinstance(value, Constant) else "sizes"
    plain = Summary(printable(kind), array.shape, array.size * array.itemsize, first=_first(array))
    numbers = _numbers(array)
    return plain if numbers is None else _measured(plain, numbers)


def _first(array: Array) -> tuple[str, ...]:
    return tuple(_text(one) for one in _at(array, np.arange(min(array.size, SHOWN))).tolist())


def _at(array: Array, places: Array) -> Array:
    """The elements at some places of the row-major order, without a copy of the others."""
    return array[np.unravel_index(places, array.shape)] if array.ndim and array.size else array.reshape(-1)


def _text(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return printable(text[:60])


def _numbers(array: Array) -> Array | None:
    """The elements, or a sample of them, as float64; ``None`` where they are no real numbers."""
    if array.dtype.kind in "OSUcMm" or array.dtype.names is not None:
        return None
    try:
        return _sample(array).astype(np.float64)
    except (TypeError, ValueError):  # a type of elements that NumPy does not know by itself
        return None


def _sample(array: Array) -> Array:
    if array.size <= SAMPLE:
        return array.reshape(-1)
    starts = np.linspace(0, array.size - RUN, SAMPLE // RUN).astype(np.int64)
    places = (starts[:, None] + np.arange(RUN)).reshape(-1)
    return _at(array, places)


def _measured(plain: Summary, numbers: Array) -> Summary:
    from dataclasses import replace

    finite = numbers[np.isfinite(numbers)]
    counts = replace(
        plain,
        seen=int(numbers.size),
        nans=int(np.isnan(numbers).sum()),
        infinities=int(np.isinf(numbers).sum()),
        zeros=int((numbers == 0).sum()),
    )
    if finite.size == 0:
        return counts
    least, most = float(finite.min()), float(finite.max())
    scale = max(abs(least), abs(most)) or 1.0  # sums of squares of large numbers would overflow
    return replace(
        counts,
        least=least,
        most=most,
        mean=float((finite / scale).mean() * scale),
        deviation=float((finite / scale).std() * scale),
        bars=_bars(finite / scale, least / scale, most / scale),
    )


def _bars(numbers: Array, least: float, most: float) -> tuple[int, ...]:
    if least == most:
        return ()
    places = np.minimum(((numbers - least) / (most - least) * BINS).astype(np.int64), BINS - 1)
    return tuple(np.bincount(places, minlength=BINS).tolist())
