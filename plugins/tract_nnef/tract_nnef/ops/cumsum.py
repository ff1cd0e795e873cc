"""Running sums and their like.

They are written as loops: the established engine has an operator for sums alone, since its version 0.23.9, and reads
what is written here whatever its version.
"""

from __future__ import annotations

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumMin, CumProd, CumSum, Running, neutral
from tract_core.ops.cumsum_loop import running_loop
from tract_core.ops.expect import wide
from tract_core.plugins.tables import Rows
from tract_nnef.ops.scan import invoke_loop
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_cumsum(input: tensor<scalar>, axis: integer, exclusive: logical = false, reverse: logical = false)"
    " -> (output: tensor<scalar>)",
)
def read_cumsum(call: Call) -> OutletId:
    """The sums of what is before each element, and of that itself unless ``exclusive``."""
    x = call.input("input")
    return call.op(CumSum(call.axis("axis", call.rank(x)), call.flag("exclusive"), call.flag("reverse")), x)


@ROWS.row(NNEF_WRITE, CumSum, CumProd, CumMax, CumMin, CumLogSumExp)
def write_running(op: Running, node: Spelling) -> Invocation | None:
    """A loop over slices, in f32 where floats are shorter; as it is where this project alone reads it."""
    fact = node.input_fact(0)
    kind = fact.datum_type
    if node.allows(PY) or not node.allows(CORE) or not isinstance(kind, DatumType):
        return None
    joined = DatumType.from_numpy(wide(kind.numpy))
    x = node.input(0)
    if joined is not kind:
        fact = fact.without_value().with_type(joined)
        x = node.let("wide", node.invoke("tract_core_cast", x, to=joined.short, registry=CORE))
    one = node.constant("first", Constant(neutral(op, joined).reshape((1,) * fact.rank)))
    shape = [*fact.shape[: op.axis], 1, *fact.shape[op.axis + 1 :]]
    start = node.let("start", node.invoke("tract_core_broadcast", one, shape=shape, registry=CORE))
    found = invoke_loop(running_loop(op, fact), node, [x, start], "running")
    if joined is kind or found is None:
        return found
    return node.invoke("tract_core_cast", node.let("joined", found), to=kind.short, registry=CORE)
