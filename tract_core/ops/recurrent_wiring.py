"""LSTM, GRU and plain recurrent networks as loops, with the tensors, layouts and options of ONNX.

What does not depend on the step before (the product of the input with its weights) is computed for all steps at once,
in front of the loop. Where a network has the usual activations, its gates are one epilogue operator, else core
operators.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final, Protocol

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.activation import SIGMOID, TANH, Activation, wire_activation
from tract_core.ops.axis import AddAxis, MoveAxis, RmAxis
from tract_core.ops.binary import Add, Lt, Max, Min, Mul, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.gather import Gather
from tract_core.ops.iff import Iff
from tract_core.ops.quantize import wire_dynamic_quantize
from tract_core.ops.range import Range
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.ops.scan import FullInput, FullOutput, InputMapping, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import require_shape, wire_binary, wire_broadcast, wire_cast, wire_one

Scales = tuple[OutletId, OutletId]
"""The scales of the weights of the input, and of those of the state."""


class Direction(Enum):
    """In which order the steps are taken. ``BIDIRECTIONAL`` is two networks side by side, forward first."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIRECTIONAL = "bidirectional"

    @property
    def backward(self) -> tuple[bool, ...]:
        """For each of the networks, whether it goes from the last step to the first."""
        return _BACKWARD[self]


_BACKWARD: Final = {
    Direction.FORWARD: (False,),
    Direction.REVERSE: (True,),
    Direction.BIDIRECTIONAL: (False, True),
}


@frozen
class RecurrentInputs:
    """The tensors of a recurrent network, for D directions, G gates, T steps, B items, I inputs and H hidden units.

    ``x`` [T, B, I], ``w`` [D, G*H, I], or ``None`` where ``x`` [T, B, G*H] is their product already, with the bias of
    ``w``; ``r`` [D, G*H, H], ``bias`` [D, 2*G*H] (that of ``w``, then that of ``r``),
    ``lengths`` [B] (integers from 0 to T: how many steps of each item count), ``initial_h`` and ``initial_c``
    [D, B, H], ``peepholes`` [D, 3*H].

    ``projection`` [D, P, H], of an LSTM: what its states h go through before they are given, and before they are
    multiplied with ``r`` [D, 4*H, P]; ``initial_h`` is then [D, B, P].
    """

    x: OutletId
    w: OutletId | None
    r: OutletId
    bias: OutletId | None = None
    lengths: OutletId | None = None
    initial_h: OutletId | None = None
    initial_c: OutletId | None = None
    peepholes: OutletId | None = None
    projection: OutletId | None = None


@frozen
class RecurrentOptions:
    """What recurrent networks have in common.

    ``activations``: those of the first direction, then those of the second; empty for the usual ones. ``clip``:
    bounds what goes into an activation. ``batch_first``: ``x`` is [B, T, I], initial states [B, D, H], outputs [B, T,
    D, H] and [B, D, H].

    The state is kept from turn to turn where that makes sense: going forward, from a constant initial state, with all
    steps of all items counting. ``reset_every_turn``: start from the initial state in every turn nevertheless.
    """

    direction: Direction = Direction.FORWARD
    activations: tuple[Activation, ...] = ()
    clip: float | None = None
    batch_first: bool = False
    reset_every_turn: bool = False


def wire_lstm(
    model: TypedModel,
    name: str,
    options: RecurrentOptions,
    inputs: RecurrentInputs,
    *,
    input_forget: bool = False,
    scales: Scales | None = None,
) -> tuple[OutletId, OutletId, OutletId]:
    """An LSTM, gates in the order input, output, forget, cell. ``input_forget``: the forget gate is 1 - the input gate.

    ``scales``: those of ``w`` and ``r`` [D, 4*H] or [D, 1], where these are quantised: integers (i32) less their zero
    points. Then x as a whole and, in every step, h as a whole are quantised by their own range, as u8, and what is
    multiplied are integers. What does not count, as other items are longer, counts as 0 in a range.

    Returns Y [T, D, B, H], and the last h and c [D, B, H]. Raises FactError when a tensor has another shape than
    wanted.
    """
    y, h, c = _wire(model, name, options, inputs, _Lstm(input_forget), scales=scales)
    return y, h, c


