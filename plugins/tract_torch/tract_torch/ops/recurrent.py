"""LSTM, GRU and plain recurrent networks, of several layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.activation import Activation
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.concat import TypedConcat
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.recurrent_wiring import (
    Direction,
    RecurrentInputs,
    RecurrentOptions,
    wire_gru,
    wire_lstm,
    wire_rnn,
)
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_GATES: Final[dict[str, tuple[int, ...]]] = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "rnn": (0,)}
"""Where the gates in the order of the core stand among those of PyTorch."""


@aten(ROWS, "aten.lstm.input", "tract_torch.lstm")
def lstm(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """An LSTM of several layers: all outputs, the last ones, and the last cells"""
    return _Network(call, wire, "lstm").wired(call.inputs("hx"))


@aten(ROWS, "aten.gru.input", "tract_torch.gru")
def gru(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """A GRU of several layers: all outputs, and the last ones"""
    return _Network(call, wire, "gru").wired([call.input("hx")])


@aten(ROWS, "aten.rnn_tanh.input", "tract_torch.rnn_tanh", "aten.rnn_relu.input", "tract_torch.rnn_relu")
def rnn(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """A plain recurrent network of several layers: all outputs, and the last ones"""
    activation = (Activation("relu"),) if "relu" in call.name else ()
    return _Network(call, wire, "rnn", activation).wired([call.input("hx")])


@frozen
class _Weights:
    """Those of one layer: per direction, the tensors as PyTorch has them."""

    w: list[OutletId]
    r: list[OutletId]
    biases: list[tuple[OutletId, OutletId]]
    projections: list[OutletId]


class _Network:
    """A network of several layers, each of which may have two directions."""

    def __init__(self, call: Call, wire: NodeWiring, kind: str, activation: tuple[Activation, ...] = ()) -> None:
        if call.flag("train") and call.number("dropout"):
            raise Unsupported("dropout between recurrent layers", hint="call eval() on the module")
        self.wire = wire
        self.kind = kind
        self.batch_first = call.flag("batch_first")
        self.x = call.input("input")
        self.layers = call.integer("num_layers")
        self.directions = 2 if call.flag("bidirectional") else 1
        self.has_biases = call.flag("has_biases")
        self.params = call.inputs("params")
        direction = Direction.BIDIRECTIONAL if self.directions == 2 else Direction.FORWARD
        self.options = RecurrentOptions(direction, activation * self.directions)

    def wired(self, initial: Sequence[OutletId]) -> list[OutletId]:
        """All outputs, [T, B, D*H] or with the batch in front, and the last states, [layers*D, B, H]."""
        wire = self.wire
        x = wire.transpose(self.x, (1, 0, 2)) if self.batch_first else self.x
        ends: list[list[OutletId]] = []
        for layer in range(self.layers):
            y, *last = self._layer(layer, x, initial)
            steps, _, batch, hidden = wire.shape(y)
            x = wire.reshape(wire.transpose(y, (0, 2, 1, 3)), (steps, batch, hidden * self.directions))
            ends.append(last)
        x = wire.transpose(x, (1, 0, 2)) if self.batch_first else x
        return [x, *(self._joined(list(parts)) for parts in zip(*ends, strict=True))]

    def _layer(self, layer: int, x: OutletId, initial: Sequence[OutletId]) -> Sequence[OutletId]:
        held = self._weights(layer)
        states = [self._state(layer, one) for one in initial]
        bias = None
        if held.biases:
            bias = self._stacked([self._joined([self._gates(one) for one in pair]) for pair in held.biases])
        inputs = RecurrentInputs(
            x=x,
            w=self._stacked([self._gates(one) for one in held.w]),
            r=self._stacked([self._gates(one) for one in held.r]),
            bias=bias,
            initial_h=states[0],
            initial_c=states[1] if len(states) > 1 else None,
            projection=self._stacked(held.projections) if held.projections else None,
        )
        if self.kind == "lstm":
            return self.wire.through(wire_lstm, self.options, inputs)
        if self.kind == "gru":
            return self.wire.through(wire_gru, self.options, inputs, linear_before_reset=True)
        return self.wire.through(wire_rnn, self.options, inputs)

    def _weights(self, layer: int) -> _Weights:
        each = len(self.params) // (self.layers * self.directions)
        parts = [self.params[(layer * self.directions + way) * each :][:each] for way in range(self.directions)]
        biases = [(part[2], part[3]) for part in parts] if self.has_biases else []
        projected = each > (4 if self.has_biases else 2)
        return _Weights(
            [part[0] for part in parts], [part[1] for part in parts], biases, [part[-1] for part in parts] * projected
        )

    def _gates(self, x: OutletId) -> OutletId:
        """A tensor whose first axis holds the gates, in the order of the core."""
        order = _GATES[self.kind]
        if len(order) == 1:
            return x
        size = self.wire.shape(x)[0] // len(order)
        return self._joined([self.wire.op(Slice(0, size * gate, size * (gate + 1)), x) for gate in order])

    def _state(self, layer: int, x: OutletId) -> OutletId | None:
        """The part of an initial state that belongs to a layer; None for zeros, as those are there without."""
        if self._is_zero(x):
            return None
        count = self.directions
        return self.wire.op(Slice(0, layer * count, (layer + 1) * count), x) if self.layers > 1 else x

    def _is_zero(self, x: OutletId) -> bool:
        node = self.wire.model.producer(x)
        value = self.wire.constant(node.inputs[0] if isinstance(node.op, MultiBroadcastTo) else x)
        return value is not None and not value.any()

    def _stacked(self, parts: Sequence[OutletId]) -> OutletId:
        """Tensors of the directions along a new first axis."""
        return self._joined([self.wire.unsqueeze(part, [0]) for part in parts])

    def _joined(self, parts: Sequence[OutletId]) -> OutletId:
        return parts[0] if len(parts) == 1 else self.wire.op(TypedConcat(0), *parts)
