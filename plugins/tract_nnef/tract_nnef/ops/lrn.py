"""Normalisation over neighbouring channels."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.lrn import Lrn
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, ONNX, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    ONNX,
    "tract_onnx_lrn(input: tensor<scalar>, alpha: scalar = 0.0001, beta: scalar = 0.75, bias: scalar = 1.0,"
    " size: integer) -> (output: tensor<scalar>)",
)
def read_lrn(call: Call) -> OutletId:
    """On axis 1."""
    op = Lrn(call.integer("size"), call.number("alpha"), call.number("beta"), call.number("bias"))
    return call.op(op, call.input("input"))


@ROWS.row(NNEF_WRITE, Lrn)
def write_lrn(op: Lrn, node: Spelling) -> Invocation | None:
    """Where the channels are on axis 1."""
    if op.axis != 1:
        return None
    numbers = {"alpha": op.alpha, "beta": op.beta, "bias": op.bias, "size": op.size}
    return node.invoke("tract_onnx_lrn", node.input(0), **numbers, registry=ONNX)
