"""Spare the concatenation of tensors that are summed over anyway."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows
from tract_core.rules.pattern import alone_by

ROWS = Rows()


@rewrites(EinSum)
def concat_then_einsum(model: TypedModel, node: TypedNode, op: EinSum) -> ModelPatch | None:
    """EinSum(TypedConcat(a, b), w), concatenated along a contracted axis -> EinSum(a, w1) + EinSum(b, w2)"""
    if op.q_output is not None or op.acc is not node.outputs[0].fact.datum_type:
        return None  # partial sums would be rounded to the narrower output
    for slot, outlet in enumerate(node.inputs):
        concat = alone_by(model, outlet, TypedConcat)
        if concat is None:
            continue
        name = op.axes.inputs[slot][concat.op.axis]
        if name not in op.axes.outputs[0] and _is_whole(model, node, op, name):
            return _summed(model, node, op, slot, concat)
    return None


def _is_whole(model: TypedModel, node: TypedNode, op: EinSum, name: str) -> bool:
    """Whether the axis has one and the same size wherever it is, once per input."""
    found = {
        model.outlet_fact(outlet).shape[term.index(name)]
        for outlet, term in zip(node.inputs, op.axes.inputs, strict=True)
        if name in term
    }
    return len(found) == 1 and all(term.count(name) <= 1 for term in op.axes.inputs)


def _summed(model: TypedModel, node: TypedNode, op: EinSum, slot: int, concat: TypedNode) -> ModelPatch:
    axis = getattr(concat.op, "axis", 0)
    name = op.axes.inputs[slot][axis]
    patch = ModelPatch(model)
    start: Dim = 0
    total: OutletId | None = None
    for count, piece in enumerate(concat.inputs):
        end = start + model.outlet_fact(piece).shape[axis]
        inputs: list[OutletId] = []
        for other, (outlet, term) in enumerate(zip(node.inputs, op.axes.inputs, strict=True)):
            tapped = patch.tap(piece if other == slot else outlet)
            if other != slot and name in term:
                part = Slice(term.index(name), start, end)
                tapped = wire_one(patch.model, f"{node.name}.part{count}.{other}", part, tapped)
            inputs.append(tapped)
        product = wire_one(patch.model, f"{node.name}.part{count}", op, *inputs)
        last = node.name if count == len(concat.inputs) - 1 else f"{node.name}.sum{count}"
        total = product if total is None else wire_one(patch.model, last, Add(), total, product)
        start = end
    assert total is not None  # a concatenation has inputs
    patch.shunt(OutletId(node.id), total)
    return patch


ROWS.add(DECLUTTER, concat_then_einsum.name, concat_then_einsum)
