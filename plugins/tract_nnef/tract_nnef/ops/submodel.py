"""Models that are operators of others: archives inside the archive."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.submodel import SubmodelOp
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(ROWS, CORE, "tract_core_submodel(input: tensor<?>[], label: string) -> (output: tensor<?>)")
def read_submodel(call: Call) -> Sequence[OutletId]:
    """The results of the model with that label; a single input may be given without brackets."""
    inputs = call.inputs("input")
    return call.ops(SubmodelOp(call.reader.tensors.submodel(call.text("label"))), *inputs)


@ROWS.row(NNEF_WRITE, SubmodelOp)
def write_submodel(op: SubmodelOp, node: Spelling) -> Invocation | None:
    """By the label of the archive that the model becomes."""
    if not node.allows(CORE):
        return None
    return node.invoke(
        "tract_core_submodel", node.inputs, label=node.writer.submodel(node.node.name, op.model), registry=CORE
    )
