"""Every n-th element of an axis."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.downsample import Downsample
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_downsample(input: tensor<?>, axis: integer, stride: integer, modulo: integer = 0)"
    " -> (output: tensor<?>)",
)
def read_downsample(call: Call) -> OutletId:
    """Each ``stride``-th from ``modulo`` on; backwards with a negative stride."""
    x = call.input("input")
    return call.op(Downsample(call.axis("axis", call.rank(x)), call.integer("stride"), call.integer("modulo")), x)


@ROWS.row(NNEF_WRITE, Downsample)
def write_downsample(op: Downsample, node: Spelling) -> Invocation | None:
    """By its numbers."""
    numbers = {"axis": op.axis, "stride": op.stride, "modulo": op.modulo}
    return node.invoke("tract_core_downsample", node.input(0), **numbers, registry=CORE)
