"""Places of what is not zero."""

from __future__ import annotations

from tract_core.dims import symbol_name
from tract_core.model.graph import OutletId
from tract_core.ops.non_zero import NonZero
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, ONNX, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    ONNX,
    "tract_onnx_non_zero(input: tensor<?>, count_symbol: string) -> (output: tensor<integer>)",
)
def read_non_zero(call: Call) -> OutletId:
    """One column per element found; their number is the symbol of that name."""
    return call.op(NonZero(call.model.symbols.add(call.text("count_symbol"))), call.input("input"))


@ROWS.row(NNEF_WRITE, NonZero)
def write_non_zero(op: NonZero, node: Spelling) -> Invocation | None:
    """Where a symbol stands for the number of elements."""
    if symbol_name(op.count) is None:
        return None
    return node.invoke("tract_onnx_non_zero", node.input(0), count_symbol=symbol_name(op.count), registry=ONNX)
