"""Places in an image, moved by affine maps."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType, DType
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Max, Mul, Sub
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_range


def wire_affine_grid(wire: NodeWiring, theta: OutletId, sizes: Sequence[OutletId], *, aligned: bool) -> OutletId:
    """For each place of an image, where the maps bring it: [items, *sizes, coordinates, x first].

    ``theta``: a map for each item, [items, axes, axes + 1]. ``sizes``: those of the image, in i64 and of rank 0,
    outermost first. Coordinates are those of `GridSample`, with ``aligned`` for its ``align_corners``.
    """
    axes = len(sizes)
    kind = wire.dtype(theta)
    theta = wire.cast(theta, DatumType.F32) if kind.itemsize < 4 else theta
    result = _column(wire, theta, axes, axes)
    for axis, size in enumerate(sizes):
        line = _line(wire, size, wire.dtype(theta), aligned=aligned)
        line = wire.unsqueeze(line, [other for other in range(axes + 2) if other != axis + 1])
        # The coordinates of a place are in the opposite order of the axes.
        moved = wire.op(Mul(), _column(wire, theta, axes - 1 - axis, axes), line)
        result = wire.op(Add(), result, moved)
    return wire.cast(result, kind)


def _column(wire: NodeWiring, theta: OutletId, column: int, axes: int) -> OutletId:
    """A column of the maps, with axes of size 1 for the places."""
    return wire.reshape(wire.op(Slice(2, column, column + 1), theta), (wire.shape(theta)[0], *(1,) * axes, axes))


def _line(wire: NodeWiring, size: OutletId, kind: DType, *, aligned: bool) -> OutletId:
    """From -1 to 1 in ``size`` steps: the centres of the first and last step, or, not ``aligned``, their outer ends.

    Step i is at (2 i - (size - 1)) / size, or, aligned, / (size - 1), where a single step is at 0.
    """
    one = wire.const(1)
    last = wire.op(Sub(), size, one)
    steps = wire.through(wire_range, wire.const(0), size, one)
    doubled = wire.binary(Mul(), steps, wire.const(2))
    length = wire.op(Max(), last, one) if aligned else size
    return wire.binary(Div(), wire.cast(wire.binary(Sub(), doubled, last), kind), wire.cast(length, kind))