def wire_gru(
    model: TypedModel,
    name: str,
    options: RecurrentOptions,
    inputs: RecurrentInputs,
    *,
    linear_before_reset: bool = False,
) -> tuple[OutletId, OutletId]:
    """A GRU, gates in the order update, reset, hidden. ``linear_before_reset``: the reset gate multiplies the product.

    Returns Y [T, D, B, H] and the last h [D, B, H]. Raises FactError when a tensor has another shape than wanted.
    """
    y, h = _wire(model, name, options, inputs, _Gru(linear_before_reset))
    return y, h


def wire_rnn(
    model: TypedModel, name: str, options: RecurrentOptions, inputs: RecurrentInputs
) -> tuple[OutletId, OutletId]:
    """A plain recurrent network: h = f(W x + R h + biases).

    Returns Y [T, D, B, H] and the last h [D, B, H]. Raises FactError when a tensor has another shape than wanted.
    """
    y, h = _wire(model, name, options, inputs, _Rnn())
    return y, h


@frozen
class _Step:
    """The inside of the loop: ``x`` [B, G*H], the input's part of the gates; ``full``: tensors that stay the same.

    ``mask`` [B, 1]: which items still count.
    """

    body: TypedModel
    x: OutletId
    full: dict[str, OutletId]
    hidden: Dim
    activations: tuple[Activation, ...]
    clip: float | None
    mask: OutletId | None

    def one(self, name: str, op: TypedOp, *inputs: OutletId) -> OutletId:
        return wire_one(self.body, name, op, *inputs)

    def two(self, name: str, op: TypedOp, a: OutletId, b: OutletId) -> OutletId:
        return wire_binary(self.body, name, op, a, b)

    def recur(self, h: OutletId, weights: OutletId) -> OutletId:
        """The product of the state with ``weights`` [..., H]."""
        scale = self.full.get("scale")
        if scale is not None and self.mask is not None:
            h = _zero_unless(self.body, "h.counts", self.mask, h)
        return _product(self.body, "recur", "bh,gh->bg", h, weights, scale=scale)

    def gate(self, label: str, gates: OutletId, index: int) -> OutletId:
        """Gate number ``index`` of tensors whose last axis holds several."""
        axis = self.body.outlet_fact(gates).rank - 1
        return self.one(label, Slice(axis, self.hidden * index, self.hidden * (index + 1)), gates)

    def activate(self, label: str, which: int, x: OutletId) -> OutletId:
        """Activation number ``which`` of ``x``, clipped."""
        if self.clip is not None:
            kind = self.body.outlet_fact(x).datum_type.numpy
            low, high = (self.body.add_const(f"{label}.clip", np.array(v, kind)) for v in (-self.clip, self.clip))
            x = self.two(f"{label}.clipped", Min(), self.two(f"{label}.raised", Max(), x, low), high)
        return wire_activation(self.body, label, self.activations[which], x)

    def one_less(self, label: str, x: OutletId) -> OutletId:
        one = self.body.add_const(f"{label}.one", np.array(1, self.body.outlet_fact(x).datum_type.numpy))
        return self.two(label, Sub(), one, x)


class _Cell(Protocol):
    """One kind of recurrent network. ``states``: h, or h and c. ``late_bias``: the loop adds the bias of ``r``."""

    name: str
    gates: int
    states: int
    usual: tuple[Activation, ...]

    @property
    def late_bias(self) -> bool: ...

    def weights(self, model: TypedModel, name: str, r: OutletId, hidden: Dim) -> dict[str, OutletId]:
        """The parts of ``r`` that the loop reads."""
        ...

    def step(self, s: _Step, states: Sequence[OutletId]) -> list[OutletId]:
        """The states after one step."""
        ...


class _WholeWeights:
    """For those that multiply the state with all of ``r`` at once."""

    def weights(self, model: TypedModel, name: str, r: OutletId, hidden: Dim) -> dict[str, OutletId]:
        return {"r": r}


