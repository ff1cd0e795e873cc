"""What the established engine ends its process over, or refuses, in operators that it computes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, is_one, is_symbolic
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.binary import Add, Lt, Mul
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import GatherNd
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scan import OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.scatter import ScatterNd


def said_for_others(model: TypedModel) -> TypedModel:
    """A copy that means the same, in which every operator is one that the established engine computes, where it can be.

    The very same model where nothing changes. Bodies inside operators are not looked at: they are written as models of
    their own, each of which comes here.
    """
    if not any(type(node.op) in _OTHERWISE for node in model.live_nodes()):
        return model
    result = model.clone()
    for node in [node for node in result.live_nodes() if type(node.op) in _OTHERWISE]:
        patch = _OTHERWISE[type(node.op)](result, node, node.op)
        if patch is not None:
            patch.apply()
    return result


# --- integers ---


def is_computed_by_others(op: EinSum, kinds: Sequence[Any]) -> bool:
    """Whether the engine has a kernel for a sum of products: of floats, and of integers i8 and i32."""
    if op.q_output is not None or not op.acc.is_integer():
        return True
    return kinds in ([DatumType.I8] * len(kinds), [DatumType.I32] * len(kinds)) and op.acc in (kinds[0], DatumType.I32)


def _product_of_integers(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum of integers -> EinSum of i32, of which the last bits are those of narrower ones; of 64 bits -> a loop"""
    facts = model.input_facts(node)
    repeated = any(len(set(term)) < len(term) for term in op.axes.inputs)
    if is_computed_by_others(op, [fact.datum_type for fact in facts]) or (repeated and op.acc.itemsize > 4):
        return None
    patch = ModelPatch(model)
    wire = NodeWiring(patch.model, node.name)
    to = DatumType.I32 if op.acc.itemsize <= DatumType.I32.itemsize else op.acc
    factors = [wire.cast(patch.tap(outlet), to) for outlet in node.inputs]
    if to is DatumType.I32:
        found = wire.op(replace(op, acc=to), *factors)
    else:
        found = _looped(wire, op, factors, op.sizes(facts))
    patch.shunt(OutletId(node.id), wire.cast(found, op.acc))
    return patch


def _looped(wire: NodeWiring, op: EinSum, factors: Sequence[OutletId], sizes: Mapping[str, Dim]) -> OutletId:
    """The sum of products: axis by axis of those that the output lacks, and slice by slice."""
    output = op.axes.outputs[0]
    names = [*output, *(name for name in sizes if name not in output)]
    aligned: list[OutletId] = []
    for term, x in zip(op.axes.inputs, factors, strict=True):
        there = [name for name in names if name in term]
        missing = [axis for axis, name in enumerate(names) if name not in term]
        aligned.append(wire.unsqueeze(wire.transpose(x, [term.index(name) for name in there]), missing))
    left = {name: sizes[name] for name in names}
    for axis in range(len(output), len(names)):
        left[names[axis]] = 1
        aligned = [_sum_of_products(wire, aligned, axis, list(left.values()), sizes[names[axis]])]
    return wire.squeeze(reduce(lambda a, b: wire.op(Mul(), a, b), aligned), range(len(output), len(names)))


def _sum_of_products(
    wire: NodeWiring, factors: Sequence[OutletId], axis: int, shape: Sequence[Dim], size: Dim
) -> OutletId:
    """The sum, over one axis of that ``size``, of products of tensors of one rank; ``shape``: that of the sum."""
    body, kind = TypedModel(), wire.dtype(factors[0])
    given = [
        wire.broadcast(x, [*wire.shape(x)[:axis], size, *wire.shape(x)[axis + 1 :]])
        if is_one(wire.shape(x)[axis])
        else x
        for x in factors
    ]
    pieces = [body.add_source(f"x{slot}", _slice(wire.fact(x), axis)) for slot, x in enumerate(given)]
    before = body.add_source("before", TypedFact.of(kind, shape))
    inner = NodeWiring(body, "joined")
    body.set_outputs([inner.op(Add(), before, reduce(lambda a, b: inner.op(Mul(), a, b), pieces))])
    inputs = (*(ScannedInput(axis) for _ in pieces), StateInput())
    loop = Scan(body, inputs, (OutputMapping(state=True, last=0),), reset_every_turn=True)
    return wire.op(loop, *given, wire.broadcast(wire.scalar(0, given[0]), shape))


def _slice(fact: TypedFact, axis: int) -> TypedFact:
    return fact.without_value().with_shape((*fact.shape[:axis], 1, *fact.shape[axis + 1 :]))


# --- coordinates ---


def _coordinates_from_the_start(model: TypedModel, node: TypedNode, op: GatherNd | ScatterNd) -> ModelPatch | None:
    """Coordinates, of which negative ones count from the end -> coordinates that count from the start"""
    x, indices = model.input_facts(node)[:2]
    kind, known = indices.datum_type, indices.constant
    if not kind.is_signed() or (known is not None and (known >= 0).all()):
        return None
    first = op.batch_dims if isinstance(op, GatherNd) else 0
    sizes = x.shape[first : first + int(indices.shape[-1])]
    patch = ModelPatch(model)
    wire = NodeWiring(patch.model, node.name)
    source, places, *others = (patch.tap(outlet) for outlet in node.inputs)
    if known is not None and not any(map(is_symbolic, sizes)):
        places = wire.const(np.where(known < 0, known + np.array([*sizes], known.dtype), known))
    else:
        from_the_end = wire.binary(Add(), places, wire.cast(wire.const([*sizes]), kind))
        places = wire.select(wire.op(Lt(), places, wire.scalar(0, places)), from_the_end, places)
    patch.shunt(OutletId(node.id), wire.op(op, source, places, *others))
    return patch


_OTHERWISE: Final[Mapping[type[TypedOp], Callable[[TypedModel, TypedNode, Any], ModelPatch | None]]] = {
    EinSum: _product_of_integers,
    GatherNd: _coordinates_from_the_start,
    ScatterNd: _coordinates_from_the_start,
}
"""What is said in other words, by operator."""
