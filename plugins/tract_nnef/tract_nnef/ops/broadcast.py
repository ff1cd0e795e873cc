"""Stretch axes of size 1."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(ROWS, CORE, "tract_core_broadcast(input: tensor<?>, shape: integer[]) -> (output: tensor<?>)")
def read_broadcast(call: Call) -> OutletId:
    """The input in the common shape of itself and ``shape``, aligned at the last axis as in NumPy."""
    x, computed = call.input("input"), call.computed("shape")
    if computed is not None:
        return wire_expand(call.model, call.unique("broadcast"), x, computed)
    return call.op(MultiBroadcastTo(call.dims("shape")), x)


@ROWS.row(NNEF_WRITE, MultiBroadcastTo)
def write_broadcast(op: MultiBroadcastTo, node: Spelling) -> Invocation | None:
    """By the shape of the result, as the established engine does not stretch the shape that it is given."""
    shape = list(op.whole_shape(node.input_fact(0)))
    return node.invoke("tract_core_broadcast", node.input(0), shape=shape, registry=CORE)