class _Lstm(_WholeWeights):
    name: str = "LSTM"
    gates: int = 4
    states: int = 2
    usual: tuple[Activation, ...] = (SIGMOID, TANH, TANH)
    late_bias: bool = False

    def __init__(self, input_forget: bool) -> None:
        self.input_forget = input_forget

    def step(self, s: _Step, states: Sequence[OutletId]) -> list[OutletId]:
        h, c = states
        preact = s.two("preact", Add(), s.x, s.recur(h, s.full["r"]))
        if s.activations == self.usual and s.clip is None and "p" not in s.full and not self.input_forget:
            h, c = s.body.wire_node("lstm", LstmEpilogue(s.hidden), [preact, c])
            return [self._projected(s, h), c]
        gate_i = s.activate("i", 0, self._peek(s, "i", 0, preact, c))
        gate_f = s.one_less("f", gate_i) if self.input_forget else s.activate("f", 0, self._peek(s, "f", 2, preact, c))
        candidate = s.activate("g", 1, s.gate("g.pre", preact, 3))
        kept, new = s.two("kept", Mul(), gate_f, c), s.two("new", Mul(), gate_i, candidate)
        c = s.two("c", Add(), kept, new)
        gate_o = s.activate("o", 0, self._peek(s, "o", 1, preact, c))
        seen = wire_activation(s.body, "c.out", s.activations[2], c)
        return [self._projected(s, s.two("h", Mul(), gate_o, seen)), c]

    def _projected(self, s: _Step, h: OutletId) -> OutletId:
        if "projection" not in s.full:
            return h
        return _product(s.body, "projected", "bh,ph->bp", h, s.full["projection"], scale=None)

    def _peek(self, s: _Step, label: str, index: int, preact: OutletId, c: OutletId) -> OutletId:
        """A gate before its activation, with its view of the cell where there are peepholes."""
        gate = s.gate(f"{label}.pre", preact, index)
        if "p" not in s.full:
            return gate
        seen = s.two(f"{label}.seen", Mul(), c, s.gate(f"{label}.peephole", s.full["p"], index))
        return s.two(f"{label}.sum", Add(), gate, seen)


class _Gru:
    name: str = "GRU"
    gates: int = 3
    states: int = 1
    usual: tuple[Activation, ...] = (SIGMOID, TANH)

    def __init__(self, linear_before_reset: bool) -> None:
        self.late_bias = linear_before_reset

    def weights(self, model: TypedModel, name: str, r: OutletId, hidden: Dim) -> dict[str, OutletId]:
        if self.late_bias:
            return {"r": r}
        first = wire_one(model, f"{name}.r_zr", Slice(0, 0, hidden * 2), r)
        return {"r": first, "r_g": wire_one(model, f"{name}.r_g", Slice(0, hidden * 2, hidden * 3), r)}

    def step(self, s: _Step, states: Sequence[OutletId]) -> list[OutletId]:
        (h,) = states
        return [self._linear_first(s, h) if self.late_bias else self._reset_first(s, h)]

    def _reset_first(self, s: _Step, h: OutletId) -> OutletId:
        h_part = s.recur(h, s.full["r"])
        z, r = (s.activate(label, 0, self._gate(s, label, index, h_part)) for index, label in enumerate("zr"))
        late = s.recur(s.two("h.reset", Mul(), r, h), s.full["r_g"])
        candidate = s.activate("g", 1, s.two("g.pre", Add(), s.gate("g.x", s.x, 2), late))
        return self._mix(s, h, z, candidate)

    def _linear_first(self, s: _Step, h: OutletId) -> OutletId:
        rh = s.recur(h, s.full["r"])
        if "b" in s.full:
            rh = s.two("rh", Add(), rh, s.full["b"])
        if s.activations == self.usual and s.clip is None:
            return s.one("gru", GruEpilogue(s.hidden), s.x, rh, h)
        z, r = (s.activate(label, 0, self._gate(s, label, index, rh)) for index, label in enumerate("zr"))
        late = s.two("g.reset", Mul(), r, s.gate("g.h", rh, 2))
        candidate = s.activate("g", 1, s.two("g.pre", Add(), s.gate("g.x", s.x, 2), late))
        return self._mix(s, h, z, candidate)

    def _gate(self, s: _Step, label: str, index: int, h_part: OutletId) -> OutletId:
        """A gate before its activation."""
        own, seen = s.gate(f"{label}.x", s.x, index), s.gate(f"{label}.h", h_part, index)
        return s.two(f"{label}.pre", Add(), own, seen)

    def _mix(self, s: _Step, h: OutletId, z: OutletId, candidate: OutletId) -> OutletId:
        new = s.two("new", Mul(), s.one_less("z.less", z), candidate)
        return s.two("h.next", Add(), new, s.two("kept", Mul(), z, h))


class _Rnn(_WholeWeights):
    name: str = "RNN"
    gates: int = 1
    states: int = 1
    usual: tuple[Activation, ...] = (TANH,)
    late_bias: bool = False

    def step(self, s: _Step, states: Sequence[OutletId]) -> list[OutletId]:
        (h,) = states
        return [s.activate("h", 0, s.two("preact", Add(), s.x, s.recur(h, s.full["r"])))]


