"""Parts of an axis."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.slice import DynSlice
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_dyn_slice(input: tensor<?>, start: tensor<integer>, end: tensor<integer>, len: integer,"
    " axis: integer) -> (output: tensor<?>)",
)
def read_dyn_slice(call: Call) -> OutletId:
    """Between computed bounds; ``len`` says how many elements there will be."""
    start, end = (call.without_axes(call.whole(bound)) for bound in ("start", "end"))
    return call.op(DynSlice(call.integer("axis"), call.dim("len")), call.tensor("input"), start, end)


@ROWS.row(NNEF_WRITE, DynSlice)
def write_dyn_slice(op: DynSlice, node: Spelling) -> Invocation | None:
    """With the length that it announces."""
    return node.invoke("tract_core_dyn_slice", *node.inputs, axis=op.axis, len=op.length, registry=CORE)
