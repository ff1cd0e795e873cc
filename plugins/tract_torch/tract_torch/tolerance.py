"""How near outputs must be: the classes of the tract engines, ordered by how loose they are."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import numpy as np

from tract_core.data.datum_type import DatumType, PlainType, QuantizedType
from tract_core.frozen import frozen
from tract_core.testing.tolerance import EXACT, Tolerance, approx_class, distances, worst_of

Array = np.ndarray[Any, Any]


class TractCheckTolerance(StrEnum):
    """Level of tolerated difference between outputs of PyTorch and of the archive, tightest first.

    In the order of the engine's documentation ``approximate`` comes before ``close``, which is tighter: compare levels
    with ``<``, or ask for the `loosest`.
    """

    EXACT = "exact"
    CLOSE = "close"
    APPROXIMATE = "approximate"
    VERY = "very"
    SUPER = "super"
    ULTRA = "ultra"

    def numbers(self, kind: PlainType) -> Tolerance:
        """Absolute, relative, and the share of outliers, for an element type.

        Quantised values are compared as the real numbers that they stand for, of which ``approximate`` allows one step.
        Integers must agree, but for the share of outliers.
        """
        if isinstance(kind, QuantizedType):
            return Tolerance(kind.scale, 0) if self is self.APPROXIMATE else approx_class(self.value, kind.storage)
        numbers = approx_class(self.value, kind)
        whole = kind.is_integer() or kind.is_bool()
        return Tolerance(0, 0, numbers.outliers) if whole else numbers

    @classmethod
    def loosest(cls, levels: Iterable[TractCheckTolerance | str]) -> TractCheckTolerance:
        """The one of several that allows most. Raises ValueError where there is none."""
        return max(map(cls, levels), key=cls._rank)

    def _rank(self) -> int:
        return list(TractCheckTolerance).index(self)

    # a text has an order of its own, by letters
    def __lt__(self, other: str) -> bool:
        return self._rank() < TractCheckTolerance(other)._rank()

    def __le__(self, other: str) -> bool:
        return self._rank() <= TractCheckTolerance(other)._rank()

    def __gt__(self, other: str) -> bool:
        return self._rank() > TractCheckTolerance(other)._rank()

    def __ge__(self, other: str) -> bool:
        return self._rank() >= TractCheckTolerance(other)._rank()


@frozen
class Difference:
    """How an output differs. ``largest``: of the absolute differences, ``None`` where there is no such.

    ``differing``, ``elements``: how many of how many differ by more than is tolerated. ``place``, ``found``,
    ``wanted``: the worst of these, its index and both values. ``problem``: one sentence where they are too many,
    else ``None``. ``name``: of the output.
    """

    name: str
    elements: int
    largest: float | None
    differing: int = 0
    place: tuple[int, ...] | None = None
    found: str | None = None
    wanted: str | None = None
    problem: str | None = None


def difference(
    name: str, found: Array, wanted: Array, level: TractCheckTolerance, kind: PlainType | None = None
) -> Difference:
    """How what was found differs from what was wanted. ``kind``: the element type, by default that of ``wanted``.

    Not-a-numbers agree with each other, infinities where their signs do. Element types and shapes must be the same.
    """
    elements = int(wanted.size)
    if found.dtype != wanted.dtype:
        problem = f"its element type is {found.dtype}, wanted {wanted.dtype}"
        return Difference(name, elements, None, problem=problem)
    if found.shape != wanted.shape:
        problem = f"its shape is {list(found.shape)}, wanted {list(wanted.shape)}"
        return Difference(name, elements, None, problem=problem)
    kind = kind or DatumType.from_numpy(wanted.dtype)
    tolerance = level.numbers(kind)
    if isinstance(kind, QuantizedType):
        found, wanted = _real(found, kind), _real(wanted, kind)
    near = distances(found, wanted)
    largest = near[0] if near else None
    worst = worst_of(found, wanted, tolerance) if tolerance == EXACT or near is None or near[0] > 0 else None
    if worst is None:
        return Difference(name, elements, largest)
    problem = str(worst) if worst.differing > tolerance.outliers * elements else None
    return Difference(name, elements, largest, worst.differing, worst.place, worst.found, worst.wanted, problem)


def _real(stored: Array, kind: QuantizedType) -> Array:
    """The numbers that quantised ones stand for."""
    return (stored.astype(np.float64) - kind.zero_point) * kind.scale
