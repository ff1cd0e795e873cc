"""Recurrent networks on floats, whose states go on from run to run; weights may be in bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.dynamic import product, weights_of
from tract_tensorflow.tflite.kept import nothing_yet, over_time
from tract_tensorflow.tflite.lstm import LstmSlots, lstm
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@frozen
class RnnSlots:
    """Which inputs the weights of the input, recurrent ones, the bias and more weights, of more input, are."""

    weights: int
    recurrent: int
    bias: int
    more: int | None = None


@tflite_op(ROWS, "RNN")
def rnn(node: TfliteNode, wire: Wiring) -> Wired:
    """One step of a plain network"""
    return _rnn(wire, RnnSlots(1, 2, 3), wire.tensor(0), None, None)


@tflite_op(ROWS, "UNIDIRECTIONAL_SEQUENCE_RNN")
def sequence_rnn(node: TfliteNode, wire: Wiring) -> Wired:
    """A plain network, step by step"""
    return _rnn(wire, RnnSlots(1, 2, 3), wire.tensor(0), None, _time(node))


@tflite_op(ROWS, "BIDIRECTIONAL_SEQUENCE_RNN")
def two_rnns(node: TfliteNode, wire: Wiring) -> Sequence[Wired]:
    """Two plain networks, the second from the last step to the first"""
    both = _TwoWays.of(wire, 9, 10)
    more = (10, 11) if both.more is not None else (None, None)
    axis = _time(node)
    forward = _rnn(wire, RnnSlots(1, 2, 3, more[0]), both.forward, both.more, axis)
    backward = _rnn(wire, RnnSlots(5, 6, 7, more[1]), both.backward, both.more, axis, is_backward=True)
    return _merged(node, forward, backward)


@tflite_op(ROWS, "LSTM")
def lstm_step(node: TfliteNode, wire: Wiring) -> Wired | Sequence[Wired | None]:
    """One step of an LSTM"""
    if node.choice("kernel_type", ("FULL", "BASIC"), "FULL") == "BASIC":
        return _basic_lstm(wire)
    found = lstm(wire, LstmSlots(1, norm=20), wire.tensor(0), None, axis=None)
    return [*[None] * (len(node.outputs) - 1), found]  # in front of it are places for what is computed on the way


@tflite_op(ROWS, "UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(node: TfliteNode, wire: Wiring) -> Wired:
    """An LSTM, step by step"""
    return lstm(wire, LstmSlots(1, norm=20), wire.tensor(0), None, axis=_time(node))


@tflite_op(ROWS, "BIDIRECTIONAL_SEQUENCE_LSTM")
def two_lstms(node: TfliteNode, wire: Wiring) -> Sequence[Wired]:
    """Two LSTMs, the second from the last step to the first"""
    both = _TwoWays.of(wire, 39, 41)
    more = (40, 44) if both.more is not None else (None, None)
    axis = _time(node, default=True)
    forward = lstm(wire, LstmSlots(1, more=more[0]), both.forward, both.more, axis=axis)
    backward = lstm(wire, LstmSlots(18, more=more[1]), both.backward, both.more, axis=axis, is_backward=True)
    return _merged(node, forward, backward)


@frozen
class _TwoWays:
    """What the two networks are given, and what both are given besides."""

    forward: Wired
    backward: Wired
    more: Wired | None

    @staticmethod
    def of(wire: Wiring, slot: int, weights: int) -> _TwoWays:
        """``slot``: of the second input. Without ``weights`` of its own, it is that of the second network."""
        x, more = wire.tensor(0), wire.optional_tensor(slot)
        if more is not None and wire.optional_input(weights) is None:
            return _TwoWays(x, more, None)
        return _TwoWays(x, x, more)


def _merged(node: TfliteNode, forward: Wired, backward: Wired) -> Sequence[Wired]:
    if node.flag("merge_outputs"):
        return [forward.concat([backward], forward.rank - 1)]
    return [forward, backward]


def _time(node: TfliteNode, *, default: bool = False) -> int:
    """The axis of steps."""
    return 0 if node.flag("time_major", default) else 1


def _rnn(
    wire: Wiring, slots: RnnSlots, x: Wired, more: Wired | None, axis: int | None, *, is_backward: bool = False
) -> Wired:
    """A plain network: what is fused of x times weights, the state times weights, and the bias."""
    is_asymmetric = wire.node.flag("asymmetric_quantize_inputs")
    gates = product(x, *weights_of(wire, [slots.weights], is_asymmetric=is_asymmetric)) + wire.tensor(slots.bias)
    if more is not None and slots.more is not None:
        gates = gates + product(more, *weights_of(wire, [slots.more], is_asymmetric=is_asymmetric))
    weights, scales = weights_of(wire, [slots.recurrent], is_asymmetric=is_asymmetric)

    def step(given: Sequence[Wired], held: Mapping[str, Wired], states: Sequence[Wired]) -> _Step:
        after = activated(given[0] + product(states[0], held["weights"], scales), wire.node)
        return [after], [after]

    start = nothing_yet(wire, _batch(x, axis), weights.shape[1])
    found = over_time(wire, [gates], {"weights": weights}, [start], step, axis=axis, is_backward=is_backward)
    return found[0]


_Step = tuple[Sequence[Wired], Sequence[Wired]]


def _batch(x: Wired, axis: int | None) -> Dim:
    """How many items there are. Raises CorruptModel for data of another rank."""
    if x.rank != (2 if axis is None else 3):
        raise CorruptModel(f"a recurrent network is given {x.fact}")
    return x.shape[1 if axis == 0 else 0]


def _basic_lstm(wire: Wiring) -> Sequence[Wired | None]:
    """One step that is given its states: input and state side by side, times weights of all gates."""
    x, h, weights, bias, c = (wire.tensor(slot) for slot in range(5))
    joined = x.concat([h], x.rank - 1)
    gates = product(joined, weights, None) + bias
    size = weights.shape[0] // 4
    i, g, f, o = (gates.part(1, size * place, size * (place + 1)) for place in range(4))
    after = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return [o.sigmoid() * after.tanh(), after, joined, gates]