def _product(
    model: TypedModel, name: str, axes: str, x: OutletId, weights: OutletId, *, scale: OutletId | None
) -> OutletId:
    """``x`` times weights; where these are integers with a scale, ``x`` is quantised first."""
    mapping = AxesMapping.parse(axes)
    if scale is None:
        return wire_one(model, name, EinSum(mapping, accumulator(model.outlet_fact(x).datum_type)), x, weights)
    q, x_scale, zero = wire_dynamic_quantize(model, f"{name}.quantized", x)
    q, zero = (wire_cast(model, f"{name}.{label}", one, DatumType.I32) for label, one in (("q", q), ("zero", zero)))
    q = wire_binary(model, f"{name}.centred", Sub(), q, zero)
    total = wire_one(model, f"{name}.total", EinSum(mapping, DatumType.I32), q, weights)
    total = wire_cast(model, f"{name}.real", total, DatumType.F32)
    return wire_binary(model, name, Mul(), total, wire_binary(model, f"{name}.scale", Mul(), x_scale, scale))


def _zero_unless(model: TypedModel, name: str, mask: OutletId, x: OutletId) -> OutletId:
    """``x`` where the mask, of its rank, holds; 0 elsewhere."""
    fact = model.outlet_fact(x)
    zero = model.add_const(f"{name}.zero", np.zeros((1,) * fact.rank, fact.datum_type.numpy))
    return wire_one(model, name, Iff(), mask, x, zero)


def _wire(
    model: TypedModel,
    name: str,
    options: RecurrentOptions,
    inputs: RecurrentInputs,
    cell: _Cell,
    *,
    scales: Scales | None = None,
) -> list[OutletId]:
    """Y and the last states, all directions together."""
    backward = options.direction.backward
    _check(model, name, options, inputs, cell)
    x = wire_one(model, f"{name}.x", MoveAxis(0, 1), inputs.x) if options.batch_first else inputs.x
    activations = options.activations or cell.usual * len(backward)
    if len(activations) != len(cell.usual) * len(backward):
        wanted = len(cell.usual) * len(backward)
        raise FactError(f"{cell.name}: {wanted} activations are wanted, found {len(activations)}")
    mask = _mask(model, f"{name}.mask", inputs.lengths, model.outlet_fact(x))
    if mask is not None and scales is not None:
        x = _zero_unless(model, f"{name}.counts", mask, x)
    results: list[list[OutletId]] = []
    for index, back in enumerate(backward):
        label = f"{name}.{'backward' if back else 'forward'}"
        chosen = activations[index * len(cell.usual) : (index + 1) * len(cell.usual)]
        one = _OneDirection(model, label, options, inputs, cell, index, back, chosen, scales)
        results.append(one.wire(x, mask))
    y, *last = zip(*results, strict=True)
    outputs = [_stacked(model, name, y, 1, options.batch_first)]
    for label, parts in zip("hc", last, strict=False):
        outputs.append(_stacked(model, f"{name}.{label}", parts, 0, options.batch_first))
    return outputs


def _stacked(model: TypedModel, name: str, parts: Sequence[OutletId], axis: int, batch_first: bool) -> OutletId:
    """The results of all directions, [..., B, H], along a new axis; the batch axis, after it, in front if wanted."""
    rows = [AddAxis(axis)] * len(parts)
    after: list[TypedOp] = [TypedConcat(axis)] if len(parts) > 1 else []
    after += [MoveAxis(axis + 1, 0)] if batch_first else []
    labels = [f"{name}.stack"] * len(after) + [name]
    found = [wire_one(model, labels[0], op, part) for op, part in zip(rows, parts, strict=True)]
    for label, op in zip(labels[1:], after, strict=True):
        found = [wire_one(model, label, op, *found)]
    return found[0]


