"""What recurrent cells do after their matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_lstm_epilogue(preact: tensor<scalar>, c_prev: tensor<scalar>, hidden: integer)"
    " -> (h: tensor<scalar>, c: tensor<scalar>)",
)
def read_lstm_epilogue(call: Call) -> Sequence[OutletId]:
    """The gates input, output, forget, cell."""
    return call.ops(LstmEpilogue(call.dim("hidden")), call.tensor("preact"), call.tensor("c_prev"))


@ROWS.row(NNEF_WRITE, LstmEpilogue)
def write_lstm_epilogue(op: LstmEpilogue, node: Spelling) -> Invocation | None:
    """With the number of hidden elements."""
    return node.invoke("tract_core_lstm_epilogue", *node.inputs, hidden=op.hidden, registry=CORE)


@reads(
    ROWS,
    CORE,
    "tract_core_gru_epilogue(xh: tensor<scalar>, rh: tensor<scalar>, h_prev: tensor<scalar>, hidden: integer)"
    " -> (h: tensor<scalar>)",
)
def read_gru_epilogue(call: Call) -> OutletId:
    """The gates update, reset, hidden."""
    return call.op(GruEpilogue(call.dim("hidden")), *map(call.tensor, ("xh", "rh", "h_prev")))


@ROWS.row(NNEF_WRITE, GruEpilogue)
def write_gru_epilogue(op: GruEpilogue, node: Spelling) -> Invocation | None:
    """With the number of hidden elements."""
    return node.invoke("tract_core_gru_epilogue", *node.inputs, hidden=op.hidden, registry=CORE)
