"""Axes of size 1 stretched."""

from __future__ import annotations

from tract_core.dims import same_dim
from tract_core.model.graph import OutletId
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "BROADCAST_TO")
@tflite_op(ROWS, "BROADCAST_TO")
def broadcast_to(node: TfliteNode, wire: Wiring) -> OutletId:
    """Stretched to the shape that an input holds"""
    return wire.through(wire_expand, wire.input(0), wire.sizes(wire.input(1)))


@tflite_op(ROWS, "BROADCAST_ARGS")
def broadcast_args(node: TfliteNode, wire: Wiring) -> Wired:
    """The common shape of two shapes"""
    shapes = [wire.tensor(slot) for slot in range(2)]
    lengths = [wire.count(one.outlet, "sizes") for one in shapes]
    a, b = (_with_ones(wire, one, max(lengths) - own) for one, own in zip(shapes, lengths, strict=True))
    first, second = a.fact.dims, b.fact.dims
    if first is None or second is None:
        return a.eq(1).where(b, a)
    common = [y if same_dim(x, 1) else x for x, y in zip(first, second, strict=True)]
    return Wired(wire, wire.const(common)).cast(a.dtype)


def _with_ones(wire: Wiring, sizes: Wired, count: int) -> Wired:
    """Sizes with so many ones before them."""
    return Wired(wire, wire.const((1,) * count)).cast(sizes.dtype).concat([sizes], 0) if count else sizes
