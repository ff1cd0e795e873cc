"""Exponentials along axes, scaled so that they sum to 1, and their logarithms."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(ROWS, STANDARD, "softmax(x: tensor<scalar>, axes: integer[] = [1]) -> (y: tensor<scalar>)")
@reads(ROWS, CORE, "tract_core_softmax(x: tensor<scalar>, axes: integer[], exp: string = '') -> (y: tensor<scalar>)")
def read_softmax(call: Call) -> OutletId:
    """Over some axes together, or over axis 1. How fast the exponential is to be (``exp``) is not heeded."""
    x = call.real(call.input("x"))
    return call.op(Softmax(call.axes("axes", call.rank(x))), x)


@reads(ROWS, CORE, "tract_core_log_softmax(x: tensor<scalar>, axes: integer[]) -> (y: tensor<scalar>)")
def read_log_softmax(call: Call) -> OutletId:
    """Over some axes together."""
    x = call.real(call.input("x"))
    return call.op(LogSoftmax(call.axes("axes", call.rank(x))), x)


@ROWS.row(NNEF_WRITE, Softmax)
def write_softmax(op: Softmax, node: Spelling) -> Invocation | None:
    """By its axes."""
    return node.invoke("softmax", node.input(0), axes=list(op.axes))


@ROWS.row(NNEF_WRITE, LogSoftmax)
def write_log_softmax(op: LogSoftmax, node: Spelling) -> Invocation | None:
    """By its axes."""
    return node.invoke("tract_core_log_softmax", node.input(0), axes=list(op.axes), registry=CORE)
