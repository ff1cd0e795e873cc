"""Images read at places that a tensor gives."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.ops.affine_grid import wire_affine_grid
from tract_core.ops.grid_sample import GridSample, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_MODES: Final = (Interpolator.LINEAR, Interpolator.NEAREST, Interpolator.CUBIC)
_PADDING: Final = (PaddingMode.ZEROS, PaddingMode.BORDER, PaddingMode.REFLECTION)


@aten(ROWS, "aten.grid_sampler", "aten.grid_sampler_2d", "aten.grid_sampler_3d")
def grid_sampler(call: Call, wire: NodeWiring) -> OutletId:
    """The image interpolated at the places in the grid, from -1 to 1"""
    mode, padding = _MODES[call.value("interpolation_mode")], _PADDING[call.value("padding_mode")]
    op = GridSample(mode, padding, call.flag("align_corners"))
    return wire.op(op, call.input("input"), call.input("grid"))


@aten(ROWS, "aten.affine_grid_generator", "tract_torch.affine_grid_generator")
def affine_grid_generator(call: Call, wire: NodeWiring) -> OutletId:
    """For each place of an image (items, places, coordinates), where the maps bring it"""
    sizes = [wire.const(size) for size in call.dims("size")[2:]]
    return wire_affine_grid(wire, call.input("theta"), sizes, aligned=call.flag("align_corners"))
