"""Elements added around."""

from __future__ import annotations

from tract_core.ops.pad import DynPad, Pad, PadConstant, PadEdge, PadMode, PadReflect, PadWrap
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


_MODES = {PadConstant: "constant", PadReflect: "reflect", PadEdge: "edge", PadWrap: "wrap"}


@ROWS.row(ONNX_WRITE, Pad)
def pad(op: Pad, node: Spelling) -> str | None:
    """Pad"""
    pads = node.sizes([*(before for before, _ in op.pads), *(after for _, after in op.pads)])
    return _padded(node, node.input(), pads, op.mode)


@ROWS.row(ONNX_WRITE, DynPad)
def dyn_pad(op: DynPad, node: Spelling) -> str | None:
    """Pad, with the value of the run where it has one"""
    return _padded(node, node.input(), node.as_i64(1), op.mode, *node.inputs[2:])


def _padded(node: Spelling, x: str, pads: str, mode: PadMode, *value: str) -> str | None:
    if isinstance(mode, PadWrap) and node.opset < 19:
        return None
    values = [*value] or ([node.held(mode.value)] if isinstance(mode, PadConstant) else [])
    return node.add("Pad", x, pads, *values, mode=_MODES[type(mode)])
