"""Recurrent networks, and what their cells do after the matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.ops.recurrent_wiring import Direction, RecurrentInputs, RecurrentOptions, wire_gru
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_squeeze, wire_transpose, wire_unsqueeze
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
    return call.ops(LstmEpilogue(call.dim("hidden")), call.input("preact"), call.input("c_prev"))


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
    return call.op(GruEpilogue(call.dim("hidden")), *map(call.input, ("xh", "rh", "h_prev")))


@ROWS.row(NNEF_WRITE, GruEpilogue)
def write_gru_epilogue(op: GruEpilogue, node: Spelling) -> Invocation | None:
    """With the number of hidden elements."""
    return node.invoke("tract_core_gru_epilogue", *node.inputs, hidden=op.hidden, registry=CORE)


@reads(
    ROWS,
    CORE,
    "tract_core_gru_seq(x: tensor<scalar>, w: tensor<scalar> = false, r: tensor<scalar>, b: tensor<scalar> = false,"
    " initial_h: tensor<scalar>, hidden: integer, chunk: integer = 1, has_bias: logical = false,"
    " reset_every_turn: logical = false, emit_y: logical = true, projected: logical = false)"
    " -> (y: tensor<scalar>, last: tensor<scalar>)",
)
def read_gru_seq(call: Call) -> Sequence[OutletId]:
    """A whole GRU whose reset gate multiplies the product, gates in the order update, reset, hidden.

    For T steps, B items, I inputs and H hidden units: ``x`` [B, T, I], or [B, T, 3*H] where it is ``projected``, that
    is the product with ``w`` [3*H, I] and its bias already; ``r`` [3*H, H], ``b`` [1, 6*H] (that of ``w``, then that of
    ``r``), ``initial_h`` [B, 1, H]. The results are y [B, T, H], which without ``emit_y`` has no steps, and the last
    state [B, 1, H]. A negative ``chunk`` goes from the last step to the first.
    """
    model, name = call.model, call.node

    def with_direction(x: OutletId | None, label: str) -> OutletId | None:
        return None if x is None else wire_unsqueeze(model, f"{name}.{label}", x, [0])

    weights = None if call.flag("projected") else call.input("w")
    inputs = RecurrentInputs(
        x=wire_transpose(model, f"{name}.steps", call.input("x"), (1, 0, 2)),
        w=with_direction(weights, "w"),
        r=wire_unsqueeze(model, f"{name}.r", call.input("r"), [0]),
        bias=call.input("b") if call.flag("has_bias") else None,
        initial_h=wire_transpose(model, f"{name}.start", call.input("initial_h"), (1, 0, 2)),
    )
    direction = Direction.FORWARD if call.integer("chunk") > 0 else Direction.REVERSE
    options = RecurrentOptions(direction, reset_every_turn=call.flag("reset_every_turn"))
    y, last = wire_gru(model, f"{name}.gru", options, inputs, linear_before_reset=True)
    y = wire_squeeze(model, f"{name}.y", y, [1])
    if not call.flag("emit_y"):
        y = call.op(Slice(0, 0, 0), y)
    return [wire_transpose(model, f"{name}.{label}", one, (1, 0, 2)) for label, one in (("batch", y), ("last", last))]
