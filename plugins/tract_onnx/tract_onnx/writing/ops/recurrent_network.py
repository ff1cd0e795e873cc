"""Recurrent networks as one operator: loops whose bodies are their cells, and the products in front of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_one, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.ops.scan import Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice
from tract_onnx.writing.spelling import Spelling

Array = np.ndarray[Any, Any]

_NAMES: Final = {LstmEpilogue: "LSTM", GruEpilogue: "GRU", Tanh: "RNN"}


@frozen
class RecurrentCell:
    """What a body is. ``x``, ``states``: which of its inputs; ``r`` [gates, hidden], ``bias`` [gates]: of the state."""

    node: TypedNode
    x: int
    states: tuple[int, ...]
    r: Array
    bias: Array | None

    @property
    def kind(self) -> type:
        """The operator of its gates."""
        return type(self.node.op)


@frozen
class Given:
    """What is multiplied in front of the loop: ``x`` [steps, items, inputs], ``w`` [gates, inputs], and ``biases``."""

    x: str
    w: Array
    biases: tuple[Array, ...]


def network(op: Scan, node: Spelling, names: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """LSTM, GRU or RNN: its results, and the states at the end; ``None`` for any other loop.

    ``names``: of what the loop reads.
    """
    cell = _cell(op)
    if cell is None or node.result().datum_type is not DatumType.F32:
        return None
    scanned = op.inputs[cell.x]
    assert isinstance(scanned, ScannedInput)
    full = [one.full for one in op.outputs if one.full is not None]
    if scanned.axis or any(one.axis or one.chunk != scanned.chunk for one in full):
        return None
    given = _given(node, node.node.inputs[cell.x], len(cell.r))
    if given is None:
        return None
    biases = _biases(cell, given)
    initial = [_initial(node, slot, names[slot]) for slot in cell.states]
    inputs = [
        given.x,
        node.constant(given.w[None]),
        node.constant(cell.r[None]),
        "" if biases is None else node.constant(biases[None]),
    ]
    inputs += ["", *initial]
    while not inputs[-1]:
        inputs.pop()
    told: dict[str, Any] = {"linear_before_reset": 1} if cell.kind is GruEpilogue else {}
    told["direction"] = "forward" if scanned.chunk > 0 else "reverse"
    count = 1 + len(cell.states)
    y, *last = node.several(_NAMES[cell.kind], count, *inputs, hidden_size=cell.r.shape[1], **told)
    states = [node.without_axes(name, [0]) for name in last]
    return _results(op, node, y, states), states


def _biases(cell: RecurrentCell, given: Given) -> Array | None:
    """Those of the inputs, then those of the state: two that are added in front stay two. ``None`` if all are 0."""
    first, *more = given.biases or (np.zeros(len(cell.r), np.float32),)
    if cell.bias is None and len(more) == 1:
        second = more[0]
    else:
        first, second = np.sum([first, *more], axis=0, dtype=np.float32), cell.bias
    if second is None:
        second = np.zeros_like(first)
    return np.concatenate([first, second]) if first.any() or second.any() else None


def _results(op: Scan, node: Spelling, y: str, states: Sequence[str]) -> list[str]:
    """Those of the loop, in its order: without the axis of directions."""
    found: dict[int, str] = {}
    last = iter(states)
    for one in op.outputs:
        state = next(last) if one.state else ""
        if one.full is not None:
            found[one.full.slot] = node.without_axes(y, [1])
        if one.last is not None:
            found[one.last] = state
    return [found[slot] for slot in range(len(found))]


def _initial(node: Spelling, slot: int, name: str) -> str:
    """A state in front of the first step, [1, items, hidden]; an empty name where it is 0."""
    if name != node.input(slot):
        return node.with_axes(name, [0])
    outlet = node.node.inputs[slot]
    while isinstance((maker := node.model.nodes[outlet.node]).op, (MultiBroadcastTo, RmAxis, AddAxis, Slice)):
        outlet = maker.inputs[0]
    known = node.model.outlet_fact(outlet).constant
    return "" if known is not None and not known.any() else node.with_axes(name, [0])


def _given(node: Spelling, outlet: OutletId, gates: int) -> Given | None:
    """What is multiplied in front of a loop, to give ``outlet`` [steps, items, gates]."""
    model, biases = node.model, list[Array]()
    while isinstance(model.nodes[outlet.node].op, Add):
        found = _plus_constant(model, outlet)
        if found is None or found[1].size not in (1, gates) or found[1].shape[-1] != found[1].size:
            return None
        outlet, value = found
        biases.append(np.broadcast_to(value.reshape(-1), (gates,)))
    maker = model.nodes[outlet.node]
    if not isinstance(maker.op, EinSum) or maker.op.q_output is not None or len(maker.inputs) != 2:
        return None
    for slot in (1, 0):
        w = model.outlet_fact(maker.inputs[slot]).constant
        if w is not None:
            return _product(node, maker, 1 - slot, w, tuple(biases[::-1]))
    return None


def _product(node: Spelling, maker: TypedNode, slot: int, w: Array, biases: tuple[Array, ...]) -> Given | None:
    """``slot``: of what is multiplied, in any order of its axes, with ``w``."""
    assert isinstance(maker.op, EinSum)
    term, other, out = maker.op.axes.inputs[slot], maker.op.axes.inputs[1 - slot], maker.op.axes.outputs[0]
    fact = node.model.outlet_fact(maker.inputs[slot])
    steps, items, gates = out
    summed = [one for one in term if one in other and one not in out]
    own = [axis for axis, one in enumerate(other) if one not in (gates, *summed)]
    alone = [axis for axis, one in enumerate(term) if one not in (steps, items, *summed)]
    is_plain = len(set(term)) == len(term) and len(set(other)) == len(other) and {steps, items} <= set(term)
    sizes_of = dict(zip(term, fact.shape, strict=True))
    sizes = [sizes_of[one] for one in summed]
    if not is_plain or gates not in other or any(w.shape[axis] != 1 for axis in own):
        return None
    if not all(is_one(fact.shape[axis]) for axis in alone):
        return None
    if sizes != [w.shape[other.index(one)] for one in summed]:
        return None
    left = [one for axis, one in enumerate(other) if axis not in own]
    flat = w.squeeze(tuple(own)).transpose([left.index(one) for one in (gates, *summed)])
    name, term = node.name_of(maker.inputs[slot]), "".join(one for axis, one in enumerate(term) if axis not in alone)
    moved = node.transposed(node.without_axes(name, alone), [term.index(one) for one in (steps, items, *summed)])
    if len(summed) != 1:
        lead = [sizes_of[one] for one in (steps, items)]
        moved = node.reshaped(moved, [*lead, product(sizes)])
    return Given(moved, np.ascontiguousarray(flat.reshape(len(flat), prod(flat.shape[1:]))), biases)


def _plus_constant(model: TypedModel, outlet: OutletId) -> tuple[OutletId, Array] | None:
    """What a constant is added to, and the constant."""
    inputs = model.nodes[outlet.node].inputs
    for slot in (1, 0):
        known = model.outlet_fact(inputs[slot]).constant
        if known is not None and known.ndim:
            return inputs[1 - slot], np.asarray(known)
    return None


def _cell(op: Scan) -> RecurrentCell | None:
    """What the body is, where it is the cell of one of these networks."""
    states = [slot for slot, one in enumerate(op.inputs) if isinstance(one, StateInput)]
    scanned = [slot for slot, one in enumerate(op.inputs) if isinstance(one, ScannedInput)]
    body = op.body
    nodes = [node for node in body.live_nodes() if type(node.op) in _NAMES]
    if len(nodes) != 1 or len(scanned) != 1 or op.skip or len(states) != len(nodes[0].outputs):
        return None
    last = nodes[0]
    x, h = body.inputs[scanned[0]], body.inputs[states[0]]
    recurring = _recurring(body, last, _sliced(body, x), h, None if len(states) < 2 else body.inputs[states[1]])
    if recurring is None or not _are_states(op, last):
        return None
    return RecurrentCell(last, scanned[0], tuple(states), *recurring)


def _sliced(body: TypedModel, x: OutletId) -> OutletId | None:
    """A slice without its axis of size 1."""
    readers = body.outlet(x).successors
    found = [body.nodes[one.node] for one in readers]
    if len(found) != 1 or not isinstance(found[0].op, RmAxis) or found[0].op.axis != 0:
        return None
    return OutletId(found[0].id)


def _recurring(
    body: TypedModel, last: TypedNode, x: OutletId | None, h: OutletId, c: OutletId | None
) -> tuple[Array, Array | None] | None:
    """The weights and the bias of the state, where the gates are those of ``x``, the states and nothing else."""
    if isinstance(last.op, GruEpilogue):
        product_of, before = last.inputs[1], last.inputs[2]
        if last.inputs[0] != x or before != h:
            return None
        found = _plus_constant(body, product_of) if isinstance(body.nodes[product_of.node].op, Add) else None
        weights = _weights(body, product_of if found is None else found[0], h)
        if weights is None:
            return None
        return (weights, None) if found is None else (weights, np.broadcast_to(found[1].reshape(-1), len(weights)))
    added = body.nodes[last.inputs[0].node]
    if (
        not isinstance(added.op, Add)
        or x is None
        or x not in added.inputs
        or [*last.inputs[1:]] != ([] if c is None else [c])
    ):
        return None
    weights = _weights(body, added.inputs[1 - added.inputs.index(x)], h)
    return None if weights is None else (weights, None)


def _weights(body: TypedModel, outlet: OutletId, h: OutletId) -> Array | None:
    """The constant [gates, hidden] that a state [items, hidden] is multiplied with."""
    node = body.nodes[outlet.node]
    if not isinstance(node.op, EinSum) or node.op.q_output is not None or h not in node.inputs or len(node.inputs) != 2:
        return None
    slot = list(node.inputs).index(h)
    value, axes = body.outlet_fact(node.inputs[1 - slot]).constant, node.op.axes
    (items, hidden), other, out = axes.inputs[slot], axes.inputs[1 - slot], axes.outputs[0]
    if value is None or value.ndim != 2 or len(out) != 2 or out[0] != items or hidden not in other:
        return None
    gates = out[1]
    if set(other) != {gates, hidden} or is_one(body.outlet_fact(h).shape[1]) != (value.shape[other.index(hidden)] == 1):
        return None
    return np.ascontiguousarray(value if other == gates + hidden else value.T)


def _are_states(op: Scan, last: TypedNode) -> bool:
    """Whether the outputs are the states after a step, and the first of them as a slice."""
    body, states = op.body, iter(range(len(last.outputs)))
    for outlet, one in zip(body.outputs, op.outputs, strict=True):
        if one.state and outlet != OutletId(last.id, next(states)):
            return False
        if one.full is not None and not one.state:
            maker = body.nodes[outlet.node]
            if not isinstance(maker.op, AddAxis) or maker.op.axis or maker.inputs[0] != OutletId(last.id):
                return False
        if one.full is not None and one.state:
            return False
    return next(states, None) is None
