"""How NNEF archives spell `Smooth`, in the registry ``com_example``: one function reads it, one writes it."""

from __future__ import annotations

from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_example.smooth import Smooth

ROWS = Rows()

REGISTRY = "com_example"


@reads(
    ROWS,
    REGISTRY,
    "com_example_smooth(x: tensor<scalar>, decay: tensor<scalar>, axis: integer = 1) -> (y: tensor<scalar>)",
)
def read_smooth(call: Call) -> OutletId:
    """The coefficients are part of the operator: they have to be known."""
    x = call.input("x")
    decay = call.model.constant(call.input("decay", DatumType.F32))
    if decay is None:
        raise CorruptModel("com_example_smooth: 'decay' is computed, wanted numbers")
    return call.op(Smooth(call.axis("axis", call.rank(x)), Constant(decay)), x)


@ROWS.row(NNEF_WRITE, Smooth)
def write_smooth(op: Smooth, node: Spelling) -> Invocation | None:
    """By its name, where the registry may be used."""
    if not node.allows(REGISTRY):
        return None
    decay = node.constant("decay", op.decay)
    return node.invoke("com_example_smooth", node.input(0), decay=decay, axis=op.axis, registry=REGISTRY)