def _check(model: TypedModel, name: str, options: RecurrentOptions, inputs: RecurrentInputs, cell: _Cell) -> None:
    """Raise FactError unless every input has the shape that `RecurrentInputs` says."""
    x, r = model.outlet_fact(inputs.x), model.outlet_fact(inputs.r)
    if inputs.projection is not None and cell.states == 1:
        raise FactError(f"{cell.name}: a projection is there, only LSTM has one")
    if x.rank != 3 or r.rank != 3:
        raise FactError(f"{cell.name}: x and r of rank 3 are wanted, found {x} and {r}")
    batch, directions = x.shape[0 if options.batch_first else 1], len(options.direction.backward)
    hidden, given = _hidden(model, inputs), r.shape[2]
    lead = (batch, directions) if options.batch_first else (directions, batch)
    steps = (x.shape[0], x.shape[1], hidden * cell.gates)
    wanted: dict[str, tuple[OutletId | None, tuple[Dim, ...]]] = {
        "product": (inputs.x if inputs.w is None else None, steps),
        "w": (inputs.w, (directions, hidden * cell.gates, x.shape[2])),
        "r": (inputs.r, (directions, hidden * cell.gates, given)),
        "projection": (inputs.projection, (directions, given, hidden)),
        "bias": (inputs.bias, (directions, hidden * cell.gates * 2)),
        "list of lengths": (inputs.lengths, (batch,)),
        "initial h": (inputs.initial_h, (*lead, given)),
        "initial c": (inputs.initial_c, (*lead, hidden)),
        "peepholes": (inputs.peepholes, (directions, hidden * 3)),
    }
    for role, (outlet, shape) in wanted.items():
        if outlet is not None:
            require_shape(model, name, f"{role} of {cell.name}", outlet, shape)


def _hidden(model: TypedModel, inputs: RecurrentInputs) -> Dim:
    """The number of hidden units: the size of c, and of h before a projection."""
    return model.outlet_fact(inputs.r if inputs.projection is None else inputs.projection).shape[2]


def _mask(model: TypedModel, name: str, lengths: OutletId | None, x: TypedFact) -> OutletId | None:
    """Which steps count, [T, B, 1]. Lengths are looked up among those that there are: a run refuses others."""
    if lengths is None:
        return None
    steps = x.shape[0]
    start, step = (model.add_const(f"{name}.{label}", np.array(value)) for label, value in (("start", 0), ("step", 1)))
    end = model.add_const(f"{name}.end", steps)
    time = wire_one(model, f"{name}.time", Range(steps), start, end, step)
    time = wire_one(model, f"{name}.time1", AddAxis(1), time)
    beyond = model.add_const(f"{name}.beyond", steps + 1)
    allowed = wire_one(model, f"{name}.allowed", Range(steps + 1), start, beyond, step)
    places = wire_cast(model, f"{name}.places", lengths, DatumType.U32)  # so that -1 is far away, not the last one
    lengths = wire_one(model, f"{name}.checked", Gather(0), allowed, places)
    lengths = wire_one(model, f"{name}.lengths", AddAxis(0), lengths)
    return wire_one(model, f"{name}.column", AddAxis(2), wire_one(model, name, Lt(), time, lengths))


