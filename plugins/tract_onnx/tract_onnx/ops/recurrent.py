"""LSTM, GRU and plain recurrent networks."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.activation import parse_activations
from tract_core.ops.recurrent_wiring import (
    Direction,
    RecurrentInputs,
    RecurrentOptions,
    wire_gru,
    wire_lstm,
    wire_rnn,
)
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


def options_of(node: OnnxNode) -> RecurrentOptions:
    """The attributes of a recurrent network."""
    return RecurrentOptions(
        direction=node.member("direction", Direction, Direction.FORWARD),
        activations=parse_activations(
            node.texts("activations", ()), node.numbers("activation_alpha", ()), node.numbers("activation_beta", ())
        ),
        clip=node.number("clip") if node.has("clip") else None,
        batch_first=node.flag("layout"),
    )


def inputs_of(node: OnnxNode, wire: Wiring) -> RecurrentInputs:
    """The inputs of a recurrent network."""
    x = wire.input(0)
    steps = wire.shape(x)[1 if node.flag("layout") else 0] if wire.rank(x) == 3 else None
    lengths = wire.optional_input(4)
    known = None if lengths is None else wire.dims(lengths)
    return RecurrentInputs(
        x=x,
        w=wire.input(1),
        r=wire.input(2),
        bias=wire.optional_input(3),
        lengths=None if known is not None and all(length == steps for length in known) else lengths,
        initial_h=wire.optional_input(5),
        initial_c=wire.optional_input(6),
        peepholes=wire.optional_input(7),
    )


@onnx_op(ROWS, "LSTM")
def lstm(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """All outputs, the last one, and the last state of the cells"""
    options, inputs = options_of(node), inputs_of(node, wire)
    return wire.through(wire_lstm, options, inputs, input_forget=node.flag("input_forget"))


@onnx_op(ROWS, "GRU")
def gru(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """All outputs, and the last one"""
    options, inputs = options_of(node), inputs_of(node, wire)
    return wire.through(wire_gru, options, inputs, linear_before_reset=node.flag("linear_before_reset"))


@onnx_op(ROWS, "RNN")
def rnn(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """All outputs, and the last one"""
    return wire.through(wire_rnn, options_of(node), inputs_of(node, wire))
