"""Steps whose operators run models of their own: loops over the slices of a tensor, and branches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, symbol
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Gt, Mul
from tract_core.ops.elementwise import Abs, Neg
from tract_core.ops.if_then_else_wiring import wire_if
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.testing.strategies.garden import Array, Garden, Meaning, Traits

_LOOP: Final = Traits()


def _own_sizes(g: Garden, x: OutletId, known: Sequence[int] = ()) -> list[Dim]:
    """A symbol of a body's own for each axis of a tensor, 1 for those that are ``known``."""
    return [1 if axis in known else symbol(f"N{axis}") for axis in range(g.fact(x).rank)]


def loop(g: Garden) -> OutletId | None:
    """Along an axis, state * weight + slice, or the magnitude of each slice; its last value or all of them."""
    x = g.any(lambda one: g.is_float(one) and g.traits[one].exact and g.has_axis(one))
    if x is None:
        return None
    axis, shape = g.axis(x), list(g.fact(x).shape)
    stride = g.choose([1, 1, -1])
    shape[axis] = 1
    size = [int(dim) if isinstance(dim, int) else None for dim in shape]
    if None in size:
        return _magnitudes(g, x, axis)
    start = g.numbers([int(dim) for dim in shape], [0.0, 1.0, 0.5])
    weight = g.number(g.choose([0.5, 3.0, 0.1]), rank=len(shape))
    body = TypedModel()
    fact = TypedFact.of(DatumType.F32, _own_sizes(g, x, [axis]))
    piece, state = body.add_source("piece", fact), body.add_source("state", fact)
    factor = body.add_source("factor", TypedFact.of(DatumType.F32, [1] * len(shape)))
    new = wire_one(
        body, "new", Add(), wire_one(body, "product", Mul(), state, factor), wire_one(body, "neg", Neg(), piece)
    )
    body.set_outputs([new, wire_one(body, "abs", Abs(), new)])
    outputs = (OutputMapping(state=True, last=0), OutputMapping(full=FullOutput(1, axis, stride)))
    op = Scan(body, (ScannedInput(axis, stride), StateInput(), FullInput()), outputs)
    inputs = [x, start, weight]
    found = g.wire(lambda model, name: model.wire_node(name, op, inputs))
    if found is None:
        return None
    last = g.note(found[0], inputs, partial(_run, axis, stride, 0), _LOOP)
    if g.chance(2):
        g.pool.append(last)
    else:
        del g.traits[last]  # nothing reads it
    return g.note(found[1], inputs, partial(_run, axis, stride, 1), _LOOP)


def _run(axis: int, stride: int, slot: int, x: Array, *start: Array) -> Array:
    """The last state, in slot 0, or the magnitudes of all states, in slot 1."""
    state, weight = start
    places = list(range(x.shape[axis]))
    found: dict[int, Array] = {}
    for place in places[::stride]:
        state = state * weight - np.take(x, [place], axis)
        found[place] = np.abs(state)
    if slot == 0:
        return state
    return np.concatenate([found[place] for place in places], axis) if found else np.zeros_like(x)


def _magnitudes(g: Garden, x: OutletId, axis: int) -> OutletId | None:
    """A loop without state."""
    body = TypedModel()
    piece = body.add_source("piece", TypedFact.of(DatumType.F32, _own_sizes(g, x, [axis])))
    body.set_outputs([wire_one(body, "abs", Abs(), wire_one(body, "neg", Neg(), piece))])
    op = Scan(body, (ScannedInput(axis),), (OutputMapping(full=FullOutput(0, axis)),))
    return g.grow(op, [x], np.abs, g.traits[x])


def branches(g: Garden) -> OutletId | None:
    """The first elements of an axis, or all of them with the other sign, by a condition that is known or computed."""
    x = g.any(lambda one: g.is_exact(one) and g.has_axis(one) and not g.kind(one).is_unsigned())
    if x is None:
        return None
    asked = g.any(lambda one: g.is_exact(one) and g.fact(one).rank == 0 and g.kind(one).is_number())
    known = g.constant(np.array(g.chance(2)))
    condition = known
    if asked is not None:
        zero = g.number(0, g.kind(asked))
        condition = g.grow(Gt(), [asked, zero], np.greater, Traits(whole=True, bound=1)) or known
    count = g.integer(0, 2)
    taken, other = _body(g, x), _body(g, x)
    taken.set_outputs([wire_one(taken, "part", Slice(0, 0, count), taken.inputs[0])])
    other.set_outputs([wire_one(other, "neg", Neg(), other.inputs[0])])
    found = g.wire(lambda model, name: wire_if(model, name, condition, (taken, [x]), (other, [x])))
    if found is None:
        return None

    def meaning(c: Array, a: Array) -> Array:
        if not c:
            return np.negative(a)
        if count > len(a):
            raise IndexError(f"{count} of {len(a)}")
        return a[:count]

    checked: Meaning = meaning
    return g.note(found[0], [condition, x], checked, replace(g.traits[x], whole=False))


def _body(g: Garden, x: OutletId) -> TypedModel:
    body = TypedModel()
    body.add_source("given", TypedFact.of(g.kind(x), _own_sizes(g, x)))
    return body


STEPS: Final = [loop, branches]