@frozen
class _OneDirection:
    """One of the networks: ``index`` is its place in the tensors' direction axis."""

    model: TypedModel
    name: str
    options: RecurrentOptions
    inputs: RecurrentInputs
    cell: _Cell
    index: int
    backward: bool
    activations: tuple[Activation, ...]
    scales: Scales | None

    def wire(self, x: OutletId, mask: OutletId | None) -> list[OutletId]:
        """Y [T, B, H] and the last states [B, H]."""
        model, inputs = self.model, self.inputs
        hidden = _hidden(model, inputs)
        bias = self._biases(hidden)
        full = self.cell.weights(model, self.name, self._part("r", inputs.r), hidden)
        if self.cell.late_bias and bias is not None:
            full["b"] = bias[1]
        if inputs.peepholes is not None:
            full["p"] = self._part("p", inputs.peepholes)
        if inputs.projection is not None:
            full["projection"] = self._part("projection", inputs.projection)
        scale = None
        if self.scales is not None:
            scale, full["scale"] = (self._part(f"{label}_scale", x) for label, x in zip("wr", self.scales, strict=True))
        gates = x
        if inputs.w is not None:
            gates = _product(model, f"{self.name}.gates", "tbi,gi->tbg", x, self._part("w", inputs.w), scale=scale)
        for label, part in zip(("w", "r"), bias or (), strict=False):
            if (inputs.w is not None) if label == "w" else not self.cell.late_bias:
                gates = wire_binary(model, f"{self.name}.bias_{label}.sum", Add(), gates, part)
        return self._loop(gates, full, self._initial(model.outlet_fact(x), hidden), mask)

    def _loop(
        self, gates: OutletId, full: dict[str, OutletId], states: list[OutletId], mask: OutletId | None
    ) -> list[OutletId]:
        chunk = -1 if self.backward else 1
        body = self.model.empty_like()
        outer = [gates, *full.values(), *states, *([] if mask is None else [mask])]
        labels = ["gates", *full, *("h", "c")[: len(states)], *([] if mask is None else ["mask"])]
        scanned = ScannedInput(0, chunk)
        mappings: list[InputMapping] = [scanned, *(FullInput() for _ in full), *(StateInput() for _ in states)]
        if mask is not None:
            mappings.append(scanned)
        inner = {
            label: body.add_source(label, self._inside(outlet, mapping))
            for label, outlet, mapping in zip(labels, outer, mappings, strict=True)
        }
        outputs = self._body(body, inner, list(full), len(states))
        body.set_outputs(outputs)
        joined = OutputMapping(full=FullOutput(0, 0, chunk))
        last = [OutputMapping(state=True, last=slot + 1) for slot in range(len(states))]
        op = Scan(
            body,
            tuple(mappings),
            (joined, *last),
            reset_every_turn=self.options.reset_every_turn or self.backward,
            external_state=self._external(),
        )
        return list(self.model.wire_node(self.name, op, outer))

    def _body(self, body: TypedModel, inner: dict[str, OutletId], full: Sequence[str], states: int) -> list[OutletId]:
        hidden = body.outlet_fact(inner["c" if "c" in inner else "h"]).shape[-1]
        x = wire_one(body, "x", RmAxis(0), inner["gates"])
        mask = wire_one(body, "counts", RmAxis(0), inner["mask"]) if "mask" in inner else None
        step = _Step(body, x, {name: inner[name] for name in full}, hidden, self.activations, self.options.clip, mask)
        before = [inner[label] for label in ("h", "c")[:states]]
        after = self.cell.step(step, before)
        y = after[0]
        if mask is not None:
            after = [
                wire_one(body, f"{label}.masked", Iff(), mask, new, old)
                for label, new, old in zip("hc", after, before, strict=False)
            ]
            y = _zero_unless(body, "y.masked", mask, y)
        return [wire_one(body, "y", AddAxis(0), y), *after]

    def _inside(self, outlet: OutletId, mapping: InputMapping) -> TypedFact:
        fact = self.model.outlet_fact(outlet).without_value()
        return fact.with_shape((1, *fact.shape[1:])) if isinstance(mapping, ScannedInput) else fact

    def _external(self) -> bool:
        """State that the caller gives anew in every turn is his; so is that of items which end before the turn does."""
        given = [self.inputs.initial_h, self.inputs.initial_c]
        computed = any(outlet is not None and self.model.constant(outlet) is None for outlet in given)
        return computed or self.inputs.lengths is not None

    def _part(self, label: str, x: OutletId, axis: int = 0) -> OutletId:
        """The part of a tensor that belongs to the direction."""
        name = f"{self.name}.{label}"
        if self.model.outlet_fact(x).shape[axis] != 1:
            x = wire_one(self.model, f"{name}.part", Slice(axis, self.index, self.index + 1), x)
        return wire_one(self.model, name, RmAxis(axis), x)

    def _biases(self, hidden: Dim) -> tuple[OutletId, OutletId] | None:
        """The biases of ``w`` and of ``r``, [1, G*H]."""
        if self.inputs.bias is None:
            return None
        both, count = self._part("bias", self.inputs.bias), hidden * self.cell.gates
        first, second = (
            wire_one(self.model, f"{self.name}.bias_{label}", Slice(0, count * half, count * (half + 1)), both)
            for half, label in enumerate("wr")
        )
        first, second = (wire_one(self.model, f"{self.name}.row", AddAxis(0), part) for part in (first, second))
        return first, second

    def _initial(self, x: TypedFact, hidden: Dim) -> list[OutletId]:
        given = (self.inputs.initial_h, self.inputs.initial_c)[: self.cell.states]
        axis = 1 if self.options.batch_first else 0
        states: list[OutletId] = []
        sizes = (self.model.outlet_fact(self.inputs.r).shape[2], hidden)
        for label, outlet, size in zip("hc", given, sizes, strict=False):
            name = f"{self.name}.initial_{label}"
            if outlet is not None:
                states.append(self._part(f"initial_{label}", outlet, axis))
                continue
            zero = self.model.add_const(f"{name}.zero", np.zeros((1, 1), x.datum_type.numpy))
            states.append(wire_broadcast(self.model, name, zero, (x.shape[1], size)))
        return states
