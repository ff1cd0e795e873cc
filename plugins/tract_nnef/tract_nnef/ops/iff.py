"""Choose between two tensors, element by element."""

from __future__ import annotations

from tract_core.model.graph import OutletId
from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    STANDARD,
    "select<?>(condition: tensor<logical>, true_value: tensor<?>, false_value: tensor<?>) -> (output: tensor<?>)",
)
def read_select(call: Call) -> OutletId:
    """One value or the other; all three are brought to one rank, and the values to one type."""
    condition = call.input("condition")
    return call.op(Iff(), *call.ranked([condition, *call.aligned("true_value", "false_value")]))


@ROWS.row(NNEF_WRITE, Iff)
def write_select(op: Iff, node: Spelling) -> Invocation | None:
    """By its name alone."""
    return node.invoke("select", *node.inputs)
