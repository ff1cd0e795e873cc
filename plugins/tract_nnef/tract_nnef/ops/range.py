"""Numbers in steps."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.range import Range
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_range(start: tensor<?>, end: tensor<?>, step: tensor<?>, announced: integer[] = false)"
    " -> (output: tensor<?>)",
)
def read_range(call: Call) -> OutletId:
    """From ``start`` up to and without ``end``; ``announced`` says how many there will be."""
    bounds = [call.without_axes(bound) for bound in call.aligned("start", "end", "step")]
    announced = call.announced(1)
    if announced is None:
        return wire_range(call.model, call.unique("range"), *bounds)
    return call.op(Range(announced[0]), *bounds)


@ROWS.row(NNEF_WRITE, Range)
def write_range(op: Range, node: Spelling) -> Invocation | None:
    """With the number of elements that it announces, which other engines pass over."""
    return node.invoke("tract_core_range", *node.inputs, announced=[op.length], registry=CORE)
