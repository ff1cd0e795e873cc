"""Images that are read between their elements, at the places of a grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.model.graph import OutletId
from tract_core.ops.grid_sample import GridSample, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, ONNX, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_MODES: Final[Mapping[str, Interpolator]] = {
    "bilinear": Interpolator.LINEAR,
    "nearest": Interpolator.NEAREST,
    "bicubic": Interpolator.CUBIC,
}
_NAMES: Final = {mode: name for name, mode in _MODES.items()}
_DECLARED: Final = (
    "(input: tensor<scalar>, grid: tensor<scalar>, mode: string = 'bilinear', padding_mode: string = 'zeros',"
    " align_corners: logical = false) -> (output: tensor<scalar>)"
)


@reads(ROWS, CORE, f"tract_core_grid_sample{_DECLARED}")
@reads(ROWS, ONNX, f"tract_onnx_grid_sample{_DECLARED}")
def read_grid_sample(call: Call) -> OutletId:
    """By the names that ONNX has for the modes."""
    padding = call.member("padding_mode", PaddingMode)
    op = GridSample(_MODES[call.choice("mode", _MODES)], padding, call.flag("align_corners"))
    return call.op(op, call.input("input"), call.input("grid"))


@ROWS.row(NNEF_WRITE, GridSample)
def write_grid_sample(op: GridSample, node: Spelling) -> Invocation | None:
    """With all that it knows."""
    return node.invoke(
        "tract_core_grid_sample",
        *node.inputs,
        mode=_NAMES[op.mode],
        padding_mode=op.padding_mode.value,
        align_corners=op.align_corners,
        registry=CORE,
    )
