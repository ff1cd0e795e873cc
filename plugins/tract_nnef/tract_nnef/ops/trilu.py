"""Triangles of matrices."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.trilu import Trilu
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(ROWS, CORE, "tract_core_trilu(input: tensor<?>, k: tensor<integer>, upper: logical) -> (output: tensor<?>)")
def read_trilu(call: Call) -> OutletId:
    """What is above or below diagonal ``k``."""
    return call.op(Trilu(call.flag("upper")), call.input("input"), call.without_axes(call.whole("k")))


@ROWS.row(NNEF_WRITE, Trilu)
def write_trilu(op: Trilu, node: Spelling) -> Invocation | None:
    """With its half."""
    return node.invoke("tract_core_trilu", *node.inputs, upper=op.upper, registry=CORE)
