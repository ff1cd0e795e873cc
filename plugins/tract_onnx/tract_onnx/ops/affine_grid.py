"""Places in an image, moved by affine maps."""

from __future__ import annotations

from tract_core.dims import is_symbolic
from tract_core.errors import FactError
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.affine_grid import wire_affine_grid
from tract_core.ops.slice import wire_dyn_slice
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "AffineGrid", since=20)
def affine_grid(node: OnnxNode, wire: Wiring) -> OutletId:
    """For each place of an image of that size, where the maps bring it: [N, *places, coordinates, x first]"""
    theta, size = wire.input(0), wire.sizes(wire.input(1))
    sizes = [_element(wire, size, axis + 2) for axis in range(_axes(wire, theta, size))]
    return wire_affine_grid(wire, theta, sizes, aligned=node.flag("align_corners"))


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


def _element(wire: Wiring, x: OutletId, place: int) -> OutletId:
    return wire.number(wire.through(wire_dyn_slice, x, 0, start=wire.const(place), end=wire.const(place + 1)))
