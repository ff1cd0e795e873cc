"""LSTMs of integers: data and states h in i8, the cell and the gates in i16.

Source: the kernels of LiteRT on 8 bits with cells of 16.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.fixed_16 import sigmoid_table, tanh_table
from tract_tensorflow.tflite.kept import over_time
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import fixed_product, one_over_root, scaled
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_GATES: Final = {"i": 0, "f": 1, "g": 2, "o": 3}
"""Input, forget, cell and output gate in the order of the file."""

_PEEPHOLES: Final = {"i": 9, "f": 10, "o": 11}
_STATE, _CELL, _PROJECTION, _NORM, _HIDDEN = 18, 19, 16, 20, 4
_GATE_SCALE: Final = 2.0**-12


@quantized_op(ROWS, "UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(node: TfliteNode, wire: Wiring) -> Wired:
    """Step by step; weights in i8, biases in i32"""
    return _lstm(node, wire, 0 if node.flag("time_major") else 1)


@quantized_op(ROWS, "LSTM")
def lstm_step(node: TfliteNode, wire: Wiring) -> list[Wired | None]:
    """One step; weights in i8, biases in i32"""
    if node.choice("kernel_type", ("FULL", "BASIC"), "FULL") == "BASIC":
        raise Unsupported("a basic LSTM of integers")
    return [*[None] * (len(node.outputs) - 1), _lstm(node, wire, None)]


@frozen
class _Scales:
    """Of the data, the states, and what is between the gates and a projection, with its zero point.

    ``bits``: before the cell's point; ``gates``: the scale of each, before a layer norm; ``node``: the operator.
    """

    node: TfliteNode
    data: float
    state: float
    hidden: float
    zero: int
    bits: int
    gates: Mapping[str, float]

    __eq__ = object.__eq__  # a node is itself alone
    __hash__ = object.__hash__


def _lstm(node: TfliteNode, wire: Wiring, axis: int | None) -> Wired:
    x = wire.tensor(0)
    if x.dtype is not DatumType.I8 or x.rank != (2 if axis is None else 3):
        raise Unsupported(f"an LSTM of integers of {x.fact}, wanted i8")
    if node.activation != "TANH":
        raise Unsupported(f"{node.activation} in an LSTM of integers")
    gates = [gate for gate in _GATES if gate != "i" or wire.optional_input(1) is not None]
    scales = _scales(node, wire, gates)
    given = [_product(wire, scales, gate, x) for gate in gates]
    held = _held(node, wire, gates, scales)
    batch = x.shape[1 if axis == 0 else 0]
    cells = wire.tensor(2).shape[0]
    outputs = wire.tensor(6).shape[1]
    start = np.array(node.quantization(_STATE).zero, np.int8).reshape(1, 1), np.zeros((1, 1), np.int16)
    states = [
        Wired(wire, wire.broadcast(wire.const(one), (batch, size)))
        for one, size in zip(start, (outputs, cells), strict=True)
    ]

    def step(seen: Sequence[Wired], held: Mapping[str, Wired], before: Sequence[Wired]) -> _Step:
        found = {gate: _recurrent(scales, held, gate, one, before[0]) for gate, one in zip(gates, seen, strict=True)}
        h, c = _step(scales, held, found, before[1].cast(DatumType.I32))
        h, c = h.cast(DatumType.I8), c.cast(DatumType.I16)
        return [h], [h, c]

    return over_time(wire, given, held, states, step, axis=axis)[0]


_Step = tuple[Sequence[Wired], Sequence[Wired]]


def _scales(node: TfliteNode, wire: Wiring, gates: Sequence[str]) -> _Scales:
    cell = node.quantization(_CELL).scale
    exponent = math.log2(cell) if cell > 0 else 0.5
    if exponent != round(exponent) or not -15 <= exponent <= -9:
        raise Unsupported(
            f"the cell of an LSTM of integers has the scale {cell}, wanted a power of 2 from 2**-15 to 2**-9"
        )
    hidden = node.intermediates[_HIDDEN].quantization if len(node.intermediates) == 5 else None
    if hidden is None:
        raise Unsupported(
            f"an LSTM of integers with {len(node.intermediates)} tensors on the way, wanted 5 with scales"
        )
    data, state = node.quantization(0).scale, node.quantization(_STATE).scale
    of_gates = dict.fromkeys(gates, _GATE_SCALE)
    for gate in gates:
        between = node.intermediates[_GATES[gate]].quantization
        if wire.optional_input(_NORM + _GATES[gate]) is not None:
            if between is None:
                raise CorruptModel(f"a layer norm of an LSTM of integers is given gate {gate!r}, which has no scale")
            of_gates[gate] = between.scale
    return _Scales(node, data, state, hidden.scale, hidden.zero, 15 + round(exponent), of_gates)


def _held(node: TfliteNode, wire: Wiring, gates: Sequence[str], scales: _Scales) -> dict[str, Wired]:
    """What every step sees: weights, and what stands for their zero points; peepholes; tables."""
    held = {"sigmoid": wire.tensor(0).operand(sigmoid_table()), "tanh": wire.tensor(0).operand(tanh_table(3))}
    held["tanh of cell"] = wire.tensor(0).operand(tanh_table(scales.bits))
    for gate in gates:
        weights = wire.tensor(5 + _GATES[gate])
        held[f"weights {gate}"], held[f"start {gate}"] = weights, _start(weights, -node.quantization(_STATE).zero, None)
        slot = _PEEPHOLES.get(gate)
        if slot is not None and wire.optional_input(slot) is not None:
            held[f"peephole {gate}"] = _peephole(wire, slot)
        if wire.optional_input(_NORM + _GATES[gate]) is not None:
            held[f"norm {gate}"], held[f"bias {gate}"] = (
                wire.tensor(_NORM + _GATES[gate]),
                wire.tensor(12 + _GATES[gate]),
            )
    if wire.optional_input(_PROJECTION) is not None:
        weights = wire.tensor(_PROJECTION)
        held["projection"] = weights
        held["projected"] = _start(weights, -scales.zero, wire.optional_tensor(_PROJECTION + 1))
    return held


def _peephole(wire: Wiring, slot: int) -> Wired:
    """The weights [cells]; or, beside a projection, [items, cells], as the kernel has them.

    It takes as many weights as there are outputs, item behind item, as if each had as many cells: where it has more,
    they meet those of another item, and the last ones meet none. Data whose first axis are items come one by one.
    """
    weights, x = wire.tensor(slot), wire.tensor(0)
    cells, outputs = weights.shape[0], wire.tensor(6).shape[1]
    batch = x.shape[1] if wire.node.flag("time_major") else x.shape[0] if x.rank == 2 else 1
    if cells == outputs:
        return weights
    if not (isinstance(cells, int) and isinstance(outputs, int) and isinstance(batch, int)) or not 0 < outputs < cells:
        raise Unsupported(f"an LSTM of integers of {batch} items has {cells} cells, peepholes and {outputs} outputs")
    known = wire.known(weights.outlet, "the weights of a peephole")
    flat = np.zeros(batch * cells, known.dtype)
    flat[: batch * outputs] = np.tile(known[:outputs], batch)
    return weights.operand(flat.reshape(batch, cells))


def _start(weights: Wired, offset: int, bias: Wired | None) -> Wired:
    """The bias, and what the zero point of the data adds, [rows]."""
    total = weights.cast(DatumType.I32).sum([1]).squeeze([1]) * offset
    return total if bias is None else total + bias


def _times(x: Wired, weights: Wired) -> Wired:
    before = "xyz"[: x.rank - 1]
    return x.op(EinSum(AxesMapping.parse(f"{before}i,gi->{before}g"), DatumType.I32), weights)


def _short(x: Wired) -> Wired:
    return x.maximum(-(1 << 15)).minimum((1 << 15) - 1)


def _byte(x: Wired) -> Wired:
    return x.maximum(-128).minimum(127)


def _factor(value: float) -> Array:
    return np.asarray(value, np.float64)


def _product(wire: Wiring, scales: _Scales, gate: str, x: Wired) -> Wired:
    """What the data add to a gate, i32 within 16 bits; without the bias, where a layer norm adds it."""
    node, slot, bias = wire.node, 1 + _GATES[gate], 12 + _GATES[gate]
    weights = wire.tensor(slot)
    if weights.dtype is not DatumType.I8 or weights.rank != 2:
        raise CorruptModel(f"the weights of an LSTM of integers are {weights.fact}, wanted two axes of i8")
    has_norm = wire.optional_input(_NORM + _GATES[gate]) is not None
    total = _times(x, weights) + _start(weights, -node.quantization(0).zero, None if has_norm else wire.tensor(bias))
    return _short(scaled(total, _factor(scales.data * node.quantization(slot).scale / scales.gates[gate])))


def _recurrent(scales: _Scales, held: Mapping[str, Wired], gate: str, given: Wired, h: Wired) -> Wired:
    total = _times(h, held[f"weights {gate}"]) + held[f"start {gate}"]
    factor = scales.state * scales.node.quantization(5 + _GATES[gate]).scale / scales.gates[gate]
    return _short(scaled(total, _factor(factor)) + given)


def _step(scales: _Scales, held: Mapping[str, Wired], gates: Mapping[str, Wired], c: Wired) -> tuple[Wired, Wired]:
    """The states h and c after a step, i32."""
    node = scales.node
    forget = _looked_up(held["sigmoid"], _peeped(scales, held, "f", gates, c))
    cell = _looked_up(held["tanh"], _normed(scales, held, "g", gates["g"]))
    entry = 32767 - forget if "i" not in gates else _looked_up(held["sigmoid"], _peeped(scales, held, "i", gates, c))
    kept = _divided(forget * c, 15)
    after = _short(kept + _divided(entry * cell, 15 + scales.bits))
    clip = node.number("cell_clip", 0.0)
    if clip > 0:
        end = min(int(clip / node.quantization(_CELL).scale), 32767)
        after = after.maximum(-end).minimum(end)
    output = _looked_up(held["sigmoid"], _peeped(scales, held, "o", gates, after))
    hidden = output * _looked_up(held["tanh of cell"], after)
    h = _byte(scaled(hidden, _factor(2.0**-30 / scales.hidden)) + scales.zero)
    return (_projected(scales, held, h) if "projection" in held else h), after


def _peeped(scales: _Scales, held: Mapping[str, Wired], gate: str, gates: Mapping[str, Wired], c: Wired) -> Wired:
    """A gate, and its view of the cell."""
    if f"peephole {gate}" not in held:
        return _normed(scales, held, gate, gates[gate])
    factor = 2.0 ** (scales.bits - 15) * scales.node.quantization(_PEEPHOLES[gate]).scale / scales.gates[gate]
    seen = c * held[f"peephole {gate}"].cast(DatumType.I32)
    return _normed(scales, held, gate, _short(scaled(seen, _factor(factor)) + gates[gate]))


def _normed(scales: _Scales, held: Mapping[str, Wired], gate: str, x: Wired) -> Wired:
    """Less its mean, in units of its deviation, which has 10 bits behind the point; then weights, and the bias."""
    if f"norm {gate}" not in held:
        return x
    count, scale = x.shape[1], scales.node.quantization(_NORM + _GATES[gate]).scale
    if not isinstance(count, int) or count < 1:
        raise CorruptModel(f"a layer norm of an LSTM of integers is given {x.fact}")
    x = x.cast(DatumType.I64)
    mean = (x.sum([1]) << 10) / count
    variance = ((x * x).sum([1]) * ((1 << 20) // count) - mean * mean) / (1 << 20)
    least = max(1, int(np.float32(10000) * np.float32(scale)))
    multiplier, shift = one_over_root((variance < 1).where(least, variance))
    centred = ((x << 10) - mean).cast(DatumType.I32)
    found = fixed_product(centred, multiplier.cast(DatumType.I32), (-shift).cast(DatumType.I32)).cast(DatumType.I64)
    found = found * held[f"norm {gate}"].cast(DatumType.I64) + held[f"bias {gate}"].cast(DatumType.I64)
    found = (found + (found > 0).where(512, found.like(-512))) / 1024
    return _short(scaled(found.cast(DatumType.I32), _factor(scale * 2.0**12)))


def _looked_up(table: Wired, x: Wired) -> Wired:
    return table.op(Gather(0), x + (1 << 15)).cast(DatumType.I32)


def _divided(x: Wired, exponent: int) -> Wired:
    """By a power of two: halves away from zero."""
    return scaled(x, _factor(2.0**-exponent))


def _projected(scales: _Scales, held: Mapping[str, Wired], h: Wired) -> Wired:
    node = scales.node
    total = _times(h.cast(DatumType.I8), held["projection"]) + held["projected"]
    factor = node.quantization(_PROJECTION).scale * scales.hidden / scales.state
    found = _byte(scaled(total, _factor(factor)) + node.quantization(_STATE).zero)
    clip = node.number("proj_clip", 0.0)
    if clip > 0:
        end = min(int(clip / scales.state), 127)
        found = found.maximum(-end).minimum(end)
    return found
