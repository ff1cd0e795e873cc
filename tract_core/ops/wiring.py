"""Wire what frontends and rules need often: operands brought to one rank or type, permutations, reshapes.

Every function adds nodes to ``model``, named after ``name``, and returns the resulting outlet; nothing is added when
nothing needs to be done.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant, DType
from tract_core.dims import Dim, exact_div, is_symbolic, same_dim
from tract_core.errors import FactError
from tract_core.model.conditions import may_be_of_shape, may_fit_into
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, RmAxis, full_reshape, moves_for
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.plugins.keys import Array


def wire_one(model: TypedModel, name: str, op: TypedOp, *inputs: OutletId) -> OutletId:
    """An operator of one output."""
    (outlet,) = model.wire_node(name, op, inputs)
    return outlet


def fresh_size(model: TypedModel, name: str) -> Dim:
    """A symbol of its own, for a size that only a run can tell."""
    return model.symbols.new_symbol(name[-200:])


def equal_part(size: Dim, count: int) -> Dim:
    """One of ``count`` equal parts of a size. Raises FactError where it is known that they do not come out even."""
    exact = exact_div(size, count) if count > 0 else None
    if exact is None and (count < 1 or not is_symbolic(size)):
        raise FactError(f"an axis of {size} elements cannot be cut into {count} equal parts")
    return size // count if exact is None else exact


def has_one_element(fact: TypedFact) -> bool:
    """Whether a tensor is known to have one element, whatever its rank."""
    return all(same_dim(size, 1) for size in fact.shape)


def require_shape(
    model: TypedModel, name: str, role: str, x: OutletId, shape: Sequence[Dim], *, stretches: bool = False
) -> None:
    """Let ``x``, which is wired as ``role`` of the node ``name``, have these sizes in every run.

    ``stretches``: it may also lack axes in front, and axes of size 1 stretch. Raises FactError, with the role, where
    the sizes cannot be right.
    """
    fact, may = model.outlet_fact(x), may_fit_into if stretches else may_be_of_shape
    with model.noting_conditions(f"node {name!r}"):
        if not may(fact.shape, shape):
            raise FactError(f"the {role} is {fact}, wanted sizes {','.join(map(str, shape)) or 'no axes'}")


def wire_cast(model: TypedModel, name: str, x: OutletId, to: DType) -> OutletId:
    """``x`` in an element type."""
    if model.outlet_fact(x).datum_type == to:
        return x
    return wire_one(model, f"{name}.cast", Cast(to), x)


def wire_rank(model: TypedModel, name: str, x: OutletId, rank: int) -> OutletId:
    """``x`` with axes of size 1 added in front until it has ``rank`` axes."""
    missing = rank - model.outlet_fact(x).rank
    held = _held(model, x) if missing > 0 else None
    if held is not None:
        return model.add_const(f"{name}.rank{missing - 1}", np.expand_dims(held, tuple(range(missing))))
    for count in range(missing):
        x = wire_one(model, f"{name}.rank{count}", AddAxis(0), x)
    return x


def _held(model: TypedModel, x: OutletId) -> Array | None:
    """The elements of a known tensor: the axes of weights are arranged right away, by a view."""
    fact = model.outlet_fact(x)
    return fact.value.array if isinstance(fact.value, Constant) and fact.value.datum_type == fact.datum_type else None


def wire_ranks(model: TypedModel, name: str, inputs: Sequence[OutletId]) -> list[OutletId]:
    """All of them at the highest rank among them, aligned at the last axis as NumPy does."""
    ranks = [model.outlet_fact(x).rank for x in inputs]
    rank = max(ranks, default=0)
    pairs = enumerate(zip(inputs, ranks, strict=True))
    return [x if own == rank else wire_rank(model, f"{name}.{slot}", x, rank) for slot, (x, own) in pairs]


def wire_binary(model: TypedModel, name: str, op: TypedOp, a: OutletId, b: OutletId) -> OutletId:
    """A binary operator on operands of any rank, broadcast as NumPy does."""
    if model.outlet_fact(a).rank != model.outlet_fact(b).rank:
        a, b = wire_ranks(model, name, [a, b])
    return wire_one(model, name, op, a, b)


def wire_transpose(model: TypedModel, name: str, x: OutletId, permutation: Sequence[int]) -> OutletId:
    """``x`` with its axes in another order: for each output axis, the input axis. The last node bears the name.

    Raises FactError unless every axis of ``x`` is there once.
    """
    if len(permutation) != model.outlet_fact(x).rank:
        raise FactError(f"{list(permutation)} is not a permutation of the axes of {model.outlet_fact(x)}")
    moves, held = moves_for(permutation), _held(model, x)
    if held is not None and moves:
        return model.add_const(name, held.transpose(permutation))
    for count, move in enumerate(moves):
        x = wire_one(model, name if count == len(moves) - 1 else f"{name}.move{count}", move, x)
    return x


def wire_reshape(model: TypedModel, name: str, x: OutletId, shape: Sequence[Dim]) -> OutletId:
    """``x`` in another shape of as many elements."""
    op = full_reshape(model.outlet_fact(x).shape, shape)
    return x if op is None else wire_one(model, name, op, x)


def wire_squeeze(model: TypedModel, name: str, x: OutletId, axes: Sequence[int]) -> OutletId:
    """``x`` with axes of size 1 (not negative, in any order) removed."""
    held = _held(model, x)
    if held is not None and axes and all(held.shape[axis : axis + 1] == (1,) for axis in axes):
        return model.add_const(name, held.squeeze(tuple(axes)))
    for count, axis in enumerate(sorted(axes, reverse=True)):
        x = wire_one(model, name if count == len(axes) - 1 else f"{name}.rm{axis}", RmAxis(axis), x)
    return x


def wire_unsqueeze(model: TypedModel, name: str, x: OutletId, axes: Sequence[int]) -> OutletId:
    """``x`` with axes of size 1 added so that they stand at ``axes`` of the result."""
    held = _held(model, x)
    if held is not None and axes and max(axes) < held.ndim + len(axes):
        return model.add_const(name, np.expand_dims(held, tuple(axes)))
    for count, axis in enumerate(sorted(axes)):
        x = wire_one(model, name if count == len(axes) - 1 else f"{name}.add{axis}", AddAxis(axis), x)
    return x


def wire_broadcast(model: TypedModel, name: str, x: OutletId, shape: Sequence[Dim]) -> OutletId:
    """``x`` stretched to the common shape of itself and ``shape``."""
    if tuple(model.outlet_fact(x).shape) == tuple(shape):
        return x
    return wire_one(model, name, MultiBroadcastTo(tuple(shape)), x)
