"""Places in an image, moved by affine maps."""

from __future__ import annotations

from tract_core.data import DatumType, DType
from tract_core.dims import is_symbolic
from tract_core.errors import FactError
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Max, Mul, Sub
from tract_core.ops.slice import Slice, wire_dyn_slice
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "AffineGrid", since=20)
def affine_grid(node: OnnxNode, wire: Wiring) -> OutletId:
    """For each place of an image of that size, where the maps bring it: [N, *places, coordinates, x first]"""
    theta, size = wire.input(0), wire.sizes(wire.input(1))
    axes = _axes(wire, theta, size)
    kind = wire.dtype(theta)
    theta = wire.cast(theta, DatumType.F32) if kind.itemsize < 4 else theta
    result = _column(wire, theta, axes, axes)
    for axis in range(axes):
        line = _line(wire, _element(wire, size, axis + 2), wire.dtype(theta), aligned=node.flag("align_corners"))
        line = wire.unsqueeze(line, [other for other in range(axes + 2) if other != axis + 1])
        # The coordinates of a place are in the opposite order of the axes.
        moved = wire.op(Mul(), _column(wire, theta, axes - 1 - axis, axes), line)
        result = wire.op(Add(), result, moved)
    return wire.cast(result, kind)


def _axes(wire: Wiring, theta: OutletId, size: OutletId) -> int:
    """The number of axes of a place. Raises FactError when the maps and the size do not go together."""
    count, maps = wire.shape(size)[0], wire.shape(theta)
    if is_symbolic(count) or int(count) not in (4, 5):
        raise FactError(f"AffineGrid wants a size of 4 or 5 numbers, found {wire.fact(size)}")
    axes = int(count) - 2
    if len(maps) != 3 or not may_equal(maps[1], axes) or not may_equal(maps[2], axes + 1):
        raise FactError(f"AffineGrid wants maps of shape [N, {axes}, {axes + 1}], found {wire.fact(theta)}")
    known = wire.dims(size)
    if known is not None and not may_equal(maps[0], known[0]):
        raise FactError(f"AffineGrid wants a map for each of {known[0]} items, found {wire.fact(theta)}")
    return axes


def _column(wire: Wiring, theta: OutletId, column: int, axes: int) -> OutletId:
    """A column of the maps, with axes of size 1 for the places."""
    return wire.reshape(wire.op(Slice(2, column, column + 1), theta), (wire.shape(theta)[0], *(1,) * axes, axes))


def _element(wire: Wiring, x: OutletId, place: int) -> OutletId:
    return wire.number(wire.through(wire_dyn_slice, x, 0, start=wire.const(place), end=wire.const(place + 1)))


def _line(wire: Wiring, size: OutletId, kind: DType, *, aligned: bool) -> OutletId:
    """From -1 to 1 in ``size`` steps: the centres of the first and last step, or, not ``aligned``, their outer ends.

    Step i is at (2 i - (size - 1)) / size, or, aligned, / (size - 1), where a single step is at 0.
    """
    one = wire.const(1)
    last = wire.op(Sub(), size, one)
    steps = wire.through(wire_range, wire.const(0), size, one)
    doubled = wire.binary(Mul(), steps, wire.const(2))
    length = wire.op(Max(), last, one) if aligned else size
    return wire.binary(Div(), wire.cast(wire.binary(Sub(), doubled, last), kind), wire.cast(length, kind))
