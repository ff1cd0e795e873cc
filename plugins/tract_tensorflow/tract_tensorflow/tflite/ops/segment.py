"""Slices that belong together, joined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tract_core.errors import FactError
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.rounding import greatest, limits
from tract_core.ops.scatter import Reduction, ScatterNd
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import TFLITE, TfliteFn, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


def _lowest(x: Wired) -> float:
    return -greatest(x.dtype) if x.dtype.is_float() else limits(x.dtype.storage)[0]


def _highest(x: Wired) -> float:
    return greatest(x.dtype) if x.dtype.is_float() else limits(x.dtype.storage)[1]


_OF_NOTHING: Final[dict[Reduction, Callable[[Wired], float]]] = {
    "add": lambda _: 0,
    "max": _lowest,
    "min": _highest,
    "mul": lambda _: 1,
}
"""What a segment without slices becomes."""


@tflite_op(ROWS, "SEGMENT_SUM")
def segment_sum(node: TfliteNode, wire: Wiring) -> Wired:
    """The sum of the slices of each segment: the second input says to which each belongs, in rising order"""
    x, segments = wire.tensor(0), Wired(wire, wire.i64(wire.input(1)))
    if segments.rank != 1:
        raise FactError(f"SEGMENT_SUM wants a segment for each slice, found {segments.fact}")
    count = segments.op(Reduce((0,), Reducer.MAX)).maximum(-1) + 1
    return _joined(wire, x, segments, count, "add")


def _unsorted(reduction: Reduction) -> TfliteFn:
    def wire_unsorted(node: TfliteNode, wire: Wiring) -> Wired:
        x, segments = wire.tensor(0), Wired(wire, wire.i64(wire.input(1)))
        count = Wired(wire, wire.i64(wire.number(wire.input(2)))).unsqueeze([0])
        wire.require_shape("list of segments", segments.outlet, x.shape[: segments.rank])
        # What belongs to no segment goes into one more, which is dropped.
        inside = (segments < 0).where(count, segments)
        found = _joined(wire, x, inside, count + 1, reduction)
        return found.part(0, 0, found.shape[0] - 1)

    return wire_unsorted


_UNSORTED: Final[dict[str, Reduction]] = {"SUM": "add", "MAX": "max", "MIN": "min", "PROD": "mul"}

for _name, _reduction in _UNSORTED.items():
    ROWS.add(TFLITE, f"UNSORTED_SEGMENT_{_name}", _unsorted(_reduction))


def _joined(wire: Wiring, x: Wired, segments: Wired, count: Wired, reduction: Reduction) -> Wired:
    """``count``: of segments, a list of one element."""
    rest = Wired(wire, wire.const(tuple(x.shape[segments.rank :])))
    sizes = count.concat([rest], 0) if rest.shape[0] != 0 else count
    nothing: Array = np.array(_OF_NOTHING[reduction](x)).astype(x.dtype.numpy)
    start = Wired(wire, wire.const(nothing)).through(wire_expand, sizes.outlet)
    return start.op(ScatterNd(reduction), segments.unsqueeze([segments.rank]), x)
