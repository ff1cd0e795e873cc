"""LSTMs on floats, with all that TFLite's can have: peepholes, layer norms, a projection, ends of states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_core.ops.recurrent import LstmEpilogue
from tract_core.ops.wired import Wired
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.dynamic import RowScales, dequantised, product, weights_of
from tract_tensorflow.tflite.kept import nothing_yet, over_time
from tract_tensorflow.tflite.wiring import Wiring

_PLACES: Final = {"i": 0, "f": 1, "g": 2, "o": 3}
"""Input, forget, cell and output gate in the order of the file. Here, they are in that of `LstmEpilogue`."""

_PEEPHOLES: Final = {"i": 0, "f": 1, "o": 2}


@frozen
class LstmSlots:
    """Which inputs belong to one network. ``first``: the weights of its input gate, behind which the others lie.

    ``norm``: the first weights of a layer norm; ``more``: the first weights of more input.
    """

    first: int
    norm: int | None = None
    more: int | None = None


@frozen
class _Lstm:
    """One network. ``gates``: those that it has; without an input gate, that is what the forget gate leaves."""

    wire: Wiring
    slots: LstmSlots
    gates: tuple[str, ...]
    held: dict[str, Wired]
    scales: dict[str, RowScales | None]
    size: int

    __eq__ = object.__eq__  # it is itself alone
    __hash__ = object.__hash__

    @property
    def is_plain(self) -> bool:
        """Whether it is what a core operator computes."""
        node = self.wire.node
        usual = len(self.gates) == 4 and node.activation == "TANH" and not node.number("cell_clip", 0.0)
        return usual and not any(name[:5] in ("peep.", "norm.") for name in self.held)


def lstm(
    wire: Wiring, slots: LstmSlots, x: Wired, more: Wired | None, *, axis: int | None, is_backward: bool = False
) -> Wired:
    """``x`` [steps, items, inputs], with its axis of steps, or [items, inputs]. Raises ModelError."""
    if x.rank != (2 if axis is None else 3):
        raise CorruptModel(f"a recurrent network is given {x.fact}")
    net = _read(wire, slots)
    given = _products(net, x, slots.first)
    if more is not None and slots.more is not None:
        given = given + _products(net, more, slots.more)
    if not any(name.startswith("norm.") for name in net.held):
        given = given + _row(wire, [slots.first + 11 + _PLACES[gate] for gate in net.gates])
    batch = x.shape[1 if axis == 0 else 0]
    states = [nothing_yet(wire, batch, net.held["recurrent"].shape[1]), nothing_yet(wire, batch, net.size)]

    def step(seen: Sequence[Wired], held: Mapping[str, Wired], before: Sequence[Wired]) -> _Step:
        gates = seen[0] + product(before[0], held["recurrent"], net.scales["recurrent"])
        h, c = _whole(net, gates, before[1]) if net.is_plain else _by_gates(net, held, gates, before[1])
        h = _projected(net, held, h)
        return [h], [h, c]

    return over_time(wire, [given], net.held, states, step, axis=axis, is_backward=is_backward)[0]


_Step = tuple[Sequence[Wired], Sequence[Wired]]


def _read(wire: Wiring, slots: LstmSlots) -> _Lstm:
    first = slots.first
    gates = tuple("iofg" if wire.optional_input(first) is not None else "ofg")
    weights, scales = _weights(wire, [first + 4 + _PLACES[gate] for gate in gates])
    held, all_scales = {"recurrent": weights}, {"recurrent": scales}
    for gate, place in _PEEPHOLES.items():
        if gate in gates and wire.optional_input(first + 8 + place) is not None:
            held[f"peep.{gate}"] = dequantised(wire, first + 8 + place)
    for gate in gates:
        if slots.norm is not None and wire.optional_input(slots.norm + _PLACES[gate]) is not None:
            held[f"norm.{gate}"] = wire.tensor(slots.norm + _PLACES[gate])
            held[f"bias.{gate}"] = wire.tensor(first + 11 + _PLACES[gate])
    if wire.optional_input(first + 15) is not None:
        held["projection"], all_scales["projection"] = _weights(wire, [first + 15])
        bias = wire.optional_tensor(first + 16)
        held |= {"projected": bias} if bias is not None else {}
    rows = weights.shape[0]
    if not isinstance(rows, int):
        raise CorruptModel(f"the weights of a recurrent network are {weights.fact}")
    return _Lstm(wire, slots, gates, held, all_scales, rows // len(gates))


def _weights(wire: Wiring, slots: list[int]) -> tuple[Wired, RowScales | None]:
    return weights_of(wire, slots, is_asymmetric=wire.node.flag("asymmetric_quantize_inputs"))


def _products(net: _Lstm, x: Wired, first: int) -> Wired:
    return product(x, *_weights(net.wire, [first + _PLACES[gate] for gate in net.gates]))


def _row(wire: Wiring, slots: Sequence[int]) -> Wired:
    """Vectors one behind the other."""
    parts = [wire.tensor(slot) for slot in slots]
    return parts[0].concat(parts[1:], 0)


def _whole(net: _Lstm, gates: Wired, c: Wired) -> tuple[Wired, Wired]:
    h, after = gates.wire.ops(LstmEpilogue(net.size), gates.outlet, c.outlet)
    return gates.with_outlet(h), gates.with_outlet(after)


def _by_gates(net: _Lstm, held: Mapping[str, Wired], gates: Wired, c: Wired) -> tuple[Wired, Wired]:
    """The state h before it is projected, and the state c."""
    node = net.wire.node

    def gate(name: str, seen: Wired) -> Wired:
        place = net.gates.index(name)
        x = gates.part(1, net.size * place, net.size * (place + 1))
        if f"peep.{name}" in held:
            x = x + seen * held[f"peep.{name}"]
        return _normed(x) * held[f"norm.{name}"] + held[f"bias.{name}"] if f"norm.{name}" in held else x

    f = gate("f", c).sigmoid()
    i = gate("i", c).sigmoid() if "i" in net.gates else 1.0 - f
    after = _clipped(f * c + i * activated(gate("g", c), node), node.number("cell_clip", 0.0))
    return gate("o", after).sigmoid() * activated(after, node), after


def _normed(x: Wired) -> Wired:
    """Less its mean, in units of its standard deviation."""
    centred = x - x.mean([x.rank - 1])
    return centred * (centred.mean_of_squares([x.rank - 1]) + 1e-8).rsqrt()


def _clipped(x: Wired, end: float) -> Wired:
    return x.maximum(-end).minimum(end) if end > 0 else x


def _projected(net: _Lstm, held: Mapping[str, Wired], h: Wired) -> Wired:
    if "projection" not in held:
        return h
    found = product(h, held["projection"], net.scales["projection"])
    found = found + held["projected"] if "projected" in held else found
    return _clipped(found, net.wire.node.number("proj_clip", 0.0))
