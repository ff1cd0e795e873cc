"""Convolutions of what is concatenated, in one piece again.

In normal form, a product of ``TypedConcat(a, b)`` is the sum of a product of ``a`` and one of ``b``, which spares the
concatenation. In bytes it spares nothing: results of convolutions are rounded, each part by itself, and their sums too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, TypeAlias, cast

import numpy as np

from tract_core.model.axes import AxesMapping, letters
from tract_core.model.fact import TypedFact
from tract_core.model.graph import Node, OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import Rewriter, RuleSet, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import Reshape
from tract_core.ops.binary import Add
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum
from tract_core.ops.wiring import wire_one
from tract_core.rules.pattern import alone_by
from tract_quantize.plan import why_not
from tract_quantize.registry import Product, role_of

Part: TypeAlias = Node[TypedFact, EinSum]


def with_whole_products(model: TypedModel) -> TypedModel:
    """The model in which convolutions of several tensors that are added are one, of these one behind the other.

    ``model`` stays as it is; it is what is returned where there is nothing of that kind.
    """
    copy = model.clone()
    changed = Rewriter(_RULES).rewrite(copy).patches
    return copy if "whole_product" in changed else model


@rewrites(Add)
def whole_product(model: TypedModel, node: TypedNode, op: Add) -> ModelPatch | None:
    """EinSum(a, w1) + EinSum(b, w2) + ... -> EinSum(TypedConcat(a, b, ...), w), where each is a convolution

    The last of the sums takes in all of them at once: one after the other would take the square of the time.
    """
    parts = None if _goes_on(model, node) else _parts(model, node)
    role = None if parts is None else _common_role(model, parts)
    if parts is None or role is None or role.summed is None:
        return None
    terms = parts[0].op.axes.inputs
    axis = terms[role.data].index(terms[role.weights][role.summed])
    arrays = [model.constant(part.inputs[role.weights]) for part in parts]
    weights = [one for one in arrays if one is not None]
    if len(weights) < len(parts) or not _fit(model, parts, role, axis):
        return None
    patch = ModelPatch(model)
    pieces = [patch.tap(one) for part in parts for one in _pieces(model, part.inputs[role.data], axis)]
    inputs = [*parts[0].inputs]
    inputs[role.data] = wire_one(patch.model, f"{node.name}.whole", TypedConcat(axis), *pieces)
    together = np.concatenate(weights, axis=role.summed)
    inputs[role.weights] = patch.model.add_const(f"{node.name}.weights", together)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, parts[0].op, *inputs))
    return patch


def _parts(model: TypedModel, node: TypedNode) -> Sequence[Part] | None:
    """What is added, in order, with sums of it taken apart; ``None`` where something of it is no convolution."""
    found, pending = list[Part](), [node]
    while pending:
        last = pending.pop()
        if isinstance(last.op, EinSum):
            found.append(cast("Part", last))
            continue
        inner = [alone_by(model, outlet, EinSum, Add) for outlet in reversed(last.inputs)]
        if not all(one is not None and (isinstance(one.op, Add) or _is_conv(model, one)) for one in inner):
            return None
        pending += [one for one in inner if one is not None]
    return found


def _is_conv(model: TypedModel, node: TypedNode) -> bool:
    role = role_of(model, node)
    return isinstance(role, Product) and role.as_conv


def _goes_on(model: TypedModel, node: TypedNode) -> bool:
    """Whether a convolution like one that is added here is added to the sum: then the sum of all is looked at."""
    reader = model.single_reader(OutletId(node.id))
    if reader is None or not isinstance(reader.op, Add):
        return False
    added, others = ([alone_by(model, outlet, EinSum) for outlet in one.inputs] for one in (node, reader))
    part, other = (next((one for one in several if one is not None), None) for several in (added, others))
    return part is not None and other is not None and _common_role(model, (part, other)) is not None


@rewrites(Reshape)
def merged_before(model: TypedModel, node: TypedNode, op: Reshape) -> ModelPatch | None:
    """Reshape(EinSum(x, w)) -> EinSum(Reshape(x), w), where it is a convolution, and axes of x are merged into one"""
    summed = alone_by(model, node.inputs[0], EinSum)
    role = None if summed is None else role_of(model, summed)
    if summed is None or not isinstance(role, Product) or not role.as_conv or len(op.after) != 1:
        return None
    axes = summed.op.axes
    names = axes.outputs[0][op.at : op.at + len(op.before)]
    data = axes.inputs[role.data]
    if not names or names not in data or set(names) & set(axes.inputs[role.weights]):
        return None
    patch, inputs = ModelPatch(model), [*summed.inputs]
    merge = Reshape(data.index(names), op.before, op.after)
    fewer = axes.with_input(role.data, data.replace(names, names[0]))
    fewer = fewer.with_output(0, axes.outputs[0].replace(names, names[0]))
    taps = [patch.tap(outlet) for outlet in inputs]
    taps[role.data] = wire_one(patch.model, f"{node.name}.merged", merge, taps[role.data])
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, replace(summed.op, axes=fewer), *taps))
    return patch


def _common_role(model: TypedModel, parts: Sequence[Part]) -> Product | None:
    """What all of them are alike: the same convolution, of other channels, that could be quantised."""
    roles = {role_of(model, part) for part in parts}
    role = roles.pop()
    if roles or not isinstance(role, Product) or not role.as_conv:
        return None
    alike = len({replace(part.op, axes=_renamed(part.op.axes)) for part in parts}) == 1
    return role if alike and all(why_not(model, part, role) is None for part in parts) else None


def _renamed(axes: AxesMapping) -> AxesMapping:
    """The same axes, with names in the order in which they come."""
    names = dict(zip(dict.fromkeys("".join((*axes.inputs, *axes.outputs))), letters(), strict=False))
    inputs, outputs = (
        ["".join(map(names.__getitem__, term)) for term in terms] for terms in (axes.inputs, axes.outputs)
    )
    return AxesMapping(tuple(inputs), tuple(outputs))


def _fit(model: TypedModel, parts: Sequence[Part], role: Product, axis: int) -> bool:
    """Whether sizes are the same but along the axis, where all weights are met, and weights have the same channels."""
    data, weights = (
        [model.outlet_fact(part.inputs[slot]).shape for part in parts] for slot in (role.data, role.weights)
    )
    kept = [[size for place, size in enumerate(shape) if place != axis] for shape in data]
    met = all(shape[axis] == sizes[role.summed or 0] for shape, sizes in zip(data, weights, strict=True))
    alike = all(model.known.same(*pair) for one in kept for pair in zip(kept[0], one, strict=True))
    return met and alike and len({shape[role.channel] for shape in weights}) == 1


def _pieces(model: TypedModel, outlet: OutletId, axis: int) -> Sequence[OutletId]:
    """What a tensor was put together of, if nothing else reads it; else itself."""
    concat = alone_by(model, outlet, TypedConcat)
    return concat.inputs if concat is not None and concat.op.axis == axis else (outlet,)


_RULES: Final = RuleSet([merged_before, whole_product])
