"""Images read at places that a tensor gives."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.ops.grid_sample import GridSample, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

_MODES: Final = {
    "linear": Interpolator.LINEAR,
    "bilinear": Interpolator.LINEAR,
    "nearest": Interpolator.NEAREST,
    "cubic": Interpolator.CUBIC,
    "bicubic": Interpolator.CUBIC,
}


@onnx_op(ROWS, "GridSample", since=16)
def grid_sample(node: OnnxNode, wire: Wiring) -> OutletId:
    """The image interpolated at the places in the grid, from -1 to 1"""
    mode = _MODES[node.choice("mode", _MODES, "linear")]
    padding = node.member("padding_mode", PaddingMode, PaddingMode.ZEROS)
    return wire.op(GridSample(mode, padding, node.flag("align_corners")), wire.input(0), wire.input(1))
