"""Matrix products, and sums of products over named axes."""

from __future__ import annotations

from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_einsum(inputs: tensor<scalar>[], expr: string, acc: string, output: string = '')"
    " -> (y: tensor<scalar>)",
)
def read_einsum(call: Call) -> OutletId:
    """The sum of products of an expression such as ``mk,kn->mn``."""
    op = EinSum(AxesMapping.parse(call.text("expr")), call.element_type("acc"))
    return call.op(op, *call.tensors("inputs"))


@ROWS.row(NNEF_WRITE, EinSum)
def write_einsum(op: EinSum, node: Spelling) -> Invocation | None:
    """By its expression."""
    if op.q_output is not None:
        return None
    acc = type_name(op.acc)
    return node.invoke("tract_core_einsum", list(node.inputs), expr=str(op.axes), acc=acc, output="", registry=CORE)
