"""Attention, found in a model: two products with a softmax in between, along an axis that the second one sums over.

Nothing but that form counts: which axes there are besides, in which order, and which operators stand between the first
product and the softmax, is up to the model. The nodes before the second product wait for it, as masks and values may
come later than the first one. Exporters of PyTorch put zeros in the place of shares that are no numbers, as those of a
query that sees no key are; who asks for it finds that too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tract_core.compile.groups import Grouper
from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import IsNan
from tract_core.ops.iff import Iff
from tract_core.ops.softmax import Softmax

Sizes = dict[str, Dim]
"""The size of each axis."""

Terms = tuple[tuple[str, ...], ...]
"""The names of the axes of tensors."""

Fits = Callable[[TypedNode], bool]


@frozen
class AttentionAxes:
    """What was found. Axes have names, the same in all tensors.

    ``nodes``: the softmax and the second product. ``zeroing``: the nodes between these that put 0 in the place of NaN,
    if there are any. ``factors``: the outlets of queries, keys and values; ``terms``: the names of their axes, of the
    scores and of the result. ``key``: the axis of the scores that tells keys apart; ``alone``: those that only queries
    have; ``depth``, ``width``: those that are summed over in the first product, and that only values have; none where
    these have size 1.
    """

    nodes: tuple[int, int]
    factors: tuple[OutletId, OutletId, OutletId]
    terms: Terms
    key: str
    alone: tuple[str, ...] = ()
    depth: str | None = None
    width: str | None = None
    zeroing: tuple[int, ...] = ()


def wait_for_mix(grouping: Grouper[Any], product: int, fits: Fits, passes: Fits, *, zeroes: bool = False) -> bool:
    """Have a product wait for that which mixes values by its softmax, if there is one: so a mask may come later.

    Returns whether it waits. Of several products that are added to scores, one does. ``fits``: whether a node can be
    part of a group; ``passes``: whether scores can go through it, element by element; ``zeroes``: as for
    `attention_behind`.
    """
    if grouping.waits(product):
        return False
    nodes = [product]
    while (reader := _reader(grouping, OutletId(nodes[-1]), fits)) is not None and not grouping.waits(reader.id):
        nodes.append(reader.id)
        if isinstance(reader.op, Softmax):
            zeroing = _zeroing(grouping, reader.id, fits) if zeroes else ()
            last = _reader(grouping, OutletId((reader.id, *zeroing)[-1]), fits)
            if last is None or not isinstance(last.op, EinSum):
                return False
            grouping.wait([*nodes, *zeroing], last.id)
            return True
        if not passes(reader):
            return False
    return False


def attention_behind(
    grouping: Grouper[Any], product: int, scores: OutletId, fits: Fits, *, zeroes: bool = False
) -> AttentionAxes | None:
    """The attention that begins with a product of two and the element-wise nodes behind it, if it does.

    ``scores``: what comes out of these nodes. Each of its axes plays one part only. ``fits``: whether a node can be
    part of a group. ``zeroes``: whether NaN may become 0 between softmax and second product.
    """
    first = grouping.model.nodes[product]
    soft = _reader(grouping, scores, fits)
    zeroing = _zeroing(grouping, soft.id, fits) if soft is not None and zeroes else ()
    shares = None if soft is None else OutletId((soft.id, *zeroing)[-1])
    mix = None if shares is None else _reader(grouping, shares, fits)
    if soft is None or mix is None or shares is None:
        return None
    if not isinstance(soft.op, Softmax) or not isinstance(mix.op, EinSum):
        return None
    assert isinstance(first.op, EinSum)  # the callers asked
    others = [outlet for outlet in mix.inputs if outlet != shares]
    if len(others) != 1 or len(soft.op.axes) != 1:
        return None
    names = _named(first.op, mix.op, mix.inputs.index(shares))
    if names is None:
        return None
    *_, values, along, result = names
    key = along[soft.op.axes[0]]
    slot = 1 if key in names[0] else 0
    queries, keys = names[slot], names[1 - slot]
    if key in queries or key in result or key not in values:
        return None
    factors = (first.inputs[slot], first.inputs[1 - slot], others[0])
    found = AttentionAxes((soft.id, mix.id), factors, (queries, keys, values, along, result), key, zeroing=zeroing)
    return _checked(grouping.model, found)


def _reader(grouping: Grouper[Any], outlet: OutletId, fits: Fits) -> TypedNode | None:
    """The node that alone reads a tensor, once, if it can be part of a group."""
    node = grouping.reader_at_one(outlet)
    return node if node is not None and fits(node) else None


def _zeroing(grouping: Grouper[Any], soft: int, fits: Fits) -> tuple[int, ...]:
    """The nodes ``where(is_nan(shares), 0, shares)`` behind a softmax, if they are there and nothing else reads it."""
    model, shares = grouping.model, OutletId(soft)
    readers = [model.nodes[one.node] for one in model.outlet(shares).successors]
    if len(readers) != 2 or shares in model.outputs or not all(map(fits, readers)):
        return ()
    test, choice = sorted(readers, key=lambda node: isinstance(node.op, Iff))
    if not isinstance(test.op, IsNan) or not isinstance(choice.op, Iff):
        return ()
    alone = _reader(grouping, OutletId(test.id), fits)
    condition, zero, kept = choice.inputs
    value = model.outlet_fact(zero).constant
    if alone is not choice or condition != OutletId(test.id) or kept != shares or value is None or value.any():
        return ()
    same_shape = model.outlet_fact(OutletId(choice.id)).shape == model.outlet_fact(shares).shape
    return (test.id, choice.id) if same_shape else ()


def _named(op: EinSum, second: EinSum, slot: int) -> Terms | None:
    """The names of the axes of both factors, of the values, of the scores and of the result; none for diagonals."""
    left, right, scores = op.axes.inputs[0], op.axes.inputs[1], op.axes.outputs[0]
    shares, values, result = second.axes.inputs[slot], second.axes.inputs[1 - slot], second.axes.outputs[0]
    if any(len(set(term)) < len(term) for term in (left, right, shares, values)):
        return None
    renamed = {name: f"new {name}" for name in values} | dict(zip(shares, scores, strict=True))
    again = [tuple(renamed[name] for name in term) for term in (values, result)]
    return tuple(left), tuple(right), again[0], tuple(scores), again[1]


def sizes_of_axes(model: TypedModel, outlets: Sequence[OutletId], terms: Sequence[Sequence[str]]) -> Sizes:
    """The size of each axis: that which is not 1, if there is one. ``terms``: the names of the axes of each tensor."""
    sizes: Sizes = {}
    for outlet, term in zip(outlets, terms, strict=True):
        for name, size in zip(term, model.outlet_fact(outlet).shape, strict=True):
            if is_one(sizes.get(name, 1)):
                sizes[name] = size
    return sizes


def _checked(model: TypedModel, found: AttentionAxes) -> AttentionAxes | None:
    """The attention with its axes, where each of them plays one part only."""
    terms = found.terms[:3]
    sizes = sizes_of_axes(model, found.factors, terms)
    moving = [
        {name: size for name, size in zip(term, model.outlet_fact(one).shape, strict=True) if not is_one(size)}
        for term, one in zip(terms, found.factors, strict=True)
    ]
    if any(size != sizes[name] for one in moving for name, size in one.items()):
        return None  # a symbolic size may have to stretch
    queries, keys, values = map(set, moving)
    scores, result = set(found.terms[3]), set(found.terms[4])
    depth, width = (queries | keys) - scores, values - scores
    if len(depth) > 1 or len(width) > 1 or not depth <= queries & keys or not width <= result:
        return None
    summed_too = (scores - {found.key} - result) & (queries | keys | values)
    if summed_too or found.key not in keys & values:
        return None
    alone = tuple(name for name in found.terms[3] if name in queries - keys - values)
    return replace(found, alone=alone, depth=next(iter(depth), None), width=next(iter(width), None))
