"""Elements written to positions of a copy."""

from __future__ import annotations

from typing import cast, get_args

from tract_core.model.graph import OutletId
from tract_core.ops.scatter import Reduction, ScatterElements, ScatterNd
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


def _wired(call: Call, op: ScatterElements | ScatterNd) -> OutletId:
    x = call.input("input")
    return call.op(op, x, call.whole("indices"), call.input("updates", call.dtype(x)))


def _reduction(call: Call) -> Reduction:
    return cast("Reduction", call.choice("reduction", get_args(Reduction)))


@reads(
    ROWS,
    CORE,
    "tract_core_scatter_elements(input: tensor<?>, indices: tensor<integer>, updates: tensor<?>, axis: integer,"
    " reduction: string = 'none') -> (output: tensor<?>)",
)
def read_scatter_elements(call: Call) -> OutletId:
    """One element for each position."""
    axis = call.axis("axis", call.rank(call.input("input")))
    return _wired(call, ScatterElements(axis, _reduction(call)))


@ROWS.row(NNEF_WRITE, ScatterElements)
def write_scatter_elements(op: ScatterElements, node: Spelling) -> Invocation | None:
    """By axis and reduction."""
    return node.invoke("tract_core_scatter_elements", *node.inputs, axis=op.axis, reduction=op.reduction, registry=CORE)


@reads(
    ROWS,
    CORE,
    "tract_core_scatter_nd(input: tensor<?>, indices: tensor<integer>, updates: tensor<?>,"
    " reduction: string = 'none') -> (output: tensor<?>)",
)
def read_scatter_nd(call: Call) -> OutletId:
    """Slices at coordinates."""
    return _wired(call, ScatterNd(_reduction(call)))


@ROWS.row(NNEF_WRITE, ScatterNd)
def write_scatter_nd(op: ScatterNd, node: Spelling) -> Invocation | None:
    """By its reduction."""
    return node.invoke("tract_core_scatter_nd", *node.inputs, reduction=op.reduction, registry=CORE)
