"""Which differences are normal in f16 and bf16: both keep few bits of a number, and engines round at other places."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_core.testing.tolerance import distances

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel

Array = np.ndarray[Any, Any]

NORMAL: Final = 4.0
"""Steps by which two engines differ that are both right, in the largest number of a tensor. The networks of
``bench/workloads.py`` in either type, beside ONNX Runtime in f32, differ by 1.9 at most, and by 2.4 where differences
add up from node to node."""

_STEP: Final = {DatumType.F16: 2.0**-10, DatumType.BF16: 2.0**-7}
"""How far numbers are apart at most, as a part of them."""


@frozen
class Half:
    """How far a tensor of halves is from what it is compared with. ``kind``: the element type, as ``f16``.

    ``steps``: the largest difference, in steps of that type from the largest number that is wanted to the next.
    """

    kind: str
    steps: float

    @property
    def is_normal(self) -> bool:
        """Whether that is what rounding gives."""
        return self.steps <= NORMAL


def halves_in(model: TypedModel) -> DatumType | None:
    """The type of halves that a model computes in, the coarser one of two."""
    kinds = {out.fact.datum_type for node in model.live_nodes() for out in node.outputs}
    return next((kind for kind in (DatumType.BF16, DatumType.F16) if kind in kinds), None)


def half_of(found: Array, wanted: Array, computed_in: DatumType | None = None) -> Half | None:
    """How far two arrays of floats are apart where one of them is in halves, or was ``computed_in`` such.

    ``None`` for others, and for other shapes.
    """
    kinds = [DatumType.from_numpy(array.dtype) for array in (found, wanted) if not array.dtype.hasobject]
    kind = next((one for one in kinds if one in _STEP), computed_in)
    apart = distances(found, wanted)
    if kind is None or apart is None or not all(one.is_float() for one in kinds):
        return None
    numbers = np.abs(wanted.astype(np.float64))
    largest = float(np.max(numbers, where=np.isfinite(numbers), initial=0.0))
    return Half(kind.short, apart[0] / (largest * _STEP[kind]) if largest else apart[0] and np.inf)


def what_is_normal(found: Iterable[tuple[str, Half]]) -> list[str]:
    """For each type of halves among tensors, by name: how exact it is, and how the differences are to that."""
    worst: dict[str, tuple[str, Half]] = {}
    for name, half in found:
        if half.kind not in worst or half.steps > worst[half.kind][1].steps:
            worst[half.kind] = name, half
    return [_sentence(half, name) for name, half in worst.values()]


def _sentence(half: Half, name: str) -> str:
    share = _STEP[DatumType.parse(half.kind)]
    normal = f"engines that round elsewhere differ by up to {NORMAL:g} such steps of the largest number of a tensor"
    found = f"here by {half.steps:.2g}, in {name!r}, which is {'normal' if half.is_normal else 'more'}"
    return f"numbers in {half.kind} are up to {share:.1%} apart, and {normal}: {found}"
