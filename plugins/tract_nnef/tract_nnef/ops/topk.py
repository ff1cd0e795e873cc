"""The largest or smallest elements."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.topk import Topk
from tract_core.ops.wiring_dyn import wire_topk
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_topk(input: tensor<?>, k: tensor<integer>, axis: integer, largest: logical,"
    " announced: integer[] = false) -> (values: tensor<?>, indices: tensor<integer>)",
)
def read_topk(call: Call) -> Sequence[OutletId]:
    """The elements and their positions; ``announced`` says how many there will be."""
    x, k = call.input("input"), call.without_axes(call.whole("k"))
    axis, largest, announced = call.axis("axis", call.rank(x)), call.flag("largest"), call.announced(1)
    if announced is None:
        return wire_topk(call.model, call.unique("topk"), x, k, axis, largest=largest)
    return call.ops(Topk(axis, largest, announced[0]), x, k)


@ROWS.row(NNEF_WRITE, Topk)
def write_topk(op: Topk, node: Spelling) -> Invocation | None:
    """With the number of elements that it announces, which other engines pass over."""
    named = {"axis": op.axis, "largest": op.largest, "announced": [op.k]}
    return node.invoke("tract_core_topk", *node.inputs, **named, registry=CORE)
