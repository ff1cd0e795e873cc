"""Attention, found in a model: two products with a softmax in between, along an axis that the second one sums over.

Nothing but that form counts: which axes there are besides, in which order, and which operators stand between the first
product and the softmax, is up to the model. The nodes before the second product wait for it, as masks and values may
come later than the first one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from tract_llvm.elements.expressions import ELEMENTS, Apply, Expression, element_of
from tract_llvm.language.types import ElementType

from tract_core.compile.groups import outlet_text
from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Sub
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp
from tract_core.ops.softmax import Softmax
from tract_cpu.group.chain import Chain
from tract_cpu.group.groups import Epilogue
from tract_cpu.group.known import Known
from tract_cpu.group.start import Start, read_along
from tract_cpu.group.walk import Walk
from tract_cpu.kernels.attention import attention_tile

FEW: Final = 2
"""From one part in so many of a vector on, queries are computed side by side."""

MOST_VECTORS: Final = 16
"""How many vectors a key or a value may take whose queries are computed one by one."""

Sizes = dict[str, Dim]


@frozen
class Attention(Epilogue):
    """What was found. Axes have names, the same in all tensors. ``chain``: what becomes of scores.

    ``factors``: the outlets of queries, keys and values; ``terms``: the names of their axes, of the scores and of the
    result. ``query``, ``key``: the axes of the scores that tell queries and keys apart, the first one empty where
    queries are few, and computed one by one; ``depth``, ``width``: those that are summed over in the first product, and
    that only values have; none where these have size 1. ``powers``: of a score and the largest one.
    """

    factors: tuple[OutletId, OutletId, OutletId]
    terms: tuple[tuple[str, ...], ...]
    query: str
    key: str
    depth: str | None
    width: str | None
    powers: Expression

    def notes(self, model: TypedModel) -> Iterator[str]:
        """What is what."""
        for what, outlet, term in zip(("queries", "keys", "values"), self.factors, self.terms, strict=False):
            yield f"{what}: {outlet_text(model, outlet)} along {', '.join(term)}"
        yield f"queries along {self.query or 'none'}, keys along {self.key}"
        yield from Epilogue.notes(self, model)


def waits(start: Start) -> bool:
    """Whether a product waits for that which mixes values by its softmax, if there is one: so a mask may come later.

    Of several products that are added to scores, one waits.
    """
    walk, model, number = start.walk, start.model, start.node.node
    if walk.waits(number):
        return False
    nodes, elements = [number], model.registry[ELEMENTS]
    while (reader := _reader(walk, OutletId(nodes[-1]))) is not None and not walk.waits(reader.id):
        nodes.append(reader.id)
        if isinstance(reader.op, Softmax):
            last = _reader(walk, OutletId(reader.id))
            if last is None or not isinstance(last.op, EinSum):
                return False
            walk.wait(nodes, last.id)
            return True
        if elements.find(type(reader.op)) is None:
            return False
    return False


def attention_behind(op: EinSum, start: Start, chain: Chain) -> Attention | None:
    """The attention that begins with a product and the element-wise operators behind it, if it does."""
    known, model = start.known, start.model
    soft = _reader(start.walk, chain.outlet)
    mix = None if soft is None else _reader(start.walk, OutletId(soft.id))
    if soft is None or mix is None or not isinstance(soft.op, Softmax) or not isinstance(mix.op, EinSum):
        return None
    shares, second = OutletId(soft.id), mix.op
    kinds = {model.outlet_fact(one).datum_type for one in [chain.outlet, *start.node.inputs, *mix.inputs]}
    kinds |= {model.outlet_fact(OutletId(mix.id)).datum_type}
    element = chain.expression.result
    powers = _powers(known, element.computed)
    if len(kinds) > 1 or second.q_output is not None or second.acc.itemsize > element.computed.bytes or powers is None:
        return None
    others = [outlet for outlet in mix.inputs if outlet != shares]
    names = _named(op, second, mix.inputs.index(shares)) if len(others) == len(soft.op.axes) == 1 else None
    if names is None:
        return None
    terms, (scores, result) = names[:-2], names[-2:]
    key = scores[soft.op.axes[0]]
    first = 1 if key in terms[0] else 0
    if key in terms[first] or key in result or key not in terms[2]:
        return None
    ordered = (terms[first], terms[1 - first], terms[2], scores, result)
    factors = (start.node.inputs[first], start.node.inputs[1 - first], others[0])
    reads = tuple((outlet, None) for outlet in factors)
    nodes = (*chain.nodes, soft.id, mix.id)
    along = (*reads, *read_along(chain, None))
    return _checked(known, Attention(nodes, along, None, chain, factors, ordered, "", key, None, None, powers))


def _reader(walk: Walk, outlet: OutletId) -> TypedNode | None:
    """The node that alone reads a tensor, once, if native code knows its types and sizes."""
    node = walk.only_reader(outlet)
    if node is None or node.inputs.count(outlet) != 1 or walk.known.why_unfit(node.id) is not None:
        return None
    return node


def _powers(known: Known, element: ElementType) -> Expression | None:
    """exp(score - largest score)"""
    registry, both = known.model.registry, (element, element)
    less, exp = element_of(registry, Sub(), both), element_of(registry, Exp(), (element,))
    if less is None or exp is None:
        return None
    return Expression(both, (Apply(Sub(), (0, 1), element, less.emit), Apply(Exp(), (2,), element, exp.emit)))


def _named(op: EinSum, second: EinSum, slot: int) -> tuple[tuple[str, ...], ...] | None:
    """The names of the axes of both factors, of the values, of the scores and of the result; none for diagonals."""
    left, right, scores = op.axes.inputs[0], op.axes.inputs[1], op.axes.outputs[0]
    shares, values, result = second.axes.inputs[slot], second.axes.inputs[1 - slot], second.axes.outputs[0]
    if any(len(set(term)) < len(term) for term in (left, right, shares, values)):
        return None
    renamed = {name: f"new {name}" for name in values} | dict(zip(shares, scores, strict=True))
    again = [tuple(renamed[name] for name in term) for term in (values, result)]
    return tuple(left), tuple(right), again[0], tuple(scores), again[1]


def sizes_of(known: Known, found: Attention) -> Sizes:
    """The size of each axis: that which is not 1, if there is one."""
    sizes: Sizes = {}
    for outlet, term in zip(found.factors, found.terms[:3], strict=True):
        for name, size in zip(term, known.model.outlet_fact(outlet).shape, strict=True):
            if is_one(sizes.get(name, 1)):
                sizes[name] = size
    return sizes


def _checked(known: Known, found: Attention) -> Attention | None:
    """The attention with its axes, where each of them plays one part only."""
    sizes = sizes_of(known, found)
    shapes = [known.model.outlet_fact(outlet).shape for outlet in found.factors]
    moving = [
        {name for name, size in zip(term, shape, strict=True) if not is_one(size)}
        for term, shape in zip(found.terms[:3], shapes, strict=True)
    ]
    if any(
        size != sizes[name]
        for term, shape in zip(found.terms[:3], shapes, strict=True)
        for name, size in zip(term, shape, strict=True)
        if not is_one(size)
    ):
        return None  # a symbolic size may have to stretch
    queries, keys, values = moving
    scores, result = set(found.terms[3]), set(found.terms[4])
    depth, width = (queries | keys) - scores, values - scores
    if len(depth) > 1 or len(width) > 1 or not depth <= queries & keys or not width <= result:
        return None
    summed_too = (scores - {found.key} - result) & (queries | keys | values)
    if summed_too or found.key not in keys & values:
        return None
    found = replace(found, depth=next(iter(depth), None), width=next(iter(width), None))
    alone = [name for name in found.terms[3] if name in queries - keys - values]
    lanes = attention_tile(known.isa, found.chain.expression.inputs[0]).lanes
    count = sizes[alone[-1]] if alone else 1
    if isinstance(count, int) and count * FEW < lanes:
        return found if _are_vectors(found, sizes, lanes) else None
    return replace(found, query=alone[-1])


def _are_vectors(found: Attention, sizes: Sizes, lanes: int) -> bool:
    """Whether keys and values are made of whole vectors, and results lie like these."""
    lengths = [sizes[name] if name else 1 for name in (found.depth, found.width)]
    whole = [isinstance(size, int) and 0 < size <= MOST_VECTORS * lanes and size % lanes == 0 for size in lengths]
    return all(whole) and found.terms[4][-1] == found.width
