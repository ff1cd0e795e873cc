"""Powers of two."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.plugins.tables import Rows
from tract_onnx.onnx_only.power_of_two import ToPowerOfTwo
from tract_onnx.writing.elements import code_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, ToPowerOfTwo)
def to_power_of_two(op: ToPowerOfTwo, node: Spelling) -> str | None:
    """Cast, which has that type from version 24 on"""
    if node.opset < 24:
        return None
    told = {"saturate": int(op.saturate), "round_mode": op.rounding.value}
    return node.add("Cast", node.input(), to=code_of(DatumType.F8E8M0FNU), **told)
