"""Elements picked by their positions."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.cast import Cast
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_gather(input: tensor<?>, indices: tensor<integer>, axis: integer, datum_type: string = '')"
    " -> (output: tensor<?>)",
)
def read_gather(call: Call) -> OutletId:
    """Slices of an axis, in the type of the input unless another is named."""
    x = call.input("input")
    found = call.op(Gather(call.axis("axis", call.rank(x))), x, call.whole("indices"))
    kind = call.element_type("datum_type") if call.text("datum_type") else call.dtype(found)
    return found if kind == call.dtype(found) else call.op(Cast(kind), found)


@reads(
    ROWS,
    STANDARD,
    "gather<?>(input: tensor<?>, indices: tensor<integer>, axis: integer = 0) -> (output: tensor<?>)",
)
def read_standard_gather(call: Call) -> OutletId:
    """Slices of an axis."""
    x = call.input("input")
    return call.op(Gather(call.axis("axis", call.rank(x))), x, call.whole("indices"))


@ROWS.row(NNEF_WRITE, Gather)
def write_gather(op: Gather, node: Spelling) -> Invocation | None:
    """By its axis. The established engine has to be told what the elements of blocks become."""
    producer = node.writer.model.producer(node.node.inputs[0])
    kind = type_name(node.output_fact().datum_type) if isinstance(producer.op, UnpackBlocks) else None
    return node.invoke("tract_core_gather", *node.inputs, axis=op.axis, datum_type=kind, registry=CORE)


@reads(
    ROWS,
    CORE,
    "tract_core_gather_elements(input: tensor<?>, indices: tensor<integer>, axis: integer) -> (output: tensor<?>)",
)
def read_gather_elements(call: Call) -> OutletId:
    """One element for each position."""
    x = call.input("input")
    return call.op(GatherElements(call.axis("axis", call.rank(x))), x, call.whole("indices"))


@ROWS.row(NNEF_WRITE, GatherElements)
def write_gather_elements(op: GatherElements, node: Spelling) -> Invocation | None:
    """By its axis."""
    return node.invoke("tract_core_gather_elements", *node.inputs, axis=op.axis, registry=CORE)


@reads(
    ROWS,
    CORE,
    "tract_core_gather_nd(input: tensor<?>, indices: tensor<integer>, batch_dims: integer = 0) -> (output: tensor<?>)",
)
def read_gather_nd(call: Call) -> OutletId:
    """Slices at coordinates."""
    return call.op(GatherNd(call.integer("batch_dims")), call.input("input"), call.whole("indices"))


@ROWS.row(NNEF_WRITE, GatherNd)
def write_gather_nd(op: GatherNd, node: Spelling) -> Invocation | None:
    """By the number of its common axes."""
    return node.invoke("tract_core_gather_nd", *node.inputs, batch_dims=op.batch_dims, registry=CORE)
